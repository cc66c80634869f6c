"""Causal linear attention of other projects, which this project never depends on.

Each package is installed into a folder that the user names. performer-pytorch 1.1.4 is installed whole, with the
packages that it imports. pytorch-fast-transformers 0.4.0 has no wheels. Its source is unpacked, and only its extension
of causal products on a CPU is compiled, with the flags of its own setup. The compilation needs a C++ compiler and
ninja, and takes a minute.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

Causal = Callable[[Tensor, Tensor, Tensor], Tensor]
"""φ(q) and φ(k) (B, H, T, C) and v (B, H, T, V) to the results (B, H, T, V) of causal attention."""

PERFORMER = (
    "performer-pytorch==1.1.4", "axial-positional-embedding==0.2.1", "einops==0.8.2", "local-attention==1.4.3",
)  # fmt: skip
FAST = "pytorch-fast-transformers==0.4.0"
FLAGS = ["-O3", "-ffast-math", "-fopenmp"]


def _pip(*arguments: str, path: str | None = None) -> None:
    """Run pip without dependencies, which would bring another version of torch."""
    command = [sys.executable, "-m", "pip", *arguments, "--quiet", "--no-deps", "--disable-pip-version-check"]
    environment = os.environ if path is None else {**os.environ, "PATH": path}
    subprocess.run(command, check=True, env=environment, stdout=sys.stderr)


def performer_pytorch(folder: Path) -> Any:
    """Its module of attention, installed into the folder if it is not there."""
    if not (folder / "performer_pytorch").is_dir():
        _pip("install", "--target", str(folder), *PERFORMER)
    _importable(folder)
    importlib.import_module("setuptools")  # has distutils, which it imports, where Python has it no longer
    return importlib.import_module("performer_pytorch.performer_pytorch")


def fast_transformers(folder: Path) -> Causal:
    """Its causal linear attention on features; the kernel is compiled if it is not there."""
    return partial(normalised, causal_dot_product(folder))


def causal_dot_product(folder: Path) -> Causal:
    """Its kernel alone: Σ_{j ≤ i} φ(q_i)ᵀ φ(k_j) v_j without a normaliser, with its gradient."""
    products = folder / "fast_transformers" / "causal_product"
    if not products.is_dir():
        # Its setup asks for CUDA wherever there is nvcc, even to tell its name: here there is no PATH to find it on.
        download = ("download", "--no-build-isolation", "--no-binary", ":all:", "--dest", str(folder), FAST)
        _pip(*download, path=str(folder))
        with tarfile.open(next(folder.glob("pytorch*fast*transformers*.tar.gz"))) as source:
            source.extractall(folder, filter="data")
        next(folder.glob("pytorch*fast*transformers*/fast_transformers")).rename(products.parent)
    from torch.utils import cpp_extension

    cpp_extension.load(
        "causal_product_cpu", [str(products / "causal_product_cpu.cpp")], extra_cflags=FLAGS,
        extra_ldflags=["-fopenmp"], build_directory=str(products),
    )  # fmt: skip
    _importable(folder)
    product: Causal = importlib.import_module("fast_transformers.causal_product").causal_dot_product
    return product


def _importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def normalised(product: Causal, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """What ``CausalLinearAttention`` of fast-transformers makes of its kernel, after its feature map."""
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    z = 1 / (torch.einsum("nhli,nhli->nhl", q, k.cumsum(2)) + 1e-6)
    return product(q, k, v) * z.unsqueeze(-1)


def performer_attention(folder: Path, *, key_size: int, features: int, causal: bool) -> nn.Module:
    """performer-pytorch's FAVOR+, from queries, keys and values; it prints that it has no CUDA."""
    module = performer_pytorch(folder)
    with contextlib.redirect_stdout(sys.stderr):
        attention: nn.Module = module.FastAttention(key_size, nb_features=features, causal=causal)
    return attention
