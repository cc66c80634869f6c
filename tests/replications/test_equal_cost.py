"""The Transformer and its recurrent rivals, where a claim compares them at equal cost, are trained at equal cost."""

import numpy as np
import pytest
import torch
from torch import nn

from replications.transformer.replication import REPLICATION, build_model
from replications.transformer.settings import ModelConfig
from shared.data.batching import endless_batches
from shared.data.cards import GeneratedSource, load_card
from shared.data.generated import generate
from shared.data.ragged import RaggedArray
from shared.pipeline.config import ScaleFile
from shared.tasks.replication import runner_of
from shared.tasks.settings import RunConfig
from shared.tasks.translation.corpus import ParallelText
from shared.tasks.translation.evaluation import training_operations
from tests.replications.shipped_variants import scale_file_of

pytestmark = pytest.mark.usefixtures("shapes_alone")


def network(run: RunConfig, vocabulary: int) -> nn.Module:
    """A variant's, whosever it is."""
    if "paper" not in run.model:
        return build_model(ModelConfig.model_validate(run.model), vocabulary, vocabulary)
    lent = {key: run.model[key] for key in ("paper", "settings")}
    lender, borrowed = runner_of(REPLICATION, run.model_copy(update={"model": lent}))
    return lender.model(borrowed, (vocabulary, vocabulary))


def pairs_of(settings: ScaleFile, task: str) -> ParallelText:
    """As long as those a task is trained on: generated ones by generating them, and of real text invented ones."""
    random = np.random.default_rng(1)
    pieces = random.gamma(8, 4, (1000, 1)) + random.normal((0, 1), 3, (1000, 2))
    lengths = pieces.round().clip(5, 80).astype(int).tolist()
    (source, *_) = load_card(settings.dataset(task)).sources
    if isinstance(source, GeneratedSource):
        segments = generate(source.task, source.parameters)["train"]
        lengths = [[len(text.split()) for text in segment.texts] for segment in segments]
    sides = [RaggedArray.pack([[4] * pair[side] for pair in lengths]) for side in range(2)]
    return ParallelText(*sides, sides[0].lengths)


@pytest.mark.parametrize(
    ("scale", "ours", "rival"), [("quick", "base", "rnnsearch"), ("bench", "parsing-transformer", "parsing-luong")]
)
def test_rivals_are_trained_at_equal_cost(scale: str, ours: str, rival: str) -> None:
    settings = scale_file_of("transformer", scale)
    text = pairs_of(settings, settings.task_of(ours))
    lengths = text.target.lengths + 1, text.source.lengths + 1
    costs = {}
    for variant in (ours, rival):
        run = settings.run(variant)
        with torch.device("cpu"):
            costs[variant] = training_operations(
                network(run, run.corpus.tokenizer.size).eval(), text,
                endless_batches(lengths, seed=1, **run.training.batch.model_dump(exclude={"length"})),
                updates=[run.training.updates], accumulate=run.training.accumulate,
            )["training_operations"]  # fmt: skip
    assert costs[rival] == pytest.approx(costs[ours], rel=0.05)
