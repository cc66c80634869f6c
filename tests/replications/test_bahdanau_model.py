"""RNNsearch and RNNencdec: how they begin, and what is masked; their equations are in ``test_groundhog_parity``."""

import torch

from replications.bahdanau.model import RNNencdec, RNNsearch
from shared.attention.softmax import masked_softmax

F64 = torch.float64
SMALL = {"source_vocabulary": 11, "target_vocabulary": 9, "embedding_size": 4, "hidden_size": 6, "maxout_size": 3}


def small(kind):
    model = RNNsearch(alignment_size=5, **SMALL) if kind == "rnnsearch" else RNNencdec(**SMALL)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model.to(F64).eval()


def sentences(lengths=(6, 4, 1), steps=5):
    source = torch.randint(1, 11, (len(lengths), max(lengths)))
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return source.masked_fill(~mask, 0), mask, torch.randint(1, 9, (len(lengths), steps))


def test_the_fixed_vector_is_the_state_after_the_last_word():
    model = small("rnnencdec")
    source, mask, _ = sentences()
    h = model.encoder(source, mask)
    state = model.start(source, mask)
    for b, length in enumerate(mask.sum(1).tolist()):
        assert torch.equal(state.annotations[b, 0], h[b, length - 1])


def test_weights_start_as_in_appendix_b():
    sizes = {"source_vocabulary": 300, "target_vocabulary": 300, "embedding_size": 60, "hidden_size": 50}
    model = RNNsearch(**sizes, maxout_size=40, alignment_size=70)
    for name, parameter in model.named_parameters():
        last = name.rsplit(".")[-1]
        if last in ("b", "bias", "v_a"):
            assert not parameter.any(), name
        elif not last.startswith("u_gates") and not last.startswith("u_candidate"):
            expected = 0.001 if name in ("attention.w_a", "attention.u_a") else 0.01
            n = parameter.numel()  # five standard errors of mean and standard deviation
            assert abs(parameter.mean().item()) < 5 * expected / n**0.5, name
            assert abs(parameter.std().item() - expected) < 5 * expected / (2 * n) ** 0.5, name
    for unit in (model.encoder.unit, model.unit):
        for matrix in [*unit.u_gates[0].chunk(2, dim=1), unit.u_candidate[0]]:
            torch.testing.assert_close(matrix @ matrix.t(), torch.eye(50), atol=1e-5, rtol=0)


def test_masked_positions_get_nothing_even_if_all_are_masked():
    model = small("rnnsearch")
    source, mask, target = sentences()
    mask[0] = False
    logits, alphas = model(source, mask, target)
    assert not alphas[0].any()
    logits.sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())
    assert masked_softmax(torch.zeros(2), torch.tensor([False, False])).tolist() == [0, 0]
