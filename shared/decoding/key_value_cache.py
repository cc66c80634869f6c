"""Keys and values of the symbols decoded so far: written in place, and never moved when beams change places.

Shape letters: N layers, B sources (B′ of them still searched), k beams of a source, H heads, C slots in use, K key
width, V value width.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from shared.decoding.protocol import select_beams


class KeyValueCache:
    """All beams of a source write into one row of slots, k at every step; a mask says which beams see a slot.

    A beam sees the slots that its ancestors wrote. Reordering the beams reorders this mask only, whereas a cache per
    beam would be copied as a whole. Slots that no beam sees any more are removed from time to time. Beams soon share
    their ancestors, so about as many slots are in use as one beam has symbols, for any k.

    Args:
        layers: N.
        batch: B.
        heads: H.
        key_size: K.
        value_size: V.
        like: a tensor of the type and on the device that the cache is to have.
        capacity: slots to begin with; they double when they are full, or grow more if a step needs more.
    """

    def __init__(
        self, *, layers: int, batch: int, heads: int, key_size: int, value_size: int, like: Tensor, capacity: int = 64
    ) -> None:  # fmt: skip
        self.keys = like.new_empty(layers, batch, heads, capacity, key_size)
        self.values = like.new_empty(layers, batch, heads, capacity, value_size)
        self.visible: Tensor | None = None  # (B, k, C) bool; None while there is one beam, which sees every slot
        self.used = 0  # C
        self._tidy_at = capacity  # number of slots in use from which on unseen slots are removed
        self._beams = 1

    @property
    def mask(self) -> Tensor | None:
        """(B, 1, k, C) bool, true where a beam may look; None if everywhere."""
        return None if self.visible is None else self.visible.unsqueeze(1)

    def open(self, beams: int) -> None:
        """Begin a step: a slot for each of the k beams, which that beam alone will see."""
        if self.visible is not None and self.used + beams > self._tidy_at:
            self._close_slots()
        batch, capacity = self.keys.size(1), self.keys.size(3)
        if self.used + beams > capacity:
            room = (0, 0, 0, max(capacity, beams))
            self.keys, self.values = (functional.pad(buffer, room) for buffer in (self.keys, self.values))
        if self.visible is not None:
            own = torch.eye(beams, dtype=torch.bool, device=self.keys.device).expand(batch, -1, -1)
            self.visible = torch.cat((self.visible, own), dim=2)
        self._beams = beams
        self.used += beams

    def write(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Put a layer's keys (B, H, k, K) and values (B, H, k, V) into this step's slots.

        Returns:
            The layer's keys (B, H, C, K) and values (B, H, C, V) of all steps, as views.
        """
        keys, values = self.keys[layer], self.values[layer]
        keys[:, :, self.used - self._beams : self.used] = k
        values[:, :, self.used - self._beams : self.used] = v
        return keys[:, :, : self.used], values[:, :, : self.used]

    def reorder(self, sources: Tensor | None, beams: Tensor) -> None:
        """Keep some sources and beams; see :meth:`shared.decoding.protocol.IncrementalDecoder.reorder`."""
        if self.visible is None and beams.size(1) > 1:
            self.visible = beams.new_ones(self.keys.size(1), 1, self.used, dtype=torch.bool)
        if self.visible is not None:
            self.visible = select_beams(self.visible, sources, beams)
        if sources is not None:
            self.keys, self.values = (self._closed_up(buffer, sources) for buffer in (self.keys, self.values))

    def _close_slots(self) -> None:
        """Move the slots that some beam sees over the others; the order of slots means nothing."""
        assert self.visible is not None
        seen = self.visible.any(1)  # (B, C)
        used = int(seen.sum(1).max())
        kept = seen.byte().argsort(dim=1, descending=True, stable=True)[:, :used]
        for row, slots in enumerate(kept):
            for buffer in (self.keys, self.values):
                buffer[:, row, :, :used] = buffer[:, row].index_select(2, slots)
        self.visible = self.visible.gather(2, kept.unsqueeze(1).expand(-1, self.visible.size(1), -1))
        self.used, self._tidy_at = used, used + max(used // 2, 64)  # so that moving stays cheap beside reading

    def _closed_up(self, buffer: Tensor, sources: Tensor) -> Tensor:
        """Move rows up over those that left, within the buffer; rows before the first gap stay where they are."""
        gap = int((sources == torch.arange(len(sources), device=sources.device)).sum())
        buffer[:, gap : len(sources), :, : self.used] = buffer[:, sources[gap:], :, : self.used]
        return buffer[:, : len(sources)]
