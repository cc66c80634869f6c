"""Every equation and what runs in its place give the same values and gradients."""

import importlib
import pkgutil
import sys
from functools import partial

import pytest
import torch

import replications
import shared
from replications.adaptive_span import model as adaptive_span
from replications.bahdanau import model as bahdanau
from replications.linear_transformer import model as linear_transformer
from replications.performer import model as performer
from replications.reformer import model as reformer
from replications.shaw import model as shaw
from replications.show_attend_tell import attention as captioner
from replications.transformer import model as transformer
from shared.attention import additive, alignments, relative, scaled_dot_product
from shared.attention.favor import SoftmaxFeatures
from shared.attention.feature_maps import ReLU
from shared.attention.linear import State
from shared.attention.twins import TWINS, plain_equations
from shared.decoding.protocol import Reach
from shared.layers import lstm
from tests.replications import small_transformer_xl

B, H, T, S, N, A = 2, 3, 4, 5, 6, 3
PAIRS = (torch.arange(S) - torch.arange(T).unsqueeze(1)).clamp(-2, 2).add(2).unsqueeze(0)
WORDS = torch.arange(S) < torch.tensor([[5], [3]])


def normal(*shape):
    return torch.randn(shape)


def attention_inputs(queries=T, keys=S):
    return normal(B, H, queries, N), normal(B, H, keys, N), normal(B, H, keys, N)


def over_steps(weight, *inputs):
    """The products of one loop, a later one with what an earlier one gave."""
    product = lstm.product_with(weight)
    first = product(inputs[0])
    return first, product(first[:, : weight.size(0)] + inputs[1])


def read(bidirectional, x, *weights):
    """A sequence by an LSTM that has these weights."""
    layers, size = (1, weights[0].size(0) // 4) if bidirectional else (2, weights[0].size(0) // 4)
    module = torch.nn.LSTM(x.size(2), size, layers, bias=False, bidirectional=bidirectional).to(x.dtype)
    module._flat_weights = list(weights)
    for name, weight in zip(module._flat_weights_names, weights, strict=True):
        del module._parameters[name]
        setattr(module, name, weight)
    top, state = lstm.read_sequence(module, x, None)
    return (top,) if bidirectional else (top, *state)


def segments(*_):
    """Losses of a text that is read in segments, in evaluation, where keys and values are kept."""
    torch.manual_seed(1)
    model = small_transformer_xl.small().to(torch.get_default_dtype())
    memory, text = model.memory(2, Reach(5)), torch.randint(small_transformer_xl.VOCABULARY, (2, 13))
    parts = zip(text[:, :-1].split(4, 1), text[:, 1:].split(4, 1), strict=True)
    return [model(inputs, targets, memory) for inputs, targets in parts]


def locally(sigma, *inputs):
    queries, annotations, p = inputs
    return alignments.attend_locally(
        alignments.DotScore(), queries, annotations, annotations, WORDS, 1 + 3 * p.sigmoid(), 1, sigma
    )


def features(estimator):
    torch.manual_seed(3)
    return SoftmaxFeatures(key_size=N, projections=7, estimator=estimator).to(torch.get_default_dtype())


def favor(of, causal, q, k, v):
    mask = torch.arange(T) < torch.tensor([[4], [2]])
    return performer.favor(of(), q / 2, k / 2, v, mask, causal)


def by_terms(biased, q, k, v, p, u, w):
    biases = relative.GlobalBiases(heads=H, key_size=N)
    del biases.u, biases.v
    biases.u, biases.v = u, w
    mask = relative.memory_mask(T, S) & WORDS.unsqueeze(1)
    return relative.attend(q, k, v, p, biases if biased else None, mask, weights=True)


def streams(attention, size, x1, x2):
    """Two reversible layers, of which one has padding, and feed-forward networks in chunks."""
    torch.manual_seed(4)
    model = reformer.Reformer(
        symbols=5, layers=2, heads=2, width=N, hidden=7, attention=attention, rounds=2, buckets=2, chunk=2,
        reversible=True, feed_forward_chunk=size, length=S, causal=True,
    ).to(torch.get_default_dtype())  # fmt: skip
    return reformer.two_streams(x1, x2, [reformer.Streams(each, WORDS, True, size) for each in model.layers])


CASES = {
    "replications.adaptive_span.model.attend": [
        (
            lambda q, k, v, p, z: adaptive_span.attend(q, k, v, p, 3 * z.sigmoid(), 2, 0.0),
            lambda: (*attention_inputs(), normal(4, N), normal(H)),
        ),
        (  # within spans that leave keys out
            lambda q, k, v, p, z: adaptive_span.attend(q, k, v, p, 0.5 * z.sigmoid(), 2, 0.0),
            lambda: (*attention_inputs(queries=2), normal(4, N), normal(H)),
        ),
        (
            lambda q, k, v, p: adaptive_span.attend(q, k, v, p, None, 0, 0.0),
            lambda: (*attention_inputs(), normal(3, N)),
        ),
    ],
    "shared.attention.additive.energies": [
        # They differ by a constant, which no softmax sees.
        (lambda *x: additive.energies(*x).softmax(-1), lambda: (normal(B, T, A), normal(B, S, A), normal(A))),
    ],
    "replications.show_attend_tell.attention.log_weights": [
        (captioner.log_weights, lambda: (normal(B, T, A), normal(B, S, A), normal(A))),
        (captioner.log_weights, lambda: (normal(B, 1, A), normal(B, S, A), normal(A))),
    ],
    "shared.attention.alignments.attend_locally": [
        (partial(locally, sigma), lambda: (normal(B, T, N), normal(B, S, N), normal(B, T))) for sigma in (None, 0.5)
    ],
    **{
        name: [
            (partial(function, **masks, scale=0.4), partial(attention_inputs, keys=T if masks["causal"] else S))
            for masks in (
                {"mask": None, "causal": False}, {"mask": WORDS[:, None, None], "causal": False},
                {"mask": torch.rand(B, 1, T, S).argsort(-1) > 1, "causal": False}, {"mask": None, "causal": True},
                {"mask": torch.tensor([False, True]).view(2, 1, 1, 1), "causal": False},
            )
        ]
        for name, function in (
            ("shared.attention.scaled_dot_product.attend", scaled_dot_product.attend),
            ("replications.transformer.model.attention", transformer.attention),
        )
    },
    "shared.attention.relative.attend": [
        (partial(by_terms, biased), lambda: (*attention_inputs(), normal(H, S, N), normal(H, N), normal(H, N)))
        for biased in (True, False)
    ],
    "shared.layers.lstm.lstm_unit": [
        (lstm.lstm_unit, lambda: (normal(B, 4 * N), normal(B, N))),
        (lambda *x: lstm.lstm_unit(*x)[0], lambda: (5 * normal(B, 4 * N), normal(B, N))),
    ],
    "shared.layers.lstm.product_with": [
        (over_steps, lambda: (normal(3, 7), normal(B, 3), normal(B, 3))),
    ],
    "shared.layers.lstm.read_sequence": [
        (partial(read, False), lambda: (normal(T, B, 3), *(normal(4 * N, n) for n in (3, N, N, N)))),
        (partial(read, True), lambda: (normal(T, B, 3), *(normal(4 * N, n) for n in (3, N, 3, N)))),
    ],
    "replications.bahdanau.model.read": [
        (
            lambda *x: bahdanau.read(*x, torch.rand(T, 2, B).argsort(0) > 0),
            lambda: (normal(T, 2, B, 3 * N), normal(2, B, N), normal(2, N, 2 * N), normal(2, N, N)),
        ),
    ],
    "replications.bahdanau.model.align_and_write": [
        (
            lambda x, s, keys, values, *weights: bahdanau.align_and_write(x, s, keys, values, WORDS, *weights),
            lambda: (
                normal(T, B, 3 * N), normal(B, N), normal(B, S, A), normal(B, S, 3 * N), normal(N, A), normal(A),
                normal(N, 2 * N), normal(N, N),
            ),
        ),
    ],
    "replications.linear_transformer.model.linear_attention": [
        (
            lambda q, k, v, c=causal: linear_transformer.linear_attention(q, k, v, WORDS, c),
            partial(attention_inputs, queries=S),
        )
        for causal in (False, True)
    ],
    "replications.linear_transformer.model.recurrent_step": [
        (
            lambda q, k, v, sums: (
                linear_transformer.recurrent_step(q, k, v, None)[0],
                *(x for x in linear_transformer.recurrent_step(q, k, v, State(sums.exp()))[1] if x is not None),
                linear_transformer.recurrent_step(q, k, v, State(sums.exp()))[0],
            ),
            lambda: (*(normal(B, H, N) for _ in range(3)), normal(B, H, N, N + 1)),
        ),
    ],
    "replications.performer.model.favor": [
        (partial(favor, of, causal), partial(attention_inputs, keys=T))
        for of in (ReLU, *(partial(features, name) for name in ("positive", "hyperbolic", "trigonometric")))
        for causal in (False, True)
    ],
    "replications.reformer.model.two_streams": [
        (partial(streams, attention, size), lambda: (normal(B, S, N), normal(B, S, N)))
        for attention, size in (("full", None), ("shared", 2), ("lsh", 1))
    ],
    "replications.shaw.model.attend": [
        (
            lambda q, k, v, w_k, w_v: shaw.attend(q, k, v, w_k, w_v, PAIRS, WORDS[:, None, None]),
            lambda: (*attention_inputs(), normal(H, 5, N), normal(H, 5, N)),
        ),
        (
            lambda q, k, v, w_k: shaw.attend(q, k, v, w_k, None, PAIRS, WORDS[:, None, None]),
            lambda: (*attention_inputs(), normal(H, 5, N)),
        ),
        (
            lambda q, k, v, w_v: shaw.attend(q, k, v, None, w_v, PAIRS.expand(B, T, S), WORDS[:, None, None]),
            lambda: (*attention_inputs(), normal(H, 5, N)),
        ),
    ],
    "replications.transformer_xl.model.memory_of": [(segments, lambda: (normal(1),))],
}  # fmt: skip


def every_module():
    for package in (shared, replications):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.startswith(("shared.attention", "shared.layers")) or module.name.endswith(
                (".model", ".attention")
            ):
                importlib.import_module(module.name)


def test_every_equation_is_tried() -> None:
    every_module()
    assert CASES.keys() == TWINS.keys()


def outcome(function, inputs, called):
    """Results, and the gradients of the inputs; whether ``called`` ran."""
    ran = []
    sys.setprofile(
        lambda frame, event, _: ran.append(1) if event == "call" and frame.f_code is called.__code__ else None
    )
    try:
        torch.manual_seed(2)
        found = function(*inputs)
    finally:
        sys.setprofile(None)
    outputs = [found] if isinstance(found, torch.Tensor) else list(found)
    generator = torch.Generator().manual_seed(3)
    cotangents = [torch.randn(x.shape, generator=generator, dtype=x.dtype) for x in outputs]
    wanted = [x for x in outputs if x.requires_grad]
    loss = sum((x * c).sum() for x, c in zip(outputs, cotangents, strict=True) if x.requires_grad)
    gradients = torch.autograd.grad(loss, inputs, materialize_grads=True, allow_unused=True) if wanted else ()
    return [x.detach() for x in outputs], gradients, bool(ran)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("name", CASES)
def test_twins_give_the_same_values_and_gradients(name: str, dtype: torch.dtype, tolerance: float) -> None:
    equation, twin = TWINS[name]
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        for seed, (function, make) in enumerate(CASES[name]):
            torch.manual_seed(seed)
            inputs = [x.requires_grad_() for x in make()]
            fast, fast_gradients, ran = outcome(function, inputs, twin)
            assert ran, f"{twin.__name__} did not run"
            with plain_equations():
                plain, gradients, ran = outcome(function, inputs, equation)
            assert ran, f"{equation.__name__} did not run"
            torch.testing.assert_close(fast, plain, atol=tolerance, rtol=tolerance)
            scale = max((float(x.abs().max()) for x in gradients), default=1.0)
            for ours, theirs in zip(fast_gradients, gradients, strict=True):
                torch.testing.assert_close(ours, theirs, atol=10 * tolerance * max(1.0, scale), rtol=10 * tolerance)
    finally:
        torch.set_default_dtype(before)


GRADCHECKED = [
    "replications.show_attend_tell.attention.log_weights", "shared.layers.lstm.lstm_unit",
    "replications.bahdanau.model.read", "replications.bahdanau.model.align_and_write",
]  # fmt: skip


@pytest.mark.parametrize("name", GRADCHECKED)
def test_hand_written_backward_passes_pass_gradcheck(name: str) -> None:
    torch.manual_seed(1)
    function, make = CASES[name][0]
    inputs = tuple(x.double().requires_grad_() for x in make())

    def seeded(*x):
        torch.manual_seed(2)
        return function(*x)

    assert torch.autograd.gradcheck(seeded, inputs)
    for frozen in range(len(inputs)):  # an input that wants no gradient does not hinder the others
        some = [x.detach() if n == frozen else x for n, x in enumerate(inputs)]
        out = seeded(*some)
        out = out if isinstance(out, torch.Tensor) else out[0]
        gradients = torch.autograd.grad(out.sum(), [x for x in some if x.requires_grad], allow_unused=True)
        assert all(gradient is None or gradient.isfinite().all() for gradient in gradients)
