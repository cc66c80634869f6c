"""Peak memory of a computation, above the memory in use at its start.

On a CPU this module sums the allocations and releases of PyTorch's allocator in their order, including those of fused
kernels and of autograd. The result is deterministic, on a busy machine too. On a GPU the caching allocator reports the
peak.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import accumulate

import torch
from torch.profiler import ProfilerActivity, profile

MEBIBYTE = 2**20
_ALLOCATION = "[memory]"
"""Name of allocation events in the profiler; a release is an event of negative size."""


def peak_memory(function: Callable[[], object], device: torch.device | None = None) -> int:
    """Return the largest number of bytes that tensors occupy while ``function()`` runs, including its result.

    Tensors from before the call are not counted, and the function should not release them. If the function caches
    something in its first call, call it once before the measurement.

    Args:
        function: the computation that is measured.
        device: the device whose memory is measured; default: the CPU.
    """
    if device is not None and device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        function()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # otherwise the profiler writes to the terminal
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        result = function()
    del result  # the result must outlive the profile
    assert seen.profiler is not None
    assert seen.profiler.kineto_results is not None
    events = [event for event in seen.profiler.kineto_results.events() if event.name() == _ALLOCATION]
    changes: Iterator[int] = (event.nbytes() for event in sorted(events, key=lambda event: event.start_ns()))
    return max(accumulate(changes, initial=0))
