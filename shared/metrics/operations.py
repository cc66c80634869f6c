"""How many multiply-adds a forward pass takes, and how many of its matrix products wait for one another.

Counted below autograd, operator by operator as PyTorch carries them out, so that what a module, a loop or a custom
autograd function is made of needs no formula of its own. Only products of matrices and vectors count, as everywhere in
the literature; what is done to single elements does not.
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
"""What an update costs in forward passes: its own, and twice as much again for the gradients of inputs and weights."""

aten = torch.ops.aten


def _vectors(*factors: Tensor, **_: Any) -> int:
    return OPERATIONS_PER_MULTIPLY_ADD * factors[-2].numel()


def _lstm_layer(x: Tensor, w_input: Tensor, w_state: Tensor, *_: Any, **__: Any) -> int:
    return OPERATIONS_PER_MULTIPLY_ADD * prod(x.shape[:2]) * (w_input.numel() + w_state.numel())


# By operator, in floating-point operations: those that are one product, and those that hold several.
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
}
# Operators of several tensors that multiply none with another, or only element by element.
_FREE = {
    aten.cat, aten.stack, aten.copy_, aten.scatter_add, aten.index_put, aten.index_put_, aten.native_layer_norm,
    aten.select_scatter, aten.slice_scatter,
}  # fmt: skip


def count_operations(function: Callable[..., Any], *arguments: Any) -> int:
    """Multiply-adds of ``function(*arguments)``: all that it multiplies, what a mask then throws away included.

    Call it within :func:`shapes_only` to be spared the arithmetic.

    Raises:
        NotImplementedError: it uses an operator that may hold products and of which this module knows nothing.
    """
    products = _Products()
    with products:
        function(*arguments)
    return products.operations // OPERATIONS_PER_MULTIPLY_ADD


def longest_chain(function: Callable[..., Any], *arguments: Any) -> int:
    """How many products of ``function(*arguments)`` must be made one after another, however parallel the machine.

    A product waits for another if it reads memory that was written with the other's help. Memory is followed as whole
    allocations, whose parts are not told apart: a chain can come out too long, never too short.

    Raises:
        NotImplementedError: as :func:`count_operations`, or a fused kernel hides its products; with arguments and
            weights on the device ``meta`` PyTorch does without such kernels.
    """
    chain = _Chain()
    with chain:
        function(*arguments)
    return chain.longest


@contextmanager
def shapes_only() -> Iterator[None]:
    """Tensors made within have a shape and a type but no elements: models of any size cost neither time nor memory.

    Build the model within, too; one from outside might keep such a tensor.
    """
    with FakeTensorMode():
        yield


class _Products(TorchDispatchMode):
    """Sees every operator and adds up the operations of its products."""

    formulas = _PRODUCTS | _FUSED

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: int = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        formula = self.formulas.get(func.overloadpacket)
        if formula is not None:
            self.operations += formula(*args, **kwargs, out_val=result)
        elif _may_hold_products(func, _tensors((args, kwargs))):
            raise NotImplementedError(
                f"{func} may hold products that nobody counts; give it a formula in {__name__}, or say that it is free."
            )
        self.follow(_tensors((args, kwargs)), _tensors(result), formula is not None)
        return result

    def follow(self, inputs: list[Tensor], results: list[Tensor], is_product: bool) -> None:
        """Nothing more is wanted of an operator."""


class _Chain(_Products):
    """Notes of every piece of memory how many products in a row have led to what is in it."""

    formulas = _PRODUCTS

    def __init__(self) -> None:
        super().__init__()
        self.longest: int = 0
        self._depths: dict[int, int] = {}
        self._alive: list[Tensor] = []  # freed memory would be used again

    def follow(self, inputs: list[Tensor], results: list[Tensor], is_product: bool) -> None:
        """One more than the deepest of the inputs, if it is a product."""
        depth = max((self._depths.get(_memory(tensor), 0) for tensor in inputs), default=0) + is_product
        self.longest = max(self.longest, depth)
        self._depths |= {_memory(tensor): depth for tensor in results}
        self._alive += results


def _may_hold_products(func: Any, inputs: list[Tensor]) -> bool:
    """A product has two factors, and operators say of themselves if they go element by element."""
    name = func.overloadpacket.__name__.lstrip("_")
    if name.startswith(("fft", "linalg")):  # of a single tensor, but no less work
        return True
    several = sum(tensor.is_floating_point() for tensor in inputs) > 1
    return several and torch.Tag.pointwise not in func.tags and func.overloadpacket not in _FREE


def _tensors(values: Any) -> list[Tensor]:
    return [value for value in tree_leaves(values) if isinstance(value, Tensor)]


def _memory(tensor: Tensor) -> int:
    storage: int = tensor.untyped_storage()._cdata
    return storage
