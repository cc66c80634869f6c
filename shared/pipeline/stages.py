"""The stages that make data. Each is a plain function of names, with paths from the root."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from shared.config import check_name
from shared.data.storage import check_prepared
from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile
from shared.pipeline.files import alone, made_anew, run_folder, write_json
from shared.pipeline.provenance import sha256_of
from shared.records import read_if_whole
from shared.tasks.kinds import part_of
from shared.tasks.settings import RunConfig

if TYPE_CHECKING:
    from shared.data.fetch import Manifest


def data_stage(action: str, dataset: str, files: Sequence[str], seed: int | None, **options: Any) -> None:
    """Write the card of a data set of the user's own (:func:`shared.data.own.new_card`)."""
    from shared.data.own import new_card

    check_name(action, ("new",), "data: there is no")
    new_card(dataset, files, seed=1 if seed is None else seed, **options)


@alone("fetched data", waits=True)
def fetch_stage(name: str, scale: str) -> None:
    """Obtain the data set of ``<paper>.<task>`` and record its manifest as the stage's output."""
    from shared.data.fetch import fetch  # which takes half a second, and check imports this module

    settings, task = ScaleFile.named(name, scale)
    manifest = fetch(settings.dataset(task))
    write_json(run_folder(settings.paper, scale) / "fetched" / f"{task}.json", manifest.model_dump(mode="json"))


@alone("features")
def features_stage(name: str, scale: str) -> None:
    """Compute the image features of ``<paper>.<task>`` with its encoder, and record them as the stage's output."""
    settings, task = ScaleFile.named(name, scale)
    if task not in settings.features:
        prepare = f"python -m shared.pipeline prepare {name} --scale {scale}"
        raise ReplicationError(f"{name} has no images to encode; run '{prepare}' at once.")
    kind = part_of(settings.kind, "corpus")
    if not hasattr(kind, "features"):
        none = f"tasks of kind '{settings.kind}' have no pictures to encode"
        raise ReplicationError(f"{settings.path}: {none}; take '{task}' out of 'features'.")
    final, corpus = run_folder(settings.paper, scale) / "features" / task, settings.corpus(task)
    dataset, _ = _fetched(corpus.dataset)
    with made_anew(final) as partial:
        record = kind.features(corpus, dataset, partial)
    write_json(final.with_name(f"{task}.json"), record)
    print(f"{name}: " + _listed(record))


@alone("prepared data")
def prepare_stage(name: str, scale: str) -> None:
    """Tokenise and encode the data of ``<paper>.<task>``.

    Raises:
        ReplicationError: a vocabulary would have no word; a model could learn nothing but the ends of sentences.
    """
    from shared.data.tokenizers import SPECIAL

    settings, task = ScaleFile.named(name, scale)
    corpus = settings.corpus(task)
    dataset, manifest = _fetched(corpus.dataset)
    with made_anew(run_folder(settings.paper, scale) / "tasks" / task) as partial:
        summary = part_of(settings.kind, "corpus").prepare(corpus, dataset, partial)
        for key, size in summary.items():
            if key.endswith("vocabulary") and isinstance(size, int) and size <= len(SPECIAL):
                empty = f"the {key.replace('_', ' ')} would be empty"
                why = f"the training text has no word but special symbols such as {SPECIAL[1]}"
                raise ReplicationError(f"data/{corpus.dataset}.yaml: {empty}, as {why}; correct the data.")
    print(f"{name}: " + _listed(summary))
    for reason in manifest.reasons():
        print(f"{name}: left out at fetching: {reason}.")
    splits = summary.get("splits", summary).items()
    for split, of in splits:
        if isinstance(of, dict) and "pairs" in of:
            lines = manifest.files[f"{split}.{corpus.source}"].lines
            why = "empty, or not what the corpus asks for" if split == "train" else "a side is empty"
            if lines > of["pairs"]:
                print(f"{name}: left out of {split}: {lines - of['pairs']:,} of its {lines:,} pairs ({why}).")
    shares = {split: of.get("unknown_share", 0.0) for split, of in splits if isinstance(of, dict)}
    if unknown := [f"{100 * share:.3g} % of {split}" for split, share in shares.items() if share]:
        print(f"{name}: words that the vocabulary lacks, all read as one: {', '.join(unknown)}.")


def prepared_folder(settings: ScaleFile, config: RunConfig) -> Path:
    """The folder of a variant's prepared task.

    Raises:
        ReplicationError: it was not prepared with these settings.
    """
    folder = run_folder(settings.paper, settings.scale) / "tasks" / config.task
    if not folder.is_dir():
        run = f"'python -m shared.pipeline {{}} {settings.paper}.{config.task} --scale {settings.scale}'".format
        raise ReplicationError(f"{folder} does not exist; run {run('fetch')} and then {run('prepare')}.")
    check_prepared(folder, config.corpus)
    return folder


def prepared_for(settings: ScaleFile, config: RunConfig, seed: int) -> Path:
    """The folder of the prepared data that a seed of a variant is trained and judged on.

    It is the task's, or with ``draws: each_seed`` one beside it, which is made if it is not there or the task has been
    prepared anew since.

    Raises:
        ReplicationError: the task is not prepared with these settings, or its data set cannot be drawn again.
    """
    from shared.data.fetch import draw_again

    folder = prepared_folder(settings, config)
    if config.corpus.draws == "once":
        return folder
    of, drawn = sha256_of([folder]), run_folder(settings.paper, settings.scale) / "drawn" / config.task / f"seed{seed}"
    if read_if_whole(drawn / "drawn.json") != {"of": of}:
        with made_anew(drawn) as partial, TemporaryDirectory() as files:
            draw_again(config.corpus.dataset, seed, Path(files))
            part_of(settings.kind, "corpus").prepare(config.corpus, Path(files), partial)
            write_json(partial / "drawn.json", {"of": of})
    return drawn


def _fetched(dataset: str) -> tuple[Path, Manifest]:
    """The folder and manifest of a data set; a queued experiment's copy of the project has no data yet and fetches it.

    Raises:
        ReplicationError: it cannot be fetched, or a file has changed since, which DVC does not watch.
    """
    from shared.data.fetch import fetch, verify

    fetch(dataset)
    return Path("data") / dataset, verify(dataset)


def _listed(summary: Mapping[str, Any]) -> str:
    """The plain entries of a summary on one line."""
    return ", ".join(f"{key} {value}" for key, value in summary.items() if not isinstance(value, dict | list))
