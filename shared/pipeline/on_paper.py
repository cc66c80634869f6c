"""What the paper scale costs, on paper: operations counted on shapes alone, and from them hours of a GPU."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from shared.data.cards import Card, GeneratedSource, WebSource, load_card
from shared.pipeline.config import ScaleFile
from shared.tasks.protocol import load_replication, papers

if TYPE_CHECKING:
    from torch import nn

PAGE = Path("docs/COSTS.md")
SCALE = "paper_scale"
PEAK = 989e12
"""Operations a second of an NVIDIA H100 SXM in dense bfloat16, by its data sheet."""
USE = 0.1
"""The assumed share of the peak that training reaches."""
BYTES = 12
"""Bytes that a checkpoint has for each parameter: its value and the two moments of Adam, in float32."""
CHECKPOINTS = 2
HOUR, GIGA = 3600.0, 1e9
INTRODUCTION = f"""# What the paper scale costs

`python -m shared.pipeline costs` writes this page. It counts the operations of matrix products in one update of every
model, forward and twice as many backward, on batches of the greatest size and length. Tensors have shapes and no
values, so nothing is computed. An accumulated update has several batches.

Four things are assumed:

- A GPU is an NVIDIA H100, which makes {PEAK / 1e12:.0f} · 10¹² operations a second in bfloat16 at most. {USE:.0%} of
  them are used. No GPU has measured that share here.
- Every symbol of a batch is predicted.
- All words of an adaptive vocabulary are of its first cluster.
- A seed keeps {CHECKPOINTS} checkpoints of {BYTES} bytes a parameter.

Left out are validation, judging, variants that train no network, and variants that the scale leaves out, such as those
of licensed data. To be downloaded are the official files, of the sizes that the cards in `data/` have: it is unknown
where a card lacks that of a file, and a file of two cards counts once. Weights of image encoders are left out there.
Parameters are those of our models; the papers' counts can differ slightly, for instance by symbols of
the vocabulary.
`python -m shared.pipeline estimate <paper>` measures what this machine needs.
"""


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
        return self.seeds * self.operations / (USE * PEAK) / HOUR

    @property
    def disk(self) -> float:
        """Bytes of all checkpoints."""
        return float(self.seeds * CHECKPOINTS * BYTES * self.parameters)


def write_costs() -> None:
    """Write ``docs/COSTS.md``; run from the project's root."""
    found = {paper: costs(ScaleFile(paper, SCALE)) for paper in papers()}
    parts = [INTRODUCTION, _together(found), *(section(paper, own) for paper, own in found.items())]
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    print(f"{PAGE} is written.")


def section(paper: str, found: Mapping[str, Cost]) -> str:
    """A paper's table, as Markdown."""
    lines = [f"## {paper}\n", "| Variant | Parameters | Updates | Seeds | Operations of a seed | GPU hours |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    for variant, cost in found.items():
        counts = (
            f"{cost.parameters:,} | {cost.updates:,} | {cost.seeds} | {cost.operations:.2g} | {_rounded(cost.hours)}"
        )
        lines.append(f"| {variant} | {counts} |")
    return "\n".join(lines) + "\n"


def _together(found: Mapping[str, Mapping[str, Cost]]) -> str:
    """The table of all papers, as Markdown."""
    heads = ("Paper", "GPU hours", "Checkpoints, GB", "Data while they are fetched, GB", "To be downloaded, GB")
    lines = ["## All papers\n", f"| {' | '.join(heads)} |", "| --- | ---: | ---: | ---: | ---: |"]
    for paper, own in found.items():
        settings = ScaleFile(paper, SCALE)
        cards = [load_card(card) for card in sorted({settings.dataset(task) for task in settings.tasks})]
        data = sum(card.needs_bytes for card in cards)
        disk = sum(cost.disk for cost in own.values())
        numbers = (sum(cost.hours for cost in own.values()), disk / GIGA, data / GIGA)
        lines.append(f"| {paper} | {' | '.join(map(_rounded, numbers))} | {_to_be_downloaded(cards)} |")
    return "\n".join(lines) + "\n"


def _to_be_downloaded(cards: Iterable[Card]) -> str:
    """Gigabytes as the page has them: what is known, and of which data sets something is unknown."""
    known, unknown = traffic(cards)
    if not unknown:
        return _rounded(known / GIGA)
    return f"{_rounded(known / GIGA)} + unknown ({', '.join(unknown)})" if known else "unknown"


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


def costs(settings: ScaleFile) -> dict[str, Cost]:
    """The cost of each variant of a scale that trains a network."""
    from shared.pipeline.shortened import network_runner

    replication, found = load_replication(settings.paper), {}
    for variant in settings.variants:
        config = settings.run(variant)
        if trains_a_network(replication, config):
            found[variant] = cost_of(*network_runner(replication, config))
    return found


def trains_a_network(replication: Any, config: Any) -> bool:
    """Whether a variant does; studies and programs that align words do not."""
    from shared.tasks.networks import Networks
    from shared.tasks.routed import Routed

    while isinstance(replication, Routed):
        replication, config = replication._runner(config)
    return isinstance(replication, Networks)


def cost_of(runner: Any, config: Any) -> Cost:
    """Count the operations of an update in a model whose tensors have no values."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._pytree import tree_map
    from torch.utils.flop_counter import FlopCounterMode

    from shared.metrics.operations import FORWARD_PASSES

    aten = torch.ops.aten
    formulas = {
        aten.mkldnn_rnn_layer: _lstm_layer, aten._scaled_dot_product_flash_attention_for_cpu: _attention,
        aten.baddbmm_: _added_product, aten.addmm_: _added_product,
    }  # fmt: skip
    batch, sizes = runner._full_batch(config)
    with FakeTensorMode(allow_non_fake_inputs=True) as shapes, _assumed():
        model: nn.Module = runner.build_model(config.checked_model(runner.model_config), *sizes)
        module = runner._module(model, config, None)
        batch = tree_map(lambda part: shapes.from_tensor(part) if isinstance(part, torch.Tensor) else part, batch)
        with warnings.catch_warnings(), FlopCounterMode(display=False, custom_mapping=formulas) as counter:
            warnings.filterwarnings("ignore", ".*`self.trainer` reference is not registered.*")  # it logs nowhere
            module.training_step(batch, 0)
    training = config.training
    each = FORWARD_PASSES * training.accumulate * counter.get_total_flops()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return Cost(parameters, float(each) * training.updates, training.updates, len(config.seeds))


def _lstm_layer(x: Sequence[int], w_input: Sequence[int], w_state: Sequence[int], *_: Any, **__: Any) -> int:
    """Operations of an LSTM's layer, of the shapes of its input and of its weights."""
    return 2 * prod(x[:2]) * (prod(w_input) + prod(w_state))


def _attention(q: Sequence[int], k: Sequence[int], v: Sequence[int], *_: Any, **__: Any) -> int:
    """Operations of scaled dot-product attention, of the shapes (B, H, T, d) of its arguments."""
    return 2 * prod(q[:3]) * k[2] * (q[3] + v[3])


def _added_product(total: Sequence[int], a: Sequence[int], *_: Any, **__: Any) -> int:
    """Operations of a product of matrices, of the shapes of what it is added to and of its first factor."""
    return 2 * prod(total) * a[-1]


def _assumed() -> Any:
    """A mode with an answer where a model asks for a value: no, one, every symbol, or all in the first cluster."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    aten = torch.ops.aten

    class Assumed(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.overloadpacket is aten._local_scalar_dense and args[0].numel() == 1:
                return False if args[0].dtype == torch.bool else 1
            if func.overloadpacket is aten.index and len(args[1]) == 1 and args[1][0].dtype == torch.bool:
                return args[0].flatten(0, args[1][0].dim() - 1)
            if func.overloadpacket is aten.bincount:
                clusters = (kwargs or {}).get("minlength", 1)
                with torch.utils._python_dispatch._disable_current_modes():
                    return torch.tensor([args[0].numel(), *[0] * (clusters - 1)])
            return func(*args, **(kwargs or {}))

    return Assumed()  # type: ignore[no-untyped-call]


def _rounded(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
