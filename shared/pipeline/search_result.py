"""Whether the settings of a paper at a scale are those that its search found best (``search.json``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.config import near
from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile
from shared.pipeline.plan import found_path, load_found
from shared.pipeline.provenance import hash_of
from shared.pipeline.search_file import Search, Tried, load_search
from shared.reports.document import Code, Text, listed
from shared.reports.plans import end_of

ASKED = ("key", "values", "updates")


def unfollowed(paper: str, scale: str) -> list[str]:
    """One sentence for each reason why the settings are not the best ones of a search; empty without a search.

    Raises:
        ReplicationError: ``search.yaml`` is wrong, or ``search.json`` cannot be read.
    """
    if not ScaleFile(paper, scale).path.with_name("search.yaml").exists():
        return []
    search = load_search(paper, scale)
    path, command = found_path(search.settings), f"run 'python -m shared.pipeline search {paper} --scale {scale}'"
    record = load_found(search.settings)
    if record is None:
        return [f"{path} does not exist; {command}."]
    answered = [found | {"variants": [*found["variants"]]} for found in record["groups"]]
    if record["seeds"] != search.seeds or [asked(group) for group in search.tried] != answered:
        return [f"{path} is not of what {search.path} asks now; {command} again."]
    lines = []
    for group, found in zip(search.tried, record["groups"], strict=True):
        for variant, outcome in found["variants"].items():
            if outcome["settings"] != settings_digest(search, group, variant):
                lines.append(
                    f"{path}: other settings of '{variant}', or its data, have changed since; {command} again."
                )
            elif variant not in group.kept:
                lines += _not_best(search, variant, group.key, outcome)
    return lines + _not_same(search)


def in_use(settings: ScaleFile) -> tuple[dict[tuple[str, str], Any], list[Text]]:
    """Key and variant that were tried to the value in ``params.yaml``; and why others have theirs, a sentence each."""
    if not settings.path.with_name("search.yaml").exists():
        return {}, []
    search = load_search(settings.paper, settings.scale)
    used = {(group.key, name): search.value(name, group.key) for group in search.tried for name in group.variants}
    reasons: list[Text] = []
    for same in search.same:
        if others := [[Code(name)] for name in same.variants if name not in same.kept]:
            have = "has" if len(others) == 1 else "have"
            reasons.append((*listed(others), f" {have} the value of ", Code(same.same_as), f": {same.because}."))
    kept = [item for group in search.tried for item in group.kept.items()]
    kept += [item for same in search.same for item in same.kept.items()]
    return used, reasons + [(Code(name), f" keeps a value of its own: {why}.") for name, why in kept]


def kept_outcomes(search: Search, only: Sequence[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """What ``search.json`` says of the variants that are not in ``only``, by key and variant, with its provenance.

    Raises:
        ReplicationError: a variant of ``only`` is not in ``search.yaml``; or the file does not answer what is asked
            of another variant.
    """
    tried = [variant for group in search.tried for variant in group.variants]
    for variant in only:
        if variant not in tried:
            raise ReplicationError(f"--only: '{variant}' is not tried in {search.path}{near(variant, tried)}.")
    record = load_found(search.settings) or {"seeds": [], "groups": []}
    made = {name: record[name] for name in ("git_commit", "git_dirty", "date") if name in record}
    kept = {}
    for group in search.tried:
        same = [each for each in record["groups"] if all(each[key] == getattr(group, key) for key in ASKED)]
        found = same[0] if same and record["seeds"] == search.seeds else {"variants": {}}
        for variant in [variant for variant in group.variants if variant not in only]:
            outcome = found["variants"].get(variant)
            if outcome is None or outcome["settings"] != settings_digest(search, group, variant):
                raise ReplicationError(
                    f"{found_path(search.settings)}: it does not answer what {search.path} asks of '{variant}'; add "
                    "that variant to --only, or leave --only out."
                )
            kept[group.key, variant] = made | outcome
    return kept


def _not_best(search: Search, variant: str, key: str, outcome: Mapping[str, Any]) -> list[str]:
    """A sentence if the value in ``params.yaml`` is not a best one."""
    now, best = search.value(variant, key), outcome["best"]
    losses = {trial["value"]: trial["loss"] for trial in outcome["trials"]}
    if best is None:
        return [f"{search.path}: {variant} diverged with every {key}; try others."]
    if now in losses and losses[now] == losses[best]:
        return []
    return [
        f"{search.settings.path}: variants.{variant}.{key} is {now}, but the search found {best} best; set it, or say "
        f"why in {search.path} (`kept: {{{variant}: reason}}`)."
    ]


def _not_same(search: Search) -> list[str]:
    """A sentence for each variant whose value differs from that of the variant in ``same_as``."""
    lines = []
    for same in search.same:
        for variant, key in ((each, key) for each in same.variants for key in search.keys(same.same_as)):
            now, other = search.value(variant, key), search.value(same.same_as, key)
            if now != other and variant not in same.kept:
                lines.append(
                    f"{search.settings.path}: variants.{variant}.{key} is {now}, but that of '{same.same_as}', with "
                    f"which it goes, is {other}; set it, or say why in {search.path} (`kept: {{{variant}: reason}}`)."
                )
    return lines


def show(record: Mapping[str, Any]) -> None:
    """Print a table per group, variant by value."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for group in record["groups"]:
        table = Table(title=f"{group['key']}: loss at the last validation", title_justify="left")
        for name in ("variant", *map(str, group["values"]), "params.yaml"):
            table.add_column(name, overflow="fold")
        for variant, found in group["variants"].items():
            cells = ["diverged" if each["loss"] is None else f"{each['loss']:.4f}" for each in found["trials"]]
            best = [each["value"] for each in found["trials"]].index(found["best"]) if found["best"] is not None else -1
            marked = [f"[bold green]{cell} *[/]" if place == best else cell for place, cell in enumerate(cells)]
            table.add_row(variant, *marked, str(found["in_params"]))
            if end_of(group["values"], found["best"]):
                table.caption = "A best value at the end of what was tried: a wider search may find a better one."
        console.print(table)
    console.print(f"* the best. {record['processor_seconds']:,.0f} processor seconds in all.", highlight=False)


def asked(group: Tried) -> dict[str, Any]:
    """The fields of a group that an outcome must match."""
    return {name: getattr(group, name) for name in (*ASKED, "variants")}


def settings_digest(search: Search, group: Tried, variant: str) -> str:
    """Hash of the data's card and of all settings of training except the one that is searched."""
    from shared.data.cards import load_card

    config = search.config(group, variant, group.values[0])
    given = config.model_dump(mode="json", exclude={"seeds", "decoding", "evaluation"}, exclude_unset=True)
    return hash_of([given, load_card(config.corpus.dataset).fingerprint])
