"""How much memory a computation needs at most, beyond what is there when it begins.

On a CPU all allocations and releases of PyTorch's allocator are added up in their order, those inside fused kernels and
autograd among them: the same computation needs the same number of bytes every time, on a busy machine too. On a GPU the
caching allocator keeps that count itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import accumulate

import torch
from torch.profiler import ProfilerActivity, profile

MEBIBYTE = 2**20
_ALLOCATION = "[memory]"
"""What the profiler calls one, or a release, whose size is negative."""


def peak_memory(function: Callable[[], object], device: torch.device | None = None) -> int:
    """The most bytes of tensors that are held at once while ``function()`` runs, what it returns among them.

    What was there before counts nothing, so the function should release none of it. Call it once before, if it keeps
    something from its first call on.

    Args:
        function: what is measured.
        device: whose memory; the CPU's unless given.
    """
    if device is not None and device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        function()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # or the profiler writes to the terminal each time
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        result = function()
    del result  # not before the profile ends
    assert seen.profiler is not None
    assert seen.profiler.kineto_results is not None
    events = [event for event in seen.profiler.kineto_results.events() if event.name() == _ALLOCATION]
    changes: Iterator[int] = (event.nbytes() for event in sorted(events, key=lambda event: event.start_ns()))
    return max(accumulate(changes, initial=0))
