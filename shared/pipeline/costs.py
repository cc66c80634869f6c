"""The command ``costs``: what the paper scale costs, by operations that are counted on shapes alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from shared.data.cards import Card, GeneratedSource, WebSource, load_card
from shared.pipeline.config import ScaleFile, scales_of
from shared.pipeline.files import render, write_text
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


class Cost(NamedTuple):
    """What one variant costs.

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
    write_text(PAGE, render("docs/costs.md.j2", papers=rows, rounded=rounded, **constants))
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


def cost_of(runner: Any, config: Any) -> Cost:
    """Count the operations of an update in a model whose tensors have no values."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._pytree import tree_map

    from shared.metrics.operations import FORWARD_PASSES, OPERATIONS_PER_MULTIPLY_ADD, count_operations

    batch, sizes = runner.task.random_batch(config)
    with FakeTensorMode(allow_non_fake_inputs=True) as shapes, _assumed():
        model = runner.model(config, sizes)
        module = runner.task.module(model, config, None)
        batch = tree_map(lambda part: shapes.from_tensor(part) if isinstance(part, torch.Tensor) else part, batch)
        products = count_operations(module.training_step, batch, 0)
    updates = config.training.updates
    each = OPERATIONS_PER_MULTIPLY_ADD * FORWARD_PASSES * config.training.accumulate * products
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return Cost(parameters, float(each) * updates, updates, len(config.seeds))


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
