"""Every variant of every scale can be built, and the sizes in paper.yaml are those of the code, part by part."""

import pytest
from torch import nn

from replications.bahdanau.model import EncoderDecoder, RNNencdec, RNNsearch
from replications.bahdanau.replication import build_model
from replications.bahdanau.settings import ModelConfig
from tests.replications.shipped_variants import facts, parameters, scale_file_of, shipped

pytestmark = pytest.mark.usefixtures("shapes_alone")


def weights(*modules: nn.Module) -> int:
    """The parameters that are not biases."""
    named = (item for module in modules for item in module.named_parameters())
    return sum(p.numel() for name, p in named if name.rsplit(".", 1)[-1] not in ("b", "bias"))


def parts(model: EncoderDecoder) -> list[int]:
    """In the order of paper.yaml."""
    return [
        weights(model.encoder.embedding, model.embedding),
        weights(model.encoder.unit),
        weights(model.unit, model.c),
        weights(model.w_s),
        weights(model.attention) if isinstance(model, RNNsearch) else 0,
        weights(model.output),
    ]


def test_the_parts_in_paper_yaml_are_those_of_the_modules() -> None:
    sizes = {
        "source_vocabulary": 30_000, "target_vocabulary": 30_000, "embedding_size": 620, "hidden_size": 1000,
        "maxout_size": 500,
    }  # fmt: skip
    models = {"RNNsearch": RNNsearch(alignment_size=1000, **sizes), "RNNencdec": RNNencdec(**sizes)}
    counts = facts("bahdanau").parameter_counts
    assert counts is not None
    for name, model in models.items():
        assert parts(model) == [part.counts[name] for part in counts.parts]
        assert sum(parts(model)) == weights(model) == counts.totals[name]
        assert parameters(model) - weights(model) == {"RNNsearch": 41_000, "RNNencdec": 38_000}[name]


def test_the_matched_control_has_as_many_parameters() -> None:
    settings, sizes = scale_file_of("bahdanau", "paper_scale"), []
    for variant in ("rnnsearch-50", "rnnencdec-50-matched"):
        run = settings.run(variant)
        vocabulary = run.corpus.tokenizer.size
        sizes.append(parameters(build_model(ModelConfig.model_validate(run.model), vocabulary, vocabulary)))
    assert abs(sizes[1] / sizes[0] - 1) < 0.01


@shipped("bahdanau")
def test_every_variant_has_attention_if_its_name_says_so(scale: str, variant: str) -> None:
    run = scale_file_of("bahdanau", scale).run(variant)
    vocabulary = run.corpus.tokenizer.size
    model = build_model(ModelConfig.model_validate(run.model), vocabulary, vocabulary)
    assert isinstance(model, RNNsearch) == ("rnnsearch" in variant)
    # The bench runs are older than the choice, and their settings, which say nothing of it, have to mean what they are.
    assert model.wiring == ("appendix" if variant == "rnnsearch-appendix" or scale == "bench" else "program")
    assert model.encoder.embedding.num_embeddings == model.output.w_o.out_features == vocabulary
