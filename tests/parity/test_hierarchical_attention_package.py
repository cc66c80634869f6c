"""Hierarchical attention against the package hierarchical-attention-networks: logits, weights and gradients.

Its weights are scores, for its softmax is never called, and padding weighs as much as words: the call is put in, and it
reads document by document, with sentences of one length in each.
"""

import pytest
import torch

from replications.hierarchical_attention.model import HierarchicalNetwork, Level
from tests.parity.fetched_packages import package_of, wheel_of

FILES = ("attention", "sentence", "document")
PACKAGE = wheel_of(
    "hierarchical-attention-networks==0.0.3",
    "6d457cf33969883abed33030d0096b4eab0de8a2ef9811fcb6621b1ed3b8abbc",
    {f"han/model/{name}.py": f"{name}.py" for name in FILES},
)
VOCABULARY, CLASSES, EMBEDDING, HIDDEN, END = 11, 3, 4, 5, 1
SCORES = "alpha = self._calc_args_softmax(u, self.weights)"


package = package_of(PACKAGE, FILES, "han", {"han": {}}, {SCORES: f"{SCORES}.softmax(0)"})


def copy_level(level: Level, gru: torch.nn.GRU, attention: torch.nn.Module) -> None:
    """The last column of our weights is the bias of a gate; theirs has a second one."""
    for mine, of in ((level.encoder.forwards, ""), (level.encoder.backwards, "_reverse")):
        getattr(gru, f"weight_ih_l0{of}").copy_(mine.weight_ih_l0[:, :-1])
        getattr(gru, f"bias_ih_l0{of}").copy_(mine.weight_ih_l0[:, -1])
        getattr(gru, f"weight_hh_l0{of}").copy_(mine.weight_hh_l0)
        getattr(gru, f"bias_hh_l0{of}").zero_()
    attention.linear.load_state_dict(level.attention.w.state_dict())
    attention.weights.copy_(level.attention.u_w.weight[0])


@pytest.mark.registry
def test_logits_weights_and_gradients_are_those_of_hierarchical_attention_networks(package):
    torch.manual_seed(1)
    mine = HierarchicalNetwork(
        vocabulary=VOCABULARY, classes=CLASSES, embedding=EMBEDDING, hidden=HIDDEN, pooling="attention", sentences=True,
        ends=[END], dropout=0.0,
    ).double()  # fmt: skip
    theirs = package.DocumentClassifierFactory().create(
        vocabulary_size=VOCABULARY, num_classes=CLASSES, embedding_dim=EMBEDDING, embedding_sparse=False,
        sentence_gru_hidden_size=HIDDEN, sentence_dim=2 * HIDDEN, doc_gru_hidden_size=HIDDEN, doc_dim=2 * HIDDEN,
    ).double()  # fmt: skip
    document = theirs._document_model
    sentence = document._sentence_model
    with torch.no_grad():
        sentence._embedding.weight.copy_(mine.embedding.weight)
        copy_level(mine.words, sentence._gru, sentence._attention_model)
        copy_level(mine.sentences, document._gru, document._attention_model)
        theirs._linear.load_state_dict(mine.output.state_dict())

    shapes = [(3, 4), (2, 5), (1, 2)]  # sentences and their words
    documents = [[torch.cat((torch.randint(2, VOCABULARY, (n - 1,)), torch.tensor([END]))) for _ in range(m)]
                 for m, n in shapes]  # fmt: skip
    texts = torch.nn.utils.rnn.pad_sequence([torch.cat(each) for each in documents], batch_first=True)
    found = mine((texts,), (texts > 0,))
    wanted = [theirs([each]) for each in documents]
    logits = torch.cat([each[0] for each in wanted])
    torch.testing.assert_close(found.logits, logits, rtol=1e-12, atol=1e-12)
    for (_, of_sentences, of_words, _), weights, (m, n) in zip(wanted, found.attention[0][:, 0], shapes, strict=True):
        torch.testing.assert_close((of_words * of_sentences.T).T.flatten(), weights[: m * n], rtol=1e-12, atol=1e-12)
    for out in (found.logits, logits):
        (out * torch.arange(out.numel()).view_as(out)).sum().backward()
    for ours, other in (
        (mine.embedding, sentence._embedding), (mine.output, theirs._linear),
        (mine.words.attention.w, sentence._attention_model.linear),
        (mine.sentences.attention.w, document._attention_model.linear),
    ):  # fmt: skip
        torch.testing.assert_close(ours.weight.grad, other.weight.grad, rtol=1e-11, atol=1e-11)
    for level, gru in ((mine.words, sentence._gru), (mine.sentences, document._gru)):
        grad = torch.cat((gru.weight_ih_l0_reverse.grad, gru.bias_ih_l0_reverse.grad[:, None]), 1)
        torch.testing.assert_close(level.encoder.backwards.weight_ih_l0.grad, grad, rtol=1e-11, atol=1e-11)
