"""Keys and values of the symbols decoded so far: written in place, and never moved when beams change places.

Shape letters: B sources (B′ of them still searched), k beams of a source, H heads, C slots in use, K key width, V value
width.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from shared.decoding.protocol import select_beams, select_sources

SLOTS = 64
"""Room to begin with, and the least that it grows by."""


class KeyValueCache:
    """All beams of a source write into one row of slots, k at every step; a mask says which beams see a slot.

    A beam sees the slots that its ancestors wrote. Reordering the beams reorders this mask only, whereas a cache per
    beam would be copied as a whole. Slots that no beam sees any more are removed from time to time. Beams soon share
    their ancestors, so about as many slots are in use as one beam has symbols, for any k.

    Args:
        batch: B.
        device: of the tensors that are written.

    Attributes:
        places: (B, C) the target position of the symbol in each slot.
    """

    def __init__(self, batch: int, device: torch.device) -> None:
        self.places = torch.empty(batch, 0, dtype=torch.long, device=device)
        self._buffers: list[tuple[Tensor, ...]] = []  # of each layer: keys (B, H, ≥C, K) and values (B, H, ≥C, V)
        self._visible: Tensor | None = None  # (B, k, C) bool; None while there is one beam, which sees every slot
        self._tidy_at = SLOTS  # number of slots in use from which on unseen slots are removed
        self._beams = 1

    @property
    def used(self) -> int:
        """C."""
        return self.places.size(1)

    @property
    def mask(self) -> Tensor | None:
        """(B, 1, k, C) bool, true where a beam may look; None if everywhere."""
        return None if self._visible is None else self._visible.unsqueeze(1)

    def open(self, beams: int, t: int) -> None:
        """Begin the step at position t: a slot for each of the k beams, which that beam alone will see."""
        if self._visible is not None and self.used + beams > self._tidy_at:
            self._close_slots()
        if self._visible is not None:
            own = torch.eye(beams, dtype=torch.bool, device=self.places.device).expand(len(self.places), -1, -1)
            self._visible = torch.cat((self._visible, own), dim=2)
        self._beams = beams
        self.places = functional.pad(self.places, (0, beams), value=t)

    def write(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Put a layer's keys (B, H, k, K) and values (B, H, k, V) into this step's slots; layers come in their order.

        Returns:
            The layer's keys (B, H, C, K) and values (B, H, C, V) of all steps, as views.
        """
        if layer == len(self._buffers):
            self._buffers.append((k[:, :, :0], v[:, :, :0]))
        room = self._buffers[layer][0].size(2)
        if self.used > room:
            more = (0, 0, 0, max(room, self._beams, SLOTS))
            self._buffers[layer] = tuple(functional.pad(buffer, more) for buffer in self._buffers[layer])
        keys, values = (buffer[:, :, : self.used] for buffer in self._buffers[layer])
        keys[:, :, -self._beams :], values[:, :, -self._beams :] = k, v
        return keys, values

    def reorder(self, sources: Tensor | None, beams: Tensor) -> None:
        """Keep some sources and beams; see :meth:`shared.decoding.protocol.IncrementalDecoder.reorder`."""
        if self._visible is None and beams.size(1) > 1:
            self._visible = beams.new_ones(len(self.places), 1, self.used, dtype=torch.bool)
        if self._visible is not None:
            self._visible = select_beams(self._visible, sources, beams)
        self.places = select_sources(self.places, sources)
        if sources is not None:  # move rows up over those that left; rows before the first gap stay where they are
            gap = int((sources == torch.arange(len(sources), device=sources.device)).sum())
            for n, buffers in enumerate(self._buffers):
                for buffer in buffers:
                    buffer[gap : len(sources), :, : self.used] = buffer[sources[gap:], :, : self.used]
                self._buffers[n] = tuple(buffer[: len(sources)] for buffer in buffers)

    def _close_slots(self) -> None:
        """Move the slots that some beam sees over the others; the order of slots means nothing."""
        assert self._visible is not None
        seen = self._visible.any(1)  # (B, C)
        used = int(seen.sum(1).max())
        kept = seen.byte().argsort(dim=1, descending=True, stable=True)[:, :used]
        for row, slots in enumerate(kept):
            for buffers in self._buffers:
                for buffer in buffers:
                    buffer[row, :, :used] = buffer[row].index_select(1, slots)
        self._visible = self._visible.gather(2, kept.unsqueeze(1).expand(-1, self._visible.size(1), -1))
        self.places = self.places.gather(1, kept)
        self._tidy_at = used + max(used // 2, SLOTS)  # so that moving stays cheap beside reading
