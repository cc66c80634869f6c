"""What things cost: the paper scale, by operations that are counted on shapes alone (the command ``costs``); a variant
or a paper here, by runs on record or else by a few updates that are timed (``estimate``)."""

from __future__ import annotations

import json
import math
import os
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from pydantic import ValidationError

from shared.claims.results import COSTS
from shared.claims.words import number_of
from shared.data.cards import Card, GeneratedSource, WebSource, load_card
from shared.data.storage import check_prepared
from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile, load_params, scales_of
from shared.pipeline.files import run_folder, write_text
from shared.pipeline.pack import archive_of, opened
from shared.pipeline.provenance import machine, peak_memory_mib
from shared.pipeline.runs import EVALUATE_AGAIN, JUDGED, TRAIN_AGAIN, TRAINED, load_runner, runnable
from shared.records import read_record
from shared.reports.page import fill_template
from shared.tasks.kinds import load_replication, papers

PAGE = Path("docs/COSTS.md")
SCALE = "paper_scale"
PEAK = 989e12
"""Operations a second of an NVIDIA H100 SXM in dense bfloat16, by its data sheet."""
USE = 0.1
"""The assumed share of the peak that training reaches."""
BYTES = 12
"""Bytes that a checkpoint has for each parameter: its value and the two moments of Adam, in float32."""
CHECKPOINTS = 2
UNPREPARED = "its cost: no runs are on record, and its task is not prepared"


class Operations(NamedTuple):
    """What one variant costs at the paper's scale.

    Attributes:
        parameters: of its model.
        operations: of all updates of one seed.
        updates, seeds: how many.
    """

    parameters: int
    operations: float
    updates: int
    seeds: int

    @property
    def hours(self) -> float:
        """Of a GPU, for all seeds."""
        return self.seeds * self.operations / (USE * PEAK) / 3600

    @property
    def disk(self) -> float:
        """Bytes of all checkpoints."""
        return float(self.seeds * CHECKPOINTS * BYTES * self.parameters)


def write_costs() -> None:
    """Write ``docs/COSTS.md``; run from the project's root."""
    rows = [paper_costs(paper) for paper in papers() if SCALE in scales_of(paper)]
    constants = {"peak": PEAK, "use": USE, "checkpoints": CHECKPOINTS, "bytes": BYTES}
    write_text(PAGE, fill_template("docs/costs.md.j2", papers=rows, rounded=rounded, **constants))
    print(f"{PAGE} is written.")


def paper_costs(paper: str) -> dict[str, Any]:
    """What the page says of a paper, with the cost of each variant that trains a network."""
    settings, replication = ScaleFile(paper, SCALE), load_replication(paper)
    networks = {variant: network_of(replication, settings.run(variant)) for variant in settings.variants}
    costs = {variant: cost_of(*network) for variant, network in networks.items() if network is not None}
    cards = [load_card(card) for card in sorted({settings.dataset(task) for task in settings.tasks})]
    known, unknown = traffic(cards)
    parts = [rounded(known / 1e9)] if known or not unknown else []
    parts += [f"unknown ({', '.join(unknown)})" if known else "unknown"] if unknown else []
    return {
        "name": paper, "costs": costs, "hours": sum(cost.hours for cost in costs.values()),
        "disk": sum(cost.disk for cost in costs.values()), "data": sum(card.needs_bytes for card in cards),
        "download": " + ".join(parts),
    }  # fmt: skip


def traffic(cards: Iterable[Card]) -> tuple[int, list[str]]:
    """What is to be downloaded for some data sets.

    Returns:
        The bytes of all official files whose size a card has, each file once, and the data sets of which a size is
        missing. Data that a program makes have none.
    """
    known: dict[str, int] = {}
    unknown = []
    for card in cards:
        files = [file for source in card.sources if isinstance(source, WebSource) for file in source.downloads]
        known |= {file.url: file.bytes for file in files if file.bytes is not None}
        generated = any(isinstance(source, GeneratedSource) for source in card.sources)
        if not generated and (not files or any(file.bytes is None for file in files)):
            unknown.append(card.id)
    return sum(known.values()), unknown


def network_of(replication: Any, config: Any) -> Any:
    """What trains the network of a variant, and the settings that it takes; None where it trains none, as studies."""
    from shared.tasks.replication import Replication, runner_of

    runner, config = runner_of(replication, config)
    return (runner, config) if isinstance(runner, Replication) else None


def cost_of(runner: Any, config: Any) -> Operations:
    """Count the operations of an update in a model whose tensors have no values."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._pytree import tree_map

    from shared.metrics.operations import FORWARD_PASSES, OPERATIONS_PER_MULTIPLY_ADD, count_operations

    batch, sizes = runner.part("module").random_batch(config)
    with FakeTensorMode(allow_non_fake_inputs=True) as shapes, _assumed():
        model = runner.model(config, sizes)
        module = runner.part("module").module(model, config, None)
        batch = tree_map(lambda part: shapes.from_tensor(part) if isinstance(part, torch.Tensor) else part, batch)
        products = count_operations(module.training_step, batch, 0)
    updates = config.training.updates
    each = OPERATIONS_PER_MULTIPLY_ADD * FORWARD_PASSES * config.training.accumulate * products
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return Operations(parameters, float(each) * updates, updates, len(config.seeds))


def _assumed() -> Any:
    """A mode with an answer where a model asks for a value: no, one, every symbol, or all in the first cluster."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

    aten = torch.ops.aten

    class Assumed(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.overloadpacket is aten._local_scalar_dense and args[0].numel() == 1:
                return False if args[0].dtype == torch.bool else 1
            if func.overloadpacket is aten.index and len(args[1]) == 1 and args[1][0].dtype == torch.bool:
                return args[0].flatten(0, args[1][0].dim() - 1)
            if func.overloadpacket is aten.bincount:
                clusters = (kwargs or {}).get("minlength", 1)
                with _disable_current_modes():
                    return torch.tensor([args[0].numel(), *[0] * (clusters - 1)])
            return func(*args, **(kwargs or {}))

    return Assumed()  # type: ignore[no-untyped-call]


def rounded(number: float) -> str:
    """As the page has numbers."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


class Cost(NamedTuple):
    """The cost of one variant.

    Attributes:
        seeds, judged: how many seeds are trained, and judged; an ensemble counts as all its members.
        source: what the numbers are from.
        missing: what is unknown, and why.
        parameters: of the model; 0 where there is none, or where it is unknown.
        training, judging: processor seconds of one seed.
        memory: MiB, the most that one process holds.
    """

    seeds: int
    judged: int
    source: str = "unknown"
    missing: str = ""
    parameters: int = 0
    training: float = 0.0
    judging: float = 0.0
    memory: float = 0.0

    def hours(self, workers: int = 1) -> float:
        """Processor hours of all seeds; hours by the clock if so many are side by side: stages follow each other."""
        rounds = math.ceil(self.seeds / workers) * self.training + math.ceil(self.judged / workers) * self.judging
        return rounds / 3600


def estimate_stage(name: str, scale: str) -> None:
    """Print processor hours, peak memory and the time when all is done, of ``<paper>.<variant>`` or a paper."""
    paper, _, variant = name.partition(".")
    settings = ScaleFile(paper, scale)
    found: dict[str, Cost] = {}
    for each in [variant] if variant else list(settings.variants):
        found[each] = estimate(settings, each)
        print(f"{paper}.{each}: {described(found[each])}", flush=True)
    workers = load_params().workers or os.cpu_count() or 1
    print(summed([*found.values()], workers, datetime.now().astimezone()))
    for task in dict.fromkeys(settings.task_of(each) for each, cost in found.items() if cost.missing == UNPREPARED):
        steps = ["fetch", *(["features"] if task in settings.features else []), "prepare"]
        commands = " && ".join(f"python -m shared.pipeline {step} {paper}.{task} --scale {scale}" for step in steps)
        print(f"to have updates on the task {task} timed, run: {commands}")


def estimate(settings: ScaleFile, variant: str) -> Cost:
    """The cost of a variant: of its runs on record with the same settings, else of updates that are timed.

    Raises:
        ReplicationError: it does not run at this scale, or cannot run on this machine.
    """
    config = runnable(settings, variant)
    unknown = Cost(len(config.seeds), len(config.seeds) * (1 + config.has_ensemble))
    runs, judgements = _recorded(settings, variant, config)
    if not runs or not judgements:
        return _timed(settings, variant, config, unknown)
    judged = [record["processor_seconds"] for record in judgements]
    places = dict.fromkeys(str(run["cpu"] if run["device"] == "cpu" else run["device"]) for run in runs)
    here = all(run[part] == machine()[part] for run in runs for part in ("cpu", "device"))
    return unknown._replace(
        parameters=runs[0]["parameter_count"] if runs[0]["updates"] else 0,
        # A run that was killed and continued knows only what its last process has taken.
        training=fmean(max(run.get("process_seconds", 0.0), run["processor_seconds"]) for run in runs),
        judging=fmean(took for each in judged for of, took in each.items() if of != "ensemble" or len(each) == 1),
        memory=max(run["peak_memory_mib"] for run in runs),
        source=f"those of {number_of(len(runs), 'finished run')}" + ("" if here else f" on {' and '.join(places)}"),
    )


def _timed(settings: ScaleFile, variant: str, config: Any, unknown: Cost) -> Cost:
    """Of a variant without runs on record: some updates on its prepared data."""
    import torch

    runner, config = load_runner(settings.paper, config)
    if reason := runner.cannot_run(config):
        raise ReplicationError(f"{settings.path}: '{variant}' cannot run on this machine: {reason}.")
    prepared = run_folder(settings.paper, settings.scale) / "tasks" / config.task
    if not prepared.is_dir():
        return unknown._replace(missing=UNPREPARED)
    check_prepared(prepared, config.corpus)
    torch.set_num_threads(1)
    if (cost := runner.cost(config, prepared)) is None:
        return unknown._replace(missing="its cost: it trains no network, and no runs are on record")
    return unknown._replace(
        parameters=cost[0], training=config.training.updates * cost[1], memory=peak_memory_mib(),
        source=f"of {number_of(config.training.updates, 'update')}, a few of which were timed here",
        missing="validation and judging: no runs are on record",
    )  # fmt: skip


def _recorded(settings: ScaleFile, variant: str, config: Any) -> tuple[list[Any], list[Any]]:
    """Records of training and of judging with these settings: of this folder, else of the file that git keeps."""
    folder = run_folder(settings.paper, settings.scale) / variant
    own = [read_record(path, TRAIN_AGAIN, TRAINED) for path in sorted(folder.glob("train/seed*/run.json"))]
    judged = [read_record(path, EVALUATE_AGAIN, JUDGED) for path in folder.glob(f"evaluation/{COSTS}")]
    packed = _packed(archive_of(settings.paper, settings.scale))
    for places in ((own, judged), (packed.get((variant, name), []) for name in ("run.json", COSTS))):
        runs, judgements = ([each for each in records if _is_alike(each, config)] for records in places)
        if runs and judgements:
            return runs, judgements
    return [], []


def _is_alike(record: Any, config: Any) -> bool:
    """Whether a record is of the settings of today, whichever seeds these name; it may lack keys that are new."""
    try:
        recorded = type(config).model_validate(record["parameters"] | {"seeds": config.seeds})
        return bool(recorded.model_dump() == config.model_dump())
    except (ValidationError, TypeError, KeyError):
        return False


@cache
def _packed(archive: Path) -> dict[tuple[str, str], list[Any]]:
    """Variant and name of a record to those that an archive of runs has."""
    found: dict[tuple[str, str], list[Any]] = defaultdict(list)
    if archive.exists():
        with opened(archive) as tar:
            for member in tar:
                path = Path(member.name)
                if path.name in ("run.json", COSTS) and (file := tar.extractfile(member)) is not None:
                    found[path.parts[0], path.name].append(json.load(file))
    return found


def described(found: Cost) -> str:
    """One variant's line."""
    parts = [number_of(found.parameters, "parameter")] if found.parameters else []
    if found.training or found.judging:
        parts.append(f"{number_of(found.seeds, 'seed')} of {found.training:,.3g} s")
        parts += [f"{number_of(found.judged, 'time')} {found.judging:,.3g} s to judge"] if found.judging else []
        parts.append(f"processor seconds are {found.source}")
    parts += [f"WITHOUT {found.missing}"] if found.missing else []
    return "; ".join(parts) + (f": {hours:,.2f} processor hours" if (hours := found.hours()) else "")


def summed(found: list[Cost], workers: int, begin: datetime) -> str:
    """The lines below those of the variants.

    Args:
        found: of all variants.
        workers: runs side by side.
        begin: when work would begin.
    """
    hours, elapsed = (sum(each.hours(side_by_side) for each in found) for side_by_side in (1, workers))
    return fill_template(
        "docs/estimate.txt.j2", hours=hours, elapsed=elapsed, end=begin + timedelta(hours=elapsed), workers=workers,
        memory=max((each.memory for each in found), default=0.0), gaps=sum(bool(each.missing) for each in found),
        variants=number_of(len(found), "variant"),
    ).rstrip()  # fmt: skip
