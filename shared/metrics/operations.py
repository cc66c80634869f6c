"""The number of multiply-adds of a forward pass, and the length of its longest chain of matrix products.

The count is made below autograd, for every operator that PyTorch dispatches, so modules, loops and custom autograd
functions need no formulas. As in the literature, only products of matrices and vectors count; element-wise operations
do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

OPERATIONS_PER_MULTIPLY_ADD = 2
FORWARD_PASSES = 3
"""The cost of an update in forward passes: one forward, and two for the gradients of inputs and of weights."""

aten = torch.ops.aten


def _vectors(*factors: Tensor, **_: Any) -> int:
    return OPERATIONS_PER_MULTIPLY_ADD * factors[-2].numel()


def _lstm_layer(x: Tensor, w_input: Tensor, w_state: Tensor, *_: Any, **__: Any) -> int:
    return OPERATIONS_PER_MULTIPLY_ADD * prod(x.shape[:2]) * (w_input.numel() + w_state.numel())


def _qr(a: Tensor, *_: Any, **__: Any) -> int:
    """Householder's method, and as many operations again for Q (Golub and Van Loan, section 5.2)."""
    *batch, rows, columns = a.shape
    return prod(batch) * 4 * columns**2 * (rows - columns // 3)


# Formulas of floating-point operations: for operators that are one product, and for operators that hold several.
_PRODUCTS: dict[Any, Callable[..., int]] = {
    **{name: flop_registry[name] for name in (aten.mm, aten.addmm, aten.bmm, aten.baddbmm, aten.convolution)},
    aten.addmm_: flop_registry[aten.addmm],
    aten.baddbmm_: flop_registry[aten.baddbmm],
    aten.mv: _vectors,
    aten.addmv: _vectors,
    aten.dot: _vectors,
}
_FUSED: dict[Any, Callable[..., int]] = {
    **{name: formula for name, formula in flop_registry.items() if name not in _PRODUCTS},
    aten._scaled_dot_product_flash_attention_for_cpu: flop_registry[aten._scaled_dot_product_flash_attention],
    aten.mkldnn_rnn_layer: _lstm_layer,
    aten.linalg_qr: _qr,
}
# Operators of several tensors that do not multiply them, or multiply them element-wise only.
_FREE = {
    aten.cat, aten.stack, aten.copy_, aten.scatter_add, aten.index_put, aten.index_put_, aten.native_layer_norm,
    aten.select_scatter, aten.slice_scatter, aten.linalg_vector_norm,
}  # fmt: skip


def count_operations(function: Callable[..., Any], *arguments: Any) -> int:
    """Return the multiply-adds of ``function(*arguments)``, including products that a mask discards.

    Within :func:`shapes_only` the products are counted but not computed.

    Raises:
        NotImplementedError: it uses an operator that may hold products and that this module does not know.
    """
    products = _Products()
    with products:
        function(*arguments)
    return products.operations // OPERATIONS_PER_MULTIPLY_ADD


def longest_chain(function: Callable[..., Any], *arguments: Any) -> int:
    """Return how many matrix products of ``function(*arguments)`` are sequential on a machine of any parallelism.

    A product depends on another one if it reads memory whose content depends on the other's result. Memory is tracked
    as whole allocations, so the result is an upper bound of the longest chain.

    Raises:
        NotImplementedError: as :func:`count_operations`, or a fused kernel hides its products; PyTorch uses no such
            kernels if arguments and weights are on the device ``meta``.
    """
    chain = _Products(chain=True)
    with chain:
        function(*arguments)
    return chain.longest


@contextmanager
def shapes_only() -> Iterator[None]:
    """A context in which new tensors have a shape and a dtype but no elements, so large models need no time or memory.

    Build the model within the context as well: a model from outside might keep a tensor without elements.
    """
    with FakeTensorMode():
        yield


class _Products(TorchDispatchMode):
    """Intercepts every operator and sums the operations of its products.

    Args:
        chain: whether to track, for every allocation, the longest chain of products that its content depends on.
    """

    def __init__(self, *, chain: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = self.longest = 0
        self._formulas = _PRODUCTS if chain else _PRODUCTS | _FUSED
        self._depths: dict[int, int] | None = {} if chain else None
        self._alive: list[Tensor] = []  # keeps the tensors alive, so that no address is used again

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        inputs, formula = _tensors((args, kwargs)), self._formulas.get(func.overloadpacket)
        if formula is not None:
            self.operations += formula(*args, **kwargs, out_val=result)
        elif _may_hold_products(func, inputs):
            raise NotImplementedError(
                f"{func} may hold products that nobody counts; give it a formula in {__name__}, or say that it is free."
            )
        if self._depths is not None:
            depths = (self._depths.get(_memory(tensor), 0) for tensor in inputs)
            depth = max(depths, default=0) + (formula is not None)
            self.longest = max(self.longest, depth)
            self._alive += _tensors(result)
            self._depths |= {_memory(tensor): depth for tensor in _tensors(result)}
        return result


def _may_hold_products(func: Any, inputs: list[Tensor]) -> bool:
    """Return whether an operator may hold a product: it has two factors and is not tagged as element-wise."""
    name = func.overloadpacket.__name__.lstrip("_")  # fft and linalg: products of a single tensor with itself
    several = sum(tensor.is_floating_point() for tensor in inputs) > 1 or name.startswith(("fft", "linalg"))
    return several and torch.Tag.pointwise not in func.tags and func.overloadpacket not in _FREE


def _tensors(values: Any) -> list[Tensor]:
    return [value for value in tree_leaves(values) if isinstance(value, Tensor)]


def _memory(tensor: Tensor) -> int:
    storage: int = tensor.untyped_storage()._cdata
    return storage
