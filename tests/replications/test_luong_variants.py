"""Every variant of every scale is what its name says."""

import pytest

from replications.luong.replication import build_model
from replications.luong.settings import AlignerConfig, ModelConfig
from shared.attention import alignments
from tests.replications.shipped_variants import scale_file_of, shipped

pytestmark = pytest.mark.usefixtures("shapes_alone")
SCORES: dict[str, type[alignments.Score]] = {
    "dot": alignments.DotScore, "general": alignments.GeneralScore, "concat": alignments.ConcatScore,
    "location": alignments.LocationScore,
}  # fmt: skip
FORWARDS = {"base", "swaps-base"}


def named(variant: str) -> tuple[type[alignments.Score] | None, type[alignments.Alignment] | None]:
    """The score and the alignment that a variant's name stands for."""
    score = next((SCORES[word] for word in variant.split("-") if word in SCORES), None)
    if score is None:
        return None, None
    if "local-m" in variant:
        return score, alignments.LocalMonotonic
    return score, alignments.LocalPredictive if "local-p" in variant else alignments.GlobalAlignment


@shipped("luong")
def test_every_variant_is_what_its_name_says(scale: str, variant: str) -> None:
    run = scale_file_of("luong", scale).run(variant)
    if variant in ("gold-ibm1", "gold-fast-align"):
        assert AlignerConfig.model_validate(run.model).aligner == variant.removeprefix("gold-").replace("-", "_")
        return
    vocabulary = run.corpus.tokenizer.size
    model = build_model(ModelConfig.model_validate(run.model), vocabulary, vocabulary)
    found = model.attention
    assert ((found and type(found.score)), (found and type(found.alignment))) == named(variant)
    assert model.input_feeding == variant.removesuffix("-twice").endswith("-feed")
    # The bench runs are older than these choices, and their settings, which say nothing of them, mean what they are.
    assert model.encoder.end_symbol == (scale == "bench")
    if isinstance(found and found.alignment, alignments.LocalPredictive):
        assert found.alignment.first_word == (scale == "bench")
    assert model.encoder.reverse == (variant not in FORWARDS and not variant.endswith("-forward"))
    if run.task == "corpus":
        assert (model.dropout.p > 0) == (variant not in ("base", "base-reverse"))
        words = run.corpus.tokenizer.kind == "words"  # pieces know every word, so there is nothing to replace
        assert run.decoding.replace_unknown == (words and found is not None)
        assert run.evaluation.ensemble == (words and variant == "local-p-general-feed")
    assert model.encoder.embedding.num_embeddings == model.w_s.out_features == vocabulary
