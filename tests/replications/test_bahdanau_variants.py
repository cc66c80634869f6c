"""Every variant of every scale can be built, and is what its name says."""

import pytest

from replications.bahdanau.model import RNNsearch
from replications.bahdanau.replication import build_model
from replications.bahdanau.settings import ModelConfig
from tests.replications.shipped_variants import scale_file_of, shipped

pytestmark = pytest.mark.usefixtures("shapes_alone")


@shipped("bahdanau")
def test_every_variant_has_attention_if_its_name_says_so(scale: str, variant: str) -> None:
    run = scale_file_of("bahdanau", scale).run(variant)
    vocabulary = run.corpus.tokenizer.size
    model = build_model(ModelConfig.model_validate(run.model), vocabulary, vocabulary)
    assert isinstance(model, RNNsearch) == ("rnnsearch" in variant)
    # The bench runs are older than the choice, and their settings, which say nothing of it, have to mean what they are.
    assert model.wiring == ("appendix" if variant == "rnnsearch-appendix" or scale == "bench" else "program")
    assert model.encoder.embedding.num_embeddings == model.output.w_o.out_features == vocabulary
