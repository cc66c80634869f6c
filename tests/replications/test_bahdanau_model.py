"""RNNsearch: how it begins, and what is masked; the equations are in ``tests/parity/test_groundhog_parity.py``."""

import torch

from replications.bahdanau.model import RNNsearch


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


def test_a_source_of_which_nothing_is_there_gets_no_weight_and_spoils_no_gradient():
    sizes = {"source_vocabulary": 11, "target_vocabulary": 9, "embedding_size": 4, "hidden_size": 6}
    model = RNNsearch(**sizes, maxout_size=3, alignment_size=5, init_std=0.5)
    mask = torch.arange(6) < torch.tensor([0, 4, 1]).unsqueeze(1)
    logits, alphas = model(torch.randint(1, 11, (3, 6)), mask, torch.randint(1, 9, (3, 5)))
    assert not alphas[0].any()
    logits.sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())
