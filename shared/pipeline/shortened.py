"""Prepared tasks with fewer test examples, from which is estimated what judging all of them would cost."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from inspect import isfunction, ismethod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared.data.ragged import RaggedArray
from shared.errors import ReplicationError
from shared.tasks.networks import Networks
from shared.tasks.routed import Routed

Chosen = NDArray[np.int64]


def network_runner(replication: Any, config: Any) -> tuple[Networks[Any, Any, Any], Any]:
    """What trains and judges the networks of a variant, and the settings that it takes, behind whatever routes.

    Raises:
        ReplicationError: the variant trains none.
    """
    while isinstance(replication, Routed):
        replication, config = replication._runner(config)
    if not isinstance(replication, Networks):
        raise ReplicationError("it cannot be tried in parts")
    return replication, config


def shortened_runner(runner: Networks[Any, Any, Any], tests: Collection[str], share: float) -> Networks[Any, Any, Any]:
    """What judges networks on a share of each test split, from 0 to 1; at least one example is left."""
    own, opened = copy.copy(runner), runner._open

    def open_short(config: Any, prepared: Path) -> Any:
        return shortened(opened(config, prepared), tests, share)

    object.__setattr__(own, "_open", open_short)
    return own


def as_long_as_references(runner: Networks[Any, Any, Any], config: Any, prepared: Path) -> Any:
    """The settings with which a model generates texts about as long as the references, whatever it has learned."""
    split = runner._open(config, prepared).split(config.corpus.test[0])
    if hasattr(config, "decoding"):
        ratio = float(split.target.lengths.mean() / split.source.lengths.mean())
        bounds = {"minimum_ratio": ratio, "maximum_ratio": ratio, "maximum_extra": 1}
        return config.model_copy(update={"decoding": config.decoding.model_copy(update=bounds)})
    if hasattr(config.evaluation, "longest"):
        longest = {"longest": max(1, round(float(split.lengths[0].mean())))}
        return config.model_copy(update={"evaluation": config.evaluation.model_copy(update=longest)})
    return config


def shortened(text: Any, tests: Collection[str], share: float) -> Any:
    """A prepared task in whose test splits only a share of the examples is left.

    All that takes the name of a split gives what belongs to the examples that are left: what it gives is as long as the
    split, or has parts that are.
    """
    kind = type(text)
    cut = {name: _cut(method) for name, method in _of_splits(kind).items()}
    short = copy.copy(text)
    changed = type(kind.__name__, (kind,), cut | {"_tests": frozenset(tests), "_share": share})
    object.__setattr__(short, "__class__", changed)
    return short


def _of_splits(kind: type) -> dict[str, Callable[..., Any]]:
    """The public methods that take the name of a split."""
    methods = {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}
    return {
        name: method
        for name, method in methods.items()
        if isfunction(method) and method.__code__.co_varnames[1:2] == ("name",)
    }


def _cut(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def short(self: Any, name: str, *arguments: Any) -> Any:
        found = method(self, name, *arguments)
        if name not in self._tests:
            return found
        whole = super(type(self), self).split(name)
        count = len(getattr(whole, "features", whole))  # of captioned images; they have several captions each
        return part_of(found, count, chosen(whole, count, self._share))

    return short


def chosen(split: Any, count: int, share: float) -> Chosen:
    """The examples that are left: evenly spread ones, as splits may be in order of length.

    Of a text and of captioned images they are the first ones: a text must stay in one piece, and what belongs to images
    is also kept elsewhere.
    """
    left = max(1, round(count * share))
    if hasattr(split, "features") or hasattr(split, "symbols"):
        return np.arange(left)
    return np.linspace(0, count - 1, left).round().astype(np.int64)


def part_of(value: Any, count: int, left: Chosen) -> Any:
    """Of something that belongs to ``count`` examples what belongs to those that are left; all else is unchanged."""
    if isinstance(value, tuple):
        return tuple(part_of(each, count, left) for each in value)
    if isinstance(value, list):
        return [value[i] for i in left] if len(value) == count else value
    if isinstance(value, np.ndarray):
        return value[left] if len(value) == count else value
    if isinstance(value, RaggedArray):
        if len(value) != count:
            return value
        return value.select(np.isin(np.arange(count), left))
    splits = is_dataclass(value) and (hasattr(value, "batch") or hasattr(value, "windows"))
    if not splits or isinstance(value, type):
        return value
    if hasattr(value, "features"):
        return _fewer_images(value, left)
    parts = {each.name: _field(getattr(value, each.name), count, left) for each in fields(value) if each.init}
    return replace(value, **parts)


def _field(value: Any, count: int, left: Chosen) -> Any:
    """Part of a split; a function takes the number of an example."""
    if isfunction(value) or ismethod(value):
        return lambda index: value(int(left[index]))
    return part_of(value, count, left)


def _fewer_images(split: Any, left: Chosen) -> Any:
    """The first images of a split with all their captions."""
    captions = split.image < len(left)
    symbols = np.repeat(captions, split.captions.lengths)
    return replace(
        split, features=split.features[left], captions=split.captions.select(captions), image=split.image[captions],
        links=split.links[symbols],
    )  # fmt: skip
