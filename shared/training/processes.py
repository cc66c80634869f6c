"""Data parallelism: one run that several processes share, which torchrun has started, perhaps on several machines.

PyTorch's DistributedDataParallel, through Lightning Fabric, means gradients over the processes. Here is decided which
of an update's batches each of them computes, such that the update is that of one process: its ``accumulate`` batches
are dealt out in turn. Where a batch continues the one before, so that a process must read them all, each has its
columns.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from shared.errors import ReplicationError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Group:
    """The processes that share a run, as one of them sees them; by default it is the only one.

    Attributes:
        rank: the number of this process, from 0; the first one writes files.
        size: how many there are.
        local: how many of them are on this machine.
    """

    rank: int = 0
    size: int = 1
    local: int = 1

    @classmethod
    def here(cls) -> Group:
        """The group that torchrun has put this process into."""
        if "TORCHELASTIC_RUN_ID" not in os.environ:
            return cls()
        return cls(*(int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")))

    @property
    def first(self) -> bool:
        """Whether this process writes files and says what is to be said."""
        return self.rank == 0

    def meet(self) -> None:
        """Wait until all processes are here; the first time they find each other at torchrun's address."""
        self.sums([0.0])  # not a barrier, which would need to know each process's GPU

    def agree(self, value: int) -> int:
        """The value that the first process has."""
        return int(self.sums([value if self.first else 0])[0])

    def sums(self, values: Sequence[float]) -> list[float]:
        """The sums of each value over the processes, in float64."""
        if self.size == 1:
            return [*values]
        import torch

        held = torch.tensor(values, dtype=torch.float64)
        self._distributed().all_reduce(held)
        return held.tolist()

    def join(self, part: Tensor, axis: int) -> Tensor:
        """The parts of all processes, which have one shape, behind each other along an axis."""
        if self.size == 1:
            return part
        import torch

        parts = [torch.empty_like(part, device="cpu") for _ in range(self.size)]
        self._distributed().all_gather(parts, part.cpu().contiguous())
        return torch.cat(parts, dim=axis)

    def part(self, whole: Tensor, axis: int) -> Tensor:
        """This process's part of a tensor, the inverse of :meth:`join`.

        Raises:
            ReplicationError: the tensor has no parts of equal size.
        """
        count = whole.size(axis)
        if count % self.size:
            raise ReplicationError(
                f"{count} columns of text (training.batch.sentences) cannot be shared equally by {self.size} "
                "processes; start as many as divide them."
            )
        return whole.chunk(self.size, axis)[self.rank]

    def deal(self, batches: Iterator[Any], accumulate: int, continues: bool) -> tuple[Iterator[Any], int]:
        """What this process reads of all batches, and how many of them in every update of ``accumulate``.

        Args:
            batches: of training.
            accumulate: how many of them make an update.
            continues: whether each continues the one before. Then ``each(f)`` of a batch is the same batch with f of
                its tensors, whose first axis is the columns.

        Raises:
            ReplicationError: an update cannot be shared equally.
        """
        if self.size == 1:
            return batches, accumulate
        if continues:
            return (batch.each(partial(self.part, axis=0)) for batch in batches), accumulate
        if accumulate % self.size:
            raise ReplicationError(
                f"an update of {accumulate} batches (training.accumulate) cannot be shared equally by {self.size} "
                "processes; start as many as divide them, or accumulate more and smaller batches."
            )
        return islice(batches, self.rank, None, self.size), accumulate // self.size

    def _distributed(self) -> Any:
        """``torch.distributed``, with a group of processes: gloo between processors, NCCL between GPUs."""
        import torch
        from torch import distributed

        if not distributed.is_initialized():
            distributed.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
            atexit.register(distributed.destroy_process_group)  # threads that are left at the end abort a process
        return distributed
