"""What a language model with attention carries from one segment of a text to the next (Dai et al. 2019, section 3.2).

The memory of a layer is the last M of its inputs, cut off from their gradients: the context of a segment of T symbols
is the memory and the segment itself, S = M + T positions. It fills up from nothing.

Shape letters: N layers, B columns (texts read side by side), T symbols of a segment, M length of the memory, S
positions of the context, D model width, H heads, K width of keys and values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from shared.attention.multi_head import KeysValues
from shared.decoding.protocol import Reach
from shared.errors import ReplicationError


class SegmentMemory(ABC):
    """The memories of all layers, in one buffer that is allocated once; segments are written behind each other.

    Only when the end of the buffer is reached, the last M entries move to its beginning.

    Args:
        reach: M, and which part of it each query sees.
        shape: of the buffer before its last two axes, which are time and width; the first is N.
        width: of an entry.
    """

    def __init__(self, reach: Reach, shape: tuple[int, ...], width: int, *, like: Tensor) -> None:
        self.reach = reach
        self._buffer = like.new_empty(*shape, 0, width)
        self._begin = self._end = 0

    def __len__(self) -> int:
        """Number of filled positions, at most M."""
        return self._end - self._begin

    @abstractmethod
    def context(self, layer: int, h: Tensor, project: Callable[[Tensor], KeysValues]) -> KeysValues:
        """Keys and values (B, H, S, K) of a layer's memory and of its input h (B, T, D), which will be remembered."""

    def distances(self, layer: int, keys: int, project: Callable[[int], Tensor]) -> Tensor:
        """``project(S)`` for the number of keys S: the vectors (H, S, K) of a layer's distances S - 1 … 0.

        They are projected anew for every segment, because the weights change in training.
        """
        return project(keys)

    def advance(self, symbols: int) -> None:
        """A segment of so many symbols was read by all layers: it is memory now."""
        if self.reach.memory:
            self._end += symbols
            self._begin = max(self._begin, self._end - self.reach.memory)

    def clear(self) -> None:
        """Forget everything."""
        self._begin = self._end = 0

    def state_dict(self) -> dict[str, Tensor]:
        """What is held."""
        return {"held": self._buffer[..., self._begin : self._end, :].clone()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Hold what another memory of this shape held.

        Raises:
            ReplicationError: it was of another shape, or longer.
        """
        held, ours = state["held"], self._buffer
        if held.shape[:-2] != ours.shape[:-2] or held.size(-1) != ours.size(-1) or held.size(-2) > self.reach.memory:
            raise ReplicationError(
                f"the memory in the checkpoint has the shape {tuple(held.shape)}, which does not fit the model's "
                f"{tuple(ours.shape[:-2])} layers and columns of width {ours.size(-1)} and length {self.reach.memory}; "
                "delete the checkpoint and train again."
            )
        self.clear()
        self._make_room(held.size(-2))[...] = held.to(ours)
        self._end = held.size(-2)

    def _held(self, layer: int) -> Tensor:
        return self._buffer[layer, ..., self._begin : self._end, :]

    def _make_room(self, symbols: int) -> Tensor:
        """The part of the buffer, of all layers, where the next symbols are to be written."""
        size, held = self._buffer.size(-2), len(self)
        if self._end + symbols > size:
            enough = 2 * self.reach.memory + symbols
            source = self._buffer[..., self._begin : self._end, :]
            if enough > size:
                self._buffer = self._buffer.new_empty(*self._buffer.shape[:-2], enough, self._buffer.size(-1))
            self._buffer[..., :held, :] = source  # they never overlap: what is left behind is longer than the memory
            self._begin, self._end = 0, held
        return self._buffer[..., self._end : self._end + symbols, :]


class StateMemory(SegmentMemory):
    """The memory of the paper: it holds a layer's inputs, and every segment computes keys and values from them anew.

    Args:
        reach: M, and which part of it each query sees.
        layers: N.
        columns: B.
        width: D.
        like: a tensor of the type and on the device that it is to have.
    """

    def __init__(self, reach: Reach, *, layers: int, columns: int, width: int, like: Tensor) -> None:
        super().__init__(reach, (layers, columns), width, like=like)

    def context(self, layer: int, h: Tensor, project: Callable[[Tensor], KeysValues]) -> KeysValues:
        """See :class:`SegmentMemory`; no gradient flows into the memory."""
        if not self.reach.memory:
            return project(h)
        self._make_room(h.size(1))[layer] = h.detach()
        return project(torch.cat((self._held(layer).to(h.dtype), h), dim=1))


class KeyValueMemory(SegmentMemory):
    """A memory for fixed weights: keys and values are computed once, and so are the vectors of distances.

    It is for evaluation, without gradients. Attention reads the buffer in place.

    Args:
        reach: M, and which part of it each query sees.
        layers: N.
        columns: B.
        heads: H.
        key_size: K.
        like: a tensor of the type and on the device that it is to have.
    """

    def __init__(
        self, reach: Reach, *, layers: int, columns: int, heads: int, key_size: int, like: Tensor
    ) -> None:  # fmt: skip
        super().__init__(reach, (layers, 2, heads, columns), key_size, like=like)
        self._distances: dict[int, Tensor] = {}

    def context(self, layer: int, h: Tensor, project: Callable[[Tensor], KeysValues]) -> KeysValues:
        """See :class:`SegmentMemory`."""
        k, v = project(h)
        if not self.reach.memory:
            return k, v
        room = self._make_room(h.size(1))
        room[layer, 0], room[layer, 1] = k.transpose(0, 1), v.transpose(0, 1)
        both = self._buffer[layer, ..., self._begin : self._end + h.size(1), :]  # (2, H, B, S, K)
        return both[0].transpose(0, 1), both[1].transpose(0, 1)

    def distances(self, layer: int, keys: int, project: Callable[[int], Tensor]) -> Tensor:
        """The vectors for the longest context so far; a shorter context uses the last ones."""
        known = self._distances.get(layer)
        if known is None or known.size(-2) < keys:
            known = self._distances[layer] = project(max(keys, self._buffer.size(-2)))
        return known[..., known.size(-2) - keys :, :]


class HeldStates:
    """What a model has after the last segment, without gradients; nothing at the beginning of a text.

    Of an LSTM it is the hidden and cell states of all layers, (N, B, D) each.

    Args:
        reach: how much is kept.
    """

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self.held: tuple[Tensor, ...] = ()

    def clear(self) -> None:
        """Forget everything."""
        self.held = ()

    def state_dict(self) -> dict[str, Tensor]:
        """What is held."""
        return {str(n): tensor for n, tensor in enumerate(self.held)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Hold what another memory held."""
        self.held = tuple(state[str(n)] for n in range(len(state)))


class HeldInputs(HeldStates):
    """The memory as the paper has it: m^{n-1} of every layer n, its last M inputs (B, ≤M, D)."""

    _next: tuple[Tensor, ...] = ()

    def __len__(self) -> int:
        """Number of filled positions, at most M."""
        return self.held[0].size(1) if self.held else 0

    def context(self, layer: int, h: Tensor, project: Callable[[Tensor], KeysValues]) -> KeysValues:
        """Keys and values of h̃^{n-1} = [SG(m^{n-1}) ∘ h^{n-1}]."""
        context = torch.cat((self.held[layer].detach(), h), dim=1) if self.held else h
        if self.reach.memory:
            self._next = (*self._next, context[:, -self.reach.memory :].detach())
        return project(context)

    def distances(self, layer: int, keys: int, project: Callable[[int], Tensor]) -> Tensor:
        """See :class:`SegmentMemory`."""
        return project(keys)

    def advance(self, symbols: int) -> None:
        """A segment was read by all layers: it is memory now."""
        self.held, self._next = self._next, ()
