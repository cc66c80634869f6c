"""How equal the forms of causal linear attention are, and what its gradient keeps (sections 3.3 and 3.4).

Every form is compared with equation (8) in float64, one query at a time as the paper writes it. This reference shares
no code with ``shared/attention/linear.py``. The paper's cumulative sums are also implemented here: autograd keeps all
of them in memory, and algorithm 1 avoids that.

Shape letters: B sequences, T symbols, D model width, H heads, C features (the width of queries and keys), M width of
values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from replications.linear_transformer.model import ELU, LinearAttention, LinearTransformer, phi
from replications.linear_transformer.settings import ExactnessConfig
from shared.attention import linear
from shared.attention.multi_head import MultiHeadAttention
from shared.tasks.replication import NetworkStudy
from shared.tasks.settings import RunConfig

Form = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Causal attention: φ(q) and φ(k), (B, H, T, C) each, and values (B, H, T, M), to (B, H, T, M)."""

TYPES = {"float32": torch.float32, "float64": torch.float64}
BYTES = 4
"""Bytes of a number in float32."""
SEQUENCES = 2
"""B in the comparison of forms."""


class Outcome(NamedTuple):
    """The results of a form, and the gradients of a scalar function of them."""

    values: Tensor
    gradients: tuple[Tensor, ...]


def sum_over_keys(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Equation (8), a query at a time: a :data:`Form`."""
    rows = []
    for i in range(q.size(2)):
        similarity = (q[:, :, i : i + 1] * k[:, :, : i + 1]).sum(-1, keepdim=True)  # (B, H, i + 1, 1)
        rows.append((similarity * v[:, :, : i + 1]).sum(2) / similarity.sum(2))
    return torch.stack(rows, dim=2)


def cumulative_sums(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Equations (9) to (12), S_i and Z_i of all positions at once: a :data:`Form`."""
    s = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(2)  # (B, H, T, C, M)
    z = k.cumsum(2)
    return (q.unsqueeze(-2) @ s).squeeze(-2) / (q * z).sum(-1, keepdim=True)


FORMS: dict[str, Form] = {
    "parallel": lambda q, k, v: linear.parallel_linear_attention(q, k, v)[0],
    "chunkwise": lambda q, k, v: linear.chunkwise_linear_attention(q, k, v)[0],
    "recurrent": lambda q, k, v: linear.recurrent_linear_attention(q, k, v)[0],
    "cumulative": cumulative_sums,
}
"""Training uses the chunkwise form, which has its own backward pass; generation uses the recurrent form."""


class Exactness(NetworkStudy):
    """The variant ``exactness``; its settings lie over those of the task's network, which is made linear."""

    def measure(self, config: RunConfig, seed: int) -> Mapping[str, float]:
        """The maximum over the drawn networks of each of :func:`differences`, and the metrics of :func:`kept`."""
        settings = config.checked_model(ExactnessConfig)
        found: list[dict[str, float]] = []
        for draw in range(settings.draws):
            torch.manual_seed(1000 * seed + draw)
            model = self.build(settings.linear, settings.symbols, True).eval()
            inputs = torch.randint(settings.symbols, (SEQUENCES, settings.length + 1))
            found.append(
                differences("layer", *layer_outcomes(heads_of(model), settings.length))
                | differences("model", *model_outcomes(model, inputs[:, :-1], inputs[:, 1:]))
            )
        numbers = torch.tensor([list(one.values()) for one in found], dtype=torch.float64)
        largest = numbers.amax(0).tolist()  # unlike Python's max, this is NaN if any number is NaN
        return dict(zip(found[0], largest, strict=True)) | kept(heads_of(model), settings.lengths)


def heads_of(model: LinearTransformer) -> MultiHeadAttention:
    """The projections of the first layer's attention."""
    return model.attentions[0].heads


def differences(level: str, outcomes: Mapping[tuple[str, str], Outcome], exact: Outcome) -> dict[str, float]:
    """How far every form is from equation (8) in float64, and the recurrent one from the chunkwise one.

    ``<level>_<form>.values_<type>`` and ``<level>_recurrent_to_chunkwise.values_<type>`` are the largest absolute
    differences of the results. ``….gradients_<type>`` are those of the gradients, each gradient tensor relative to its
    largest absolute entry.

    Args:
        level: ``layer`` or ``model``.
        outcomes: by form and type.
        exact: the reference by equation (8).
    """
    pairs = {key: (outcome, exact) for key, outcome in outcomes.items()}
    for of in TYPES:
        pairs["recurrent_to_chunkwise", of] = outcomes["recurrent", of], outcomes["chunkwise", of]
    metrics = {}
    for (which, of), (one, other) in pairs.items():
        values, gradients = _apart(one, other)
        metrics[f"{level}_{which}.values_{of}"] = values
        metrics[f"{level}_{which}.gradients_{of}"] = gradients
    return metrics


def _apart(one: Outcome, other: Outcome) -> tuple[float, float]:
    """The largest difference of values and, relative to the largest of each tensor, of gradients."""
    gradients = [
        (x.double() - y.double()).abs().max() / y.abs().max().double()
        for x, y in zip(one.gradients, other.gradients, strict=True)
    ]
    values = (one.values.double() - other.values.double()).abs().max()
    return values.item(), torch.stack(gradients).max().item()


def layer_outcomes(heads: MultiHeadAttention, length: int) -> tuple[dict[tuple[str, str], Outcome], Outcome]:
    """Outcomes of attention alone on random queries, keys and values of a layer's sizes, with the gradients of these.

    Returns:
        Outcomes by form and type, and that of equation (8) in float64.
    """
    inputs, towards = random_inputs(heads, SEQUENCES, length)

    def outcome(form: Form, dtype: torch.dtype, features: Callable[[Tensor], Tensor] = ELU) -> Outcome:
        q, k, v = (x.to(dtype).requires_grad_() for x in inputs)
        out = form(features(q), features(k), v)
        return Outcome(out.detach(), torch.autograd.grad(out, (q, k, v), towards.to(dtype)))

    exact = outcome(sum_over_keys, torch.float64, phi)
    return {(form, of): outcome(FORMS[form], TYPES[of]) for form, of in product(FORMS, TYPES)}, exact


def random_inputs(heads: MultiHeadAttention, batch: int, length: int) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
    """Queries and keys (B, H, T, C), values (B, H, T, M), and a random cotangent (B, H, T, M) of the results."""
    c, m = heads.key_size, heads.value_size
    q, k, v, towards = (torch.randn(batch, heads.heads, length, size) for size in (c, c, m, m))
    return (q, k, v), towards


def model_outcomes(
    model: LinearTransformer, inputs: Tensor, targets: Tensor
) -> tuple[dict[tuple[str, str], Outcome], Outcome]:
    """Outcomes of a whole network: its states (B, T, D), and the gradients of all its parameters.

    Args:
        model: in float32.
        inputs: symbols (B, T).
        targets: (B, T), whose negative log-likelihood is differentiated.

    Returns:
        Outcomes of the chunkwise and the recurrent form by type, and that of equation (8) in float64.
    """

    def outcome(run: Callable[[LinearTransformer, Tensor], Tensor], of: LinearTransformer) -> Outcome:
        parameters = [p for p in of.parameters() if p.requires_grad]
        h = run(of, inputs)
        return Outcome(h.detach(), torch.autograd.grad(of.output(h, targets).sum(), parameters))

    models = {of: deepcopy(model).to(dtype) for of, dtype in TYPES.items()}
    runs = {"chunkwise": lambda of, inputs: of(inputs), "recurrent": step_by_step}
    outcomes = {(form, of): outcome(runs[form], models[of]) for form, of in product(runs, TYPES)}
    with by_equation(models["float64"]):
        return outcomes, outcome(runs["chunkwise"], models["float64"])


def step_by_step(model: LinearTransformer, inputs: Tensor) -> Tensor:
    """Symbols (B, T) to states (B, T, D) as a recurrent network (equations 16 to 20)."""
    state, states = model.initial_state(len(inputs)), []
    for symbols in inputs.unbind(1):
        h, state = model.step(symbols, state)
        states.append(h)
    return torch.stack(states, dim=1)


@contextmanager
def by_equation(model: LinearTransformer) -> Iterator[None]:
    """Inside, the self-attention of all layers is :func:`sum_over_keys` of their own projections."""

    def replaced(attention: LinearAttention, arguments: tuple[Any, ...], _: Any) -> Tensor:
        (k, v), q = attention.heads.project(arguments[0]), attention.heads.queries(arguments[0])
        return attention.heads.joined(sum_over_keys(phi(q), phi(k), v))

    handles = [attention.register_forward_hook(replaced) for attention in model.attentions]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def kept(heads: MultiHeadAttention, lengths: Sequence[int]) -> dict[str, float]:
    """Bytes that each form keeps for the backward pass, of one sequence and one layer, in float32.

    ``<form>.kept_bytes_n<T>`` counts all of them. ``<form>.kept_beyond_n<T>`` excludes φ(q), φ(k), values and results,
    which every form needs. ``<form>.kept_beyond_per_symbol`` is the increase of the latter from the least T to the
    largest, as numbers per head and additional symbol. ``<form>.kept_growth`` is the ratio of the bytes per symbol at
    the largest T to those at the least. ``kept_ratio@<T>`` is the ratio of the bytes of the cumulative sums to those of
    the chunkwise form; ``kept_ratio`` is that ratio at the largest T.

    Args:
        heads: attention whose sizes are taken.
        lengths: T, ascending, at least two.
    """
    metrics: dict[str, float] = {}
    for form, length in product(FORMS, lengths):
        (q, k, v), _ = random_inputs(heads, 1, length)
        everything, beyond = kept_bytes(FORMS[form], ELU(q), ELU(k), v)
        metrics[f"{form}.kept_bytes_n{length}"], metrics[f"{form}.kept_beyond_n{length}"] = everything, beyond
    least, largest = lengths[0], lengths[-1]
    for form in FORMS:
        more = metrics[f"{form}.kept_beyond_n{largest}"] - metrics[f"{form}.kept_beyond_n{least}"]
        metrics[f"{form}.kept_beyond_per_symbol"] = more / BYTES / heads.heads / (largest - least)
        growth = metrics[f"{form}.kept_bytes_n{largest}"] / metrics[f"{form}.kept_bytes_n{least}"]
        metrics[f"{form}.kept_growth"] = growth * least / largest
    for length in lengths:
        metrics[f"kept_ratio@{length}"] = (
            metrics[f"cumulative.kept_bytes_n{length}"] / metrics[f"chunkwise.kept_bytes_n{length}"]
        )
    return metrics | {"kept_ratio": metrics[f"kept_ratio@{largest}"]}


def kept_bytes(form: Form, q: Tensor, k: Tensor, v: Tensor) -> tuple[int, int]:
    """Bytes that a form keeps for the backward pass: all, and those outside of the storage of its inputs and result.

    Args:
        form: what is measured.
        q: see :data:`Form`.
        k: likewise.
        v: likewise.
    """
    inputs, saved = [x.detach().requires_grad_() for x in (q, k, v)], []

    def pack(x: Tensor) -> Tensor:
        saved.append(x)
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        out = form(*inputs)
    sizes = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in saved}
    given = {x.untyped_storage().data_ptr() for x in (*inputs, out)}
    return sum(sizes.values()), sum(size for where, size in sizes.items() if where not in given)
