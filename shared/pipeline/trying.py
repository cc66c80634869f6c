"""The command ``try``: what a trained model makes of one input, in the terminal and on a page."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from shared.claims.scales import SCALES
from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile
from shared.pipeline.evaluate import refusing_other_weights
from shared.pipeline.files import prepared_folder, run_folder, split_name
from shared.pipeline.train import runnable
from shared.pipeline.weights import check_weights
from shared.tasks.kinds import KINDS, large_imports
from shared.tasks.prepared import check_prepared
from shared.tasks.sections import find_route

if TYPE_CHECKING:
    from shared.tasks.tried import Tried

PAGES = Path("reports/tried")


class Model(NamedTuple):
    """A trained model.

    Attributes:
        settings: of the paper that has trained it, which may have lent it.
        variant: of that paper.
        config: of the variant.
        seed: of its run.
    """

    settings: ScaleFile
    variant: str
    config: Any
    seed: int

    @property
    def title(self) -> str:
        """What a reader calls it."""
        return f"{self.settings.paper}.{self.variant}, scale {self.settings.scale}, seed {self.seed}"


def try_stage(name: str, scale: str, *, input: str, seed: int | None = None, page: bool = False) -> None:
    """Give a trained model of ``<paper>.<variant>`` one input, and show what it makes of it and where it looked.

    Args:
        name: the paper and the variant.
        scale: of its runs.
        input: a text; what else depends on the kind of task, and an empty one is told what is expected.
        seed: of the run; the first that has a checkpoint unless given.
        page: whether ``reports/tried/<paper>.<variant>.html`` is written, too.

    Raises:
        ReplicationError: nothing was trained, the variant trains no network, or the input is not one.
    """
    from shared.pipeline.tried_page import write_tried
    from shared.pipeline.tried_terminal import print_tried

    model = _found(name, scale, seed)
    tried = _tried(model, input)
    print_tried(tried, model.title)
    if page:
        path = PAGES / f"{name}.html"
        write_tried(tried, model.title, path)
        print(f"The same is on the page {path}; open it in a browser.")


def _found(name: str, scale: str, seed: int | None) -> Model:
    """The model that is meant, of which there is a checkpoint."""
    paper, variant = split_name(name)
    settings = ScaleFile(paper, scale)
    while variant in settings.lent:
        settings, variant = settings.lender(variant), settings.lent[variant].variant
    if variant in settings.left_out and (others := _scales_of(settings, variant)):
        raise ReplicationError(
            f"{settings.paper}.{variant} does not run at the scale {settings.scale}; give --scale {others[0]}, after "
            f"'dvc repro {ScaleFile(settings.paper, others[0]).path.with_name('dvc.yaml')}:train@{variant}'."
        )
    config = runnable(settings, variant)
    _trains(settings, variant, config)
    if seed is not None and seed not in config.seeds:
        listed = ", ".join(map(str, config.seeds))
        raise ReplicationError(f"{settings.path}: '{variant}' has no seed {seed}; its seeds are {listed}.")
    there = [each for each in config.seeds if _checkpoint(settings, variant, config, each).is_file()]
    if not there:
        pipeline = settings.path.with_name("dvc.yaml").as_posix()
        raise ReplicationError(
            f"{settings.paper}.{variant} has no trained model at the scale {scale}; run 'dvc repro "
            f"{pipeline}:train@{variant}' first."
        )
    if seed is not None and seed not in there:
        listed = ", ".join(map(str, there))
        raise ReplicationError(f"seed {seed} of {settings.paper}.{variant} is not trained; those that are: {listed}.")
    return Model(settings, variant, config, there[0] if seed is None else seed)


def _scales_of(settings: ScaleFile, variant: str) -> list[str]:
    """The scales at which a variant is trained, those first that DVC always sees."""
    scales = sorted(SCALES, key=lambda scale: scale not in ("quick", "bench"))
    return [scale for scale in scales if variant in ScaleFile(settings.paper, scale).variants]


def _trains(settings: ScaleFile, variant: str, config: Any) -> None:
    """Refuse a variant that trains no network; this needs no torch."""
    models = import_module(f"replications.{settings.paper}.settings")
    section, _ = find_route(config, models.MODEL, models.ROUTES)
    if section is not None and not section[1].trains_network:
        key = section[0]
        raise ReplicationError(
            f"{settings.paper}.{variant} trains no network, so there is no model to try: it is of the kind '{key}: "
            f"{config.model[key]}', which only computes or counts; choose another variant."
        )


def _checkpoint(settings: ScaleFile, variant: str, config: Any, seed: int) -> Path:
    folder = run_folder(settings.paper, settings.scale) / variant / "train" / f"seed{seed}"
    return folder / "checkpoints" / f"{config.evaluation.checkpoint}.ckpt"


def _tried(model: Model, asked: str) -> Tried:
    """What the model makes of the input, by the module ``trial`` of its kind."""
    settings = model.settings
    prepared = prepared_folder(settings.paper, settings.scale, model.config.task)
    check_prepared(prepared, model.config.corpus)
    with large_imports():
        from shared.pipeline.costs import network_of
        from shared.tasks.kinds import load_replication
        from shared.tasks.replication import ready

        trial = import_module(f"{KINDS[settings.kind]}.trial")
    runner, config = network_of(load_replication(settings.paper), model.config)
    text = runner.open(config, prepared)
    weights = _checkpoint(settings, model.variant, model.config, model.seed)
    check_weights(weights)
    folder = weights.parent.parent
    with refusing_other_weights(model.variant, [folder]):
        (network,) = runner.trained_models(config, text, [folder])
    tried: Tried = trial.try_input(ready(network), text, config, asked, model.seed)
    return tried
