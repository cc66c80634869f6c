"""The stages that ``dvc.yaml`` chains. Each is a plain function of names; paths are relative to the project's root."""

from __future__ import annotations

import csv
import datetime
import json
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shared.errors import ReplicationError
from shared.pipeline.code import evaluation_code, training_code
from shared.pipeline.config import ScaleFile, load_params
from shared.tasks.protocol import large_imports, load_replication

if TYPE_CHECKING:
    from shared.tasks.protocol import Replication
    from shared.tasks.settings import RunConfig


def run_folder(paper: str, scale: str) -> Path:
    """``runs/<scale>/<paper>``."""
    return Path("runs") / scale / paper


def fetch_stage(name: str, scale: str) -> None:
    """Obtain the data set of ``<paper>.<task>`` and record its manifest as the stage's output."""
    from shared.data.fetch import fetch

    paper, task = split_name(name)
    settings = ScaleFile(paper, scale)
    record = run_folder(paper, scale) / "fetched" / f"{task}.json"
    if reason := settings.left_out(task):
        write_json(record, {"left_out": reason, "files": {}})
        print(f"{name}: left out, {reason}")
    else:
        write_json(record, fetch(settings.dataset(task)).model_dump(mode="json"))


def features_stage(name: str, scale: str) -> None:
    """Compute what the encoder of ``<paper>.<task>`` makes of its images, and record it as the stage's output."""
    paper, task = split_name(name)
    settings = ScaleFile(paper, scale)
    final = run_folder(paper, scale) / "features" / task
    record = final.with_name(f"{task}.json")
    if reason := settings.left_out(task):
        shutil.rmtree(final, ignore_errors=True)
        for path in (record, final / "left_out.json"):  # a folder, since DVC asks for one
            write_json(path, {"left_out": reason})
        print(f"{name}: left out, {reason}")
        return
    if settings.kind(task) != "captioning":
        raise ReplicationError(f"{name} has no images; run 'python -m shared.pipeline prepare {name}' at once.")
    with large_imports():
        import torch

        from shared.tasks.captioning.preparation import encode_images

    corpus = settings.corpus(task)
    dataset = _fetched(corpus.dataset)
    torch.set_num_threads(load_params().threads)
    with _made_anew(final) as partial:
        made = encode_images(corpus, dataset, partial)
    write_json(record, made)
    print(f"{name}: {made['rows']} x {made['columns']} places of {made['size']} features, {made['seconds']} s")


def prepare_stage(name: str, scale: str) -> None:
    """Tokenise and encode the data of ``<paper>.<task>``."""
    paper, task = split_name(name)
    settings = ScaleFile(paper, scale)
    final = run_folder(paper, scale) / "tasks" / task
    if reason := settings.left_out(task):
        shutil.rmtree(final, ignore_errors=True)
        write_json(final / "summary.json", {"left_out": reason})
        print(f"{name}: left out, {reason}")
        return
    corpus, replication = settings.corpus(task), _replication(settings, task)
    dataset = _fetched(corpus.dataset)
    with _made_anew(final) as partial:
        summary = replication.prepare(corpus, dataset, partial)
    print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in summary.items() if not isinstance(value, dict)))


def code_stage(paper: str, scale: str) -> None:
    """Write down which code the paper's training and evaluation depend on, for DVC to compare."""
    settings, folder = ScaleFile(paper, scale), run_folder(paper, scale) / "code"
    lenders = settings.lenders(settings.variants)
    write_json(folder / "training.json", training_code(paper, *lenders))
    write_json(folder / "evaluation.json", evaluation_code(paper, *lenders))


def train_stage(name: str, scale: str) -> None:
    """Train every seed of ``<paper>.<variant>``; a killed run is continued, a finished one is left alone."""
    paper, variant = split_name(name)
    settings = ScaleFile(paper, scale)
    folder = run_folder(paper, scale) / variant / "train"
    if reason := settings.not_run(variant):
        _leave_out(folder, reason)
        return
    with large_imports():
        config, replication = _checked(settings, variant)
        import torch

        from shared.pipeline import provenance

    if reason := replication.cannot_run(config):
        _leave_out(folder, reason)
        return

    prepared = _prepared(paper, scale, config)
    torch.set_num_threads(load_params().threads)
    environment = provenance.environment()
    _drop_other_seeds(folder, config.seeds)
    code = training_code(paper, *settings.lenders([variant]))
    for seed in config.seeds:
        seed_folder = folder / f"seed{seed}"
        parameters = config.model_dump(mode="json", exclude={"seeds", "decoding", "evaluation"})
        fingerprint = provenance.fingerprint([parameters, seed], prepared, code)
        if _finished(seed_folder, fingerprint):
            print(f"{name} seed {seed}: finished before, kept.")
            continue
        record, count = replication.train(
            config, prepared=prepared, folder=seed_folder, seed=seed, fingerprint=fingerprint,
            label=f"{name} seed {seed}",
        )  # fmt: skip
        fetched = json.loads((run_folder(paper, scale) / "fetched" / f"{config.task}.json").read_text())
        write_json(seed_folder / "run.json", {
            **environment, "parameters": config.model_dump(mode="json"), "seed": seed, "fingerprint": fingerprint,
            "data_sha256": {key: value["sha256"] for key, value in fetched["files"].items()},
            "peak_memory_mib": provenance.peak_memory_mib(), "parameter_count": count, **vars(record),
            "checkpoints": sorted(path.name for path in (seed_folder / "checkpoints").glob("*.ckpt")),
            "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        })  # fmt: skip
    write_curve(folder)


def evaluate_stage(name: str, scale: str) -> None:
    """Judge every trained seed of ``<paper>.<variant>``, and their ensemble if asked; write its ``metrics.json``."""
    paper, variant = split_name(name)
    settings = ScaleFile(paper, scale)
    folder = run_folder(paper, scale) / variant
    head = {"variant": variant, "task": settings.task_of(variant)}
    out = folder / "evaluation"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    if reason := settings.not_run(variant):
        write_json(folder / "metrics.json", head | {"not_run": reason})
        return
    with large_imports():
        config, replication = _checked(settings, variant)
        import torch

    if reason := replication.cannot_run(config):
        write_json(folder / "metrics.json", head | {"not_run": reason})
        return

    prepared = _prepared(paper, scale, config)
    torch.set_num_threads(load_params().threads)

    def judge(label: str, *members: int) -> dict[str, float]:
        print(f"{name} {label}: evaluating", flush=True)
        trained = [folder / "train" / f"seed{seed}" for seed in members]
        place = out / label.replace(" ", "")
        metrics = replication.evaluate(config, prepared=prepared, trained=trained, out=place)
        return {key: _rounded(value) for key, value in metrics.items()}

    seeds = {str(seed): judge(f"seed {seed}", seed) for seed in config.seeds}
    together = {"ensemble": judge("ensemble", *config.seeds)} if config.has_ensemble else {}
    mean = {key: _rounded(float(np.mean(found))) for key, found in by_metric(seeds.values()).items()}
    descriptions = replication.descriptions(config, prepared)
    write_json(folder / "metrics.json", head | {"seeds": seeds, "mean": mean} | together | dict(descriptions))


def by_metric(runs: Collection[Mapping[str, float]]) -> dict[str, list[float]]:
    """The values of every metric that all runs have; a study may find in one seed what there is not in another."""
    common = [key for key in next(iter(runs)) if all(key in run for run in runs)]
    return {key: [run[key] for run in runs] for key in common}


def _rounded(value: float) -> float:
    """To nine significant digits: an error of 1e-9 must not become none."""
    return float(f"{value:.9g}")


def rehearse_stage(name: str, scale: str) -> None:
    """Build ``<paper>.<variant>``, make one real update and say what the whole run would cost on this machine."""
    import torch

    paper, variant = split_name(name)
    settings = ScaleFile(paper, scale)
    if settings.not_run(variant):
        raise ReplicationError(f"{name} is not run at this scale: {settings.not_run(variant)}.")
    config, replication = _checked(settings, variant)
    torch.set_num_threads(load_params().threads)
    parameters, seconds = replication.rehearse(config)
    updates = config.training.updates * config.training.accumulate
    hours = seconds * updates * len(config.seeds) / 3600
    print(f"{name}: {parameters:,} parameters; a full batch takes {seconds:.2f} s on this machine;")
    print(f"{updates:,} batches and {len(config.seeds)} seed(s) come to at most {hours:,.1f} hours of training.")


def report_stage(paper: str, scale: str) -> None:
    """Decide the paper's claims and write ``reports/<scale>/<paper>``."""
    from shared.reports.exhibits import load_exhibits
    from shared.reports.report import write_report
    from shared.tasks.kinds import kind_report, load_measures

    load_measures()
    settings = ScaleFile(paper, scale)
    kind = kind_report(settings.kind(next(iter(settings.tasks))))  # all tasks of a paper are of one
    decisions = write_report(
        Path("replications") / paper,
        run_folder(paper, scale),
        Path("reports") / scale / paper,
        scale=scale,
        deviations=settings.deviations,
        figures=load_exhibits(paper, kind.figures),
        kind=kind,
    )
    for decision in decisions:
        print(f"{decision.claim.id}: {decision.verdict}")
    print(f"report: reports/{scale}/{paper}/README.md and index.html")


def summarize_stage(*_: str) -> None:
    """Gather all reports into ``reports/README.md`` and the verdict tables of the READMEs."""
    from shared.reports.summary import summarize
    from shared.tasks.kinds import load_measures

    load_measures()
    readmes = [Path("README.md"), *sorted(Path("replications").glob("*/README.md"))]
    summarize(Path("reports"), readmes)


def split_name(name: str) -> tuple[str, str]:
    """``paper.variant`` or ``paper.task`` to its two parts."""
    paper, dot, rest = name.partition(".")
    if not (paper and dot and rest):
        raise ReplicationError(f"'{name}' is not of the form <paper>.<variant>, e.g. bahdanau.rnnsearch-50.")
    return paper, rest


def write_json(path: Path, value: Any) -> None:
    """Write ``value``; a reader sees the old file or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(path)


def write_curve(folder: Path) -> None:
    """Write ``curve.csv`` beside the seeds: update and mean validation loss over them, for ``dvc plots``."""
    losses: dict[int, list[float]] = {}
    for path in sorted(folder.glob("seed*/curve.csv")):
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                if row["split"] == "valid" and row["metric"] == "loss":
                    losses.setdefault(int(row["step"]), []).append(float(row["value"]))
    rows: Sequence[tuple[Any, ...]] = [(step, f"{np.mean(values):.6g}") for step, values in sorted(losses.items())]
    with (folder.parent / "curve.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("update", "valid_loss"), *rows])


def _replication(settings: ScaleFile, task: str) -> Replication[Any]:
    """The replication of a scale file's paper.

    Raises:
        ReplicationError: it is not for tasks of this kind.
    """
    replication, kind = load_replication(settings.paper), settings.kind(task)
    if replication.kind != kind:
        raise ReplicationError(
            f"{settings.path}: tasks.{task} is of kind '{kind}', and the models of {settings.paper} are for "
            f"'{replication.kind}'; change the task's kind, or the paper's replication.py."
        )
    return replication


def _checked(settings: ScaleFile, variant: str) -> tuple[RunConfig, Replication[Any]]:
    """A variant's settings, and what trains and judges it, which has accepted them."""
    config, replication = settings.run(variant), _replication(settings, settings.task_of(variant))
    replication.check(config)
    return config, replication


def _fetched(dataset: str) -> Path:
    """The folder of a data set, as it was fetched."""
    from shared.data.fetch import fetch, verify

    fetch(dataset)  # at once if it is there; a queued experiment's copy of the project has no data yet
    verify(dataset)  # DVC does not watch the data folder
    return Path("data") / dataset


@contextmanager
def _made_anew(final: Path) -> Iterator[Path]:
    """An empty folder that takes the place of the final one as soon as it is whole."""
    partial = final.with_name(f"{final.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    yield partial
    shutil.rmtree(final, ignore_errors=True)
    partial.rename(final)


def _prepared(paper: str, scale: str, config: RunConfig) -> Path:
    prepared = run_folder(paper, scale) / "tasks" / config.task
    if not prepared.is_dir():
        raise ReplicationError(
            f"{prepared} does not exist; run 'python -m shared.pipeline fetch {paper}.{config.task} --scale {scale}' "
            f"and then 'python -m shared.pipeline prepare {paper}.{config.task} --scale {scale}'."
        )
    return prepared


def _finished(seed_folder: Path, fingerprint: str) -> bool:
    """Whether the seed was trained to its end with this fingerprint, and nobody has deleted a checkpoint since."""
    try:
        record: Mapping[str, Any] = json.loads((seed_folder / "run.json").read_text())
    except (OSError, ValueError):
        return False
    there = all((seed_folder / "checkpoints" / name).exists() for name in record.get("checkpoints", ()))
    return there and record.get("fingerprint") == fingerprint


def _leave_out(folder: Path, reason: str) -> None:
    """Leave the reason instead of trained seeds."""
    _drop_other_seeds(folder, ())
    write_json(folder / "not_run.json", {"not_run": reason})
    write_curve(folder)


def _drop_other_seeds(folder: Path, seeds: Sequence[int]) -> None:
    """The folder persists between runs of the stage, so what no longer belongs to it must go."""
    keep = {f"seed{seed}" for seed in seeds}
    for path in folder.glob("*"):
        if path.name not in keep:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
