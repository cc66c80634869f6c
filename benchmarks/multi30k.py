"""Training on Multi30k until a validation loss is reached, at the bench scale's sizes and recipe, beside joeynmt's."""

from __future__ import annotations

import itertools
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from benchmarks.steps import Step, scratch
from benchmarks.training import train
from shared.data.fetch import fetch
from shared.data.storage import write_lines
from shared.data.tokenizers import SPECIAL
from shared.pipeline.config import ScaleFile
from shared.tasks.batches import VALIDATED
from shared.tasks.kinds import load_replication
from shared.tasks.translation.corpus import PreparedText, prepare
from shared.tasks.translation.module import TranslationModule

GOAL = 4.5
"""Nats per piece of the validation text; towards 3.0 both Transformers need as many updates as each other, too."""


class ReachedError(Exception):
    """The goal is reached."""


class Until(TranslationModule):
    """A module whose training ends at the goal."""

    def on_validation_epoch_end(self) -> None:
        """Log the mean loss."""
        super().on_validation_epoch_end()
        if float(self.logged["valid_loss"]) <= GOAL:
            raise ReachedError


def race(paper: str, variant: str, model: dict[str, Any], batch: int, every: int) -> dict[str, Step]:
    """Whole training loops until validation has 4.5 nats a piece, from initial weights of another seed in every turn.

    Args:
        paper, variant: ours, at the bench scale.
        model: joeynmt's settings of the same.
        batch: joeynmt's tokens of an update, padding included, of which as many are none as of ours.
        every: updates from one validation to the next.
    """
    settings = ScaleFile(paper, "bench")
    schedule = {"name": "noam", "warmup": settings.run(variant).training.schedule.warmup}
    config = settings.run(variant, {"training": {"schedule": schedule, "validate_every": every}})
    replication, training = load_replication(paper), config.training
    fetch(config.corpus.dataset)
    prepare(config.corpus, Path("data") / config.corpus.dataset, folder := scratch())
    data = replication.open(config, folder)
    seeds = itertools.count(1)

    def ours() -> None:
        torch.manual_seed(seed := next(seeds))
        module = Until(replication.model(config, data.sizes), training)
        with suppress(ReachedError):
            train(module, training, data.batches(training, seed), data.valid(training), seed)

    ways: dict[str, Step] = {"ours": ours}
    if find_spec("joeynmt"):
        ways["joeynmt"] = joeynmt(data, training, model, batch)
    return ways


def joeynmt(data: PreparedText, training: Any, model: dict[str, Any], batch: int) -> Step:
    """Its loop, with our pieces as its words, our recipe and its own batches; it validates by the loss alone."""
    from joeynmt.config import parse_global_args
    from joeynmt.data import load_data
    from joeynmt.helpers import set_seed
    from joeynmt.model import build_model
    from joeynmt.training import TrainManager

    class Manager(TrainManager):  # type: ignore[misc]
        def _validate(self, valid_data: Any) -> None:
            self.model.eval()
            self.model.loss_function = ("crossentropy", 0.0)  # as ours: what is reached is the likelihood
            loss, labels = 0.0, 0
            with torch.inference_mode():
                for each in valid_data.make_iter(batch_size=VALIDATED, batch_type="token"):
                    each.sort_by_src_length()  # which its recurrent encoder asks for
                    loss += float(self.model(return_type="loss", **vars(each))[0])
                    labels += each.ntokens
            self.model.loss_function = smoothed
            if loss / labels <= GOAL:
                raise ReachedError

    folder = scratch()
    (folder / "words").write_text("".join(f"{i}\n" for i in range(len(SPECIAL), data.sizes[0])))
    for split, side in itertools.product(("train", "valid"), ("source", "target")):
        lines = getattr(data.split(split), side)
        write_lines(folder / f"{split}.{side}", [" ".join(map(str, line)) for line in lines])
    every = training.validate_every
    side = {"level": "word", "lowercase": False, "max_length": 200, "voc_file": str(folder / "words")}
    args = parse_global_args({
        "name": "race", "model_dir": str(folder), "use_cuda": False, "model": model, "testing": {},
        "data": {"train": str(folder / "train"), "dev": str(folder / "valid"), "dataset_type": "plain",
                 "src": side | {"lang": "source"}, "trg": side | {"lang": "target"}},
        "training": {
            "batch_size": batch, "batch_type": "token", "normalization": "tokens", "epochs": 1000, "optimizer": "adam",
            "adam_betas": [training.optimizer.beta1, training.optimizer.beta2], "clip_grad_norm": training.clip,
            "learning_rate": training.optimizer.learning_rate, "learning_rate_min": 0.0,
            "scheduling": "warmupinversesquareroot", "learning_rate_warmup": training.schedule.warmup,
            "label_smoothing": training.label_smoothing, "logging_freq": every, "validation_freq": every,
        },
    })  # fmt: skip
    *words, train, valid, _ = load_data(args.data, ["train", "dev"])
    smoothed = (args.train.loss, args.train.label_smoothing)
    seeds = itertools.count(1)

    def step() -> None:
        set_seed(seed := next(seeds))
        built = build_model(args.model, *words)
        built.loss_function = smoothed
        manager = Manager(0, built, folder, args.device, autocast=args.autocast, seed=seed, train_args=args.train,
                          dev_args=args.test)  # fmt: skip
        with suppress(ReachedError):
            manager.train_and_validate(train, valid)

    return step


TRANSFORMER = {"type": "transformer", "num_layers": 3, "num_heads": 4, "hidden_size": 128, "ff_size": 512,
               "layer_norm": "post", "embeddings": {"embedding_dim": 128, "scale": True, "dropout": 0.1},
               "dropout": 0.1}  # fmt: skip
RECURRENT = {"type": "recurrent", "rnn_type": "gru", "hidden_size": 224, "num_layers": 1, "dropout": 0.2,
             "embeddings": {"embedding_dim": 128, "dropout": 0.2}}  # fmt: skip
MODELS: dict[str, dict[str, Any]] = {
    "Transformer": {"encoder": TRANSFORMER, "decoder": TRANSFORMER, "tied_embeddings": True, "tied_softmax": True,
                    "initializer": "xavier_uniform", "embed_initializer": "xavier_uniform"},
    "RNNsearch": {"encoder": RECURRENT | {"bidirectional": True},
                  "decoder": RECURRENT | {"attention": "bahdanau", "hidden_dropout": 0.2},
                  "initializer": "normal", "init_weight": 0.05, "embed_initializer": "normal",
                  "embed_init_weight": 0.05, "init_rnn_orthogonal": True},
}  # fmt: skip
COMPARISONS = {
    "Transformer": partial(race, "transformer", "corpus-base", MODELS["Transformer"], 1000, 100),
    "RNNsearch": partial(race, "bahdanau", "corpus-rnnsearch", MODELS["RNNsearch"], 4300, 25),
}
