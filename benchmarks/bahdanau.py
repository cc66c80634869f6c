"""RNNsearch beside a straightforward implementation, at the quick scale's sizes."""

from __future__ import annotations

from benchmarks.plain_rnnsearch import PlainRNNsearch
from benchmarks.steps import Step, joeynmt_update, translation_searches, translation_update
from replications.bahdanau.model import RNNsearch

VOCABULARY = 4000
SIZES = {
    "source_vocabulary": VOCABULARY, "target_vocabulary": VOCABULARY, "embedding_size": 128, "hidden_size": 256,
    "alignment_size": 256, "maxout_size": 128,
}  # fmt: skip


def training() -> dict[str, Step]:
    """Updates of 36 pairs of 28 words."""
    models = {
        "plain, read-out in the loop": PlainRNNsearch(**SIZES, batched_readout=False),
        "plain, read-out after the loop": PlainRNNsearch(**SIZES, batched_readout=True),
        "ours": RNNsearch(**SIZES),
    }
    part = {"type": "recurrent", "rnn_type": "gru", "hidden_size": 256, "num_layers": 1, "dropout": 0.0,
            "embeddings": {"embedding_dim": 128}}  # fmt: skip
    decoder = part | {"attention": "bahdanau", "hidden_dropout": 0.0}
    theirs = joeynmt_update({"encoder": part | {"bidirectional": True}, "decoder": decoder}, VOCABULARY, 36, 28)
    return {name: translation_update(model, VOCABULARY, 36, 28) for name, model in models.items()} | theirs


def decoding() -> dict[str, Step]:
    """Weights far from uniform, so that the searches have to decide."""
    return translation_searches(RNNsearch(**SIZES, init_std=0.3).eval(), VOCABULARY)


COMPARISONS = {"training": training, "decoding": decoding}
