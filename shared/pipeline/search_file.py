"""``replications/<paper>/<scale>/search.yaml``: which settings are tried before the plan of a paper is frozen."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field

from shared.config import Strict, build, flat, load_yaml, merge, near
from shared.errors import ReplicationError
from shared.pipeline.config import EMPTY, ScaleFile, Seeds, Words
from shared.pipeline.train import runnable
from shared.tasks.sections import check_model, find_route

if TYPE_CHECKING:
    from shared.tasks.settings import RunConfig

Value = bool | int | float | str


class Tried(Strict):
    """Variants each of which is trained with each value of one setting.

    Attributes:
        variants: their names.
        key: of the setting in a variant, such as ``training.optimizer.learning_rate``.
        values: what is tried.
        updates: of a trial; null: as many as in ``params.yaml``.
        kept: variant to the reason why it keeps a value that is not the best one.
    """

    variants: list[str] = Field(min_length=1)
    key: str
    values: list[Value] = Field(min_length=2)
    updates: int | None = Field(default=None, ge=1)
    kept: dict[str, Words] = EMPTY


class Same(Strict):
    """Variants that are not tried: their settings of the searched keys are those of another one.

    Attributes:
        variants: their names.
        same_as: the variant that is tried.
        because: why its values suit them.
        kept: variant to the reason why it has another value all the same.
    """

    variants: list[str] = Field(min_length=1)
    same_as: str
    because: Words
    kept: dict[str, Words] = EMPTY


class _Content(Strict):
    seeds: Seeds
    groups: list[dict[str, Any]] = Field(min_length=1)


class Search(NamedTuple):
    """A checked ``search.yaml``.

    Attributes:
        path: of the file.
        settings: of the paper at the scale.
        seeds: of pilots.
        tried: groups that are trained.
        same: groups that are not.
    """

    path: Path
    settings: ScaleFile
    seeds: list[int]
    tried: list[Tried]
    same: list[Same]

    def config(self, group: Tried, variant: str, value: Value) -> RunConfig:
        """The settings of a trial; one whose gradient is not finite ends there and harms no other.

        Raises:
            ReplicationError: the value does not fit.
        """
        changes: Any = value
        for part in reversed(group.key.split(".")):
            changes = {part: changes}
        usual = self.settings.run(variant).training
        updates = group.updates or usual.updates
        training: dict[str, Any] = {"updates": updates}
        if updates % usual.validate_every:  # what it is judged by is the loss at its end
            training["validate_every"] = updates
        if usual.average is None:
            training["may_diverge"] = True
        try:
            config = self.settings.run(variant, merge({"training": training}, changes))
            check_model(_models(self.settings), config)
        except ReplicationError as error:
            raise ReplicationError(
                f"{self.path}: {variant}: values: {group.key} {value!r} cannot be tried: {error}"
            ) from None
        return config

    def keys(self, variant: str) -> list[str]:
        """The settings of a variant that are tried."""
        return [group.key for group in self.tried if variant in group.variants]

    def value(self, variant: str, key: str) -> Any:
        """The value of a setting in ``params.yaml``.

        Raises:
            ReplicationError: its training has no such setting, or it is a study.
        """
        known = _trained_settings(self.settings, variant)
        if known is None:
            raise ReplicationError(f"{self.path}: '{variant}' is a study, which trains no network; take it out.")
        if key not in known:
            raise ReplicationError(
                f"{self.path}: key: '{variant}' is not trained with a setting '{key}'{near(key, known)}."
            )
        return known[key]


def load_search(paper: str, scale: str) -> Search:
    """Read and check the file.

    Raises:
        ReplicationError: it is missing or wrong; names key and value.
    """
    settings = ScaleFile(paper, scale)
    path = settings.path.with_name("search.yaml")
    content = build(_Content, load_yaml(path), where=str(path))
    tried, same = list[Tried](), list[Same]()
    for number, section in enumerate(content.groups):
        where = f"{path}: groups.{number}"
        if "same_as" in section:
            same.append(build(Same, section, where=where))
        else:
            tried.append(build(Tried, section, where=where))
    search = Search(path, settings, content.seeds, tried, same)
    both: list[Tried | Same] = [*tried, *same]
    for each in both:
        _check_variants(search, each)
    _refuse_twice(f"{path}: groups", [f"{group.key} of {variant}" for group in tried for variant in group.variants])
    for group in tried:
        _refuse_twice(f"{path}: values of {group.key}", group.values)
        for variant in group.variants:
            search.value(variant, group.key)
            for value in group.values:
                search.config(group, variant, value)
    for other in same:
        if not (keys := search.keys(other.same_as)):
            known = {variant for group in tried for variant in group.variants}
            raise ReplicationError(f"{path}: same_as: '{other.same_as}' is not tried{near(other.same_as, known)}.")
        for variant in other.variants:
            for key in keys:
                search.value(variant, key)
    return search


def _trained_settings(settings: ScaleFile, variant: str) -> dict[str, Any] | None:
    """Settings that affect the training of a variant, by dotted keys such as ``training.updates``; None for a study."""
    config, models = settings.run(variant), _models(settings)
    check_model(models, config)
    section, routed = find_route(config, models.MODEL, models.ROUTES)
    if section is None:
        model = build(models.MODEL, config.model, where=config.where).model_dump()
    elif section[1].trains_network:
        model = dict(routed.model)
    else:
        return None
    return flat({"training": config.training.model_dump(), "model": model})


def _models(settings: ScaleFile) -> Any:
    return importlib.import_module(f"replications.{settings.paper}.settings")


def _check_variants(search: Search, group: Tried | Same) -> None:
    """Refuse variants that do not run, or whose claims are decided with a seed of the pilots."""
    known = search.settings.known()
    for variant in group.variants:
        if variant not in known:
            raise ReplicationError(f"{search.path}: variants: there is no variant '{variant}'{near(variant, known)}.")
        if variant in search.settings.left_out:
            raise ReplicationError(
                f"{search.path}: '{variant}' is left out at this scale: {search.settings.left_out[variant]}."
            )
        if both := sorted({*search.seeds} & {*runnable(search.settings, variant).seeds}):
            raise ReplicationError(
                f"{search.path}: seeds: {both[0]} is a seed that decides claims about '{variant}'; choose others, "
                "such as 101."
            )
    for variant in group.kept:
        if variant not in group.variants:
            raise ReplicationError(
                f"{search.path}: kept: '{variant}' is no variant of its group{near(variant, group.variants)}."
            )


def _refuse_twice(where: str, values: Sequence[Any]) -> None:
    for number, value in enumerate(values):
        if value in values[:number]:
            raise ReplicationError(f"{where}: {value} stands there twice; leave in one.")
