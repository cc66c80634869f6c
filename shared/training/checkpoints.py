"""Reading and writing checkpoints; kept apart from training so that evaluation does without Lightning Fabric."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from shared.errors import ReplicationError


@dataclass(frozen=True)
class TrainingRecord:
    """What training measured; by default there was nothing to train."""

    updates: int = 0
    precision: str = "none"  # what "auto" came to
    stopped_because: str = "there is nothing to train"
    wall_seconds: float = 0.0
    processor_seconds: float = 0.0  # user and system; wall time says little on a busy machine
    tokens_per_second: float = 0.0
    best_valid_loss: float = 0.0  # at the best update, whatever quantity decided which that is
    best_update: int = 0


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint without running anything that may be in it.

    Raises:
        ReplicationError: it is missing or damaged.
    """
    try:
        checkpoint: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise ReplicationError(f"{path} does not exist; run the train stage first.") from None
    except (RuntimeError, OSError, EOFError, ValueError, pickle.UnpicklingError) as error:
        raise ReplicationError(f"{path} is damaged ({type(error).__name__}); delete it and train again.") from None
    return checkpoint


def save_checkpoint(checkpoint: Mapping[str, Any], path: Path) -> None:
    """Write a checkpoint whole or not at all, whatever happens meanwhile."""
    content, partial = io.BytesIO(), path.with_suffix(".partial")
    torch.save(checkpoint, content)  # to memory: of a full disk, torch would not say what has happened
    try:
        partial.write_bytes(content.getbuffer())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def load_weights(model: nn.Module, path: Path) -> None:
    """Load the weights that a module held under ``model`` when it was trained into the bare model."""
    weights = load_checkpoint(path)["state_dict"]
    model.load_state_dict({key.removeprefix("model."): value for key, value in weights.items()})
