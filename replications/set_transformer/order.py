"""That the order of elements changes nothing (proposition 1), and what blocks of the encoder cost (section 3.1).

Shape letters: B sets, n elements, X numbers of an element, k outputs, O numbers of an output.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from replications.set_transformer.model import SetModel
from replications.set_transformer.settings import OrderConfig
from shared.metrics.operations import count_operations, shapes_only
from shared.tasks.replication import NetworkStudy
from shared.tasks.sets.settings import SetRun

FORMS = {"sab": ("sab", "attention"), "isab": ("isab", "attention"), "mean": ("rff", "mean"), "max": ("rff", "max")}
"""Of a network: its encoder and its pooling."""
SETS = 3
"""B."""


class Order(NetworkStudy):
    """The variant ``order``; its settings lie over those of the task's network."""

    def measure(self, config: SetRun, seed: int) -> Mapping[str, float]:
        """Measure networks with random weights, on random sets.

        * ``<form>.invariance``: how far outputs change with the order of the elements, in double precision, relative
          to the largest output; ``<form>.equivariance``: the same of the features of the encoder, which are to change
          places as their elements do.
        * ``<encoder>.operations_n<n>``: multiply-adds of a block of the encoder for n elements; ``<encoder>.growth``:
          what the last step of the sizes costs for each element, relative to the first step. It is 1 if the cost is a
          linear function of n.
        """
        settings = config.checked_model(OrderConfig)
        torch.manual_seed(seed)
        x = torch.randn(SETS, settings.sizes[0], config.corpus.numbers, dtype=torch.float64)
        mask = torch.arange(x.size(1)) < torch.tensor([[x.size(1) - number] for number in range(SETS)])
        order = torch.randperm(x.size(1))
        found: dict[str, float] = {}
        with torch.no_grad():
            for form in FORMS:
                model = self._network(settings, config, form).double()
                moved = x[:, order], mask[:, order]
                found[f"{form}.invariance"] = apart(model(*moved), model(x, mask))
                one, other = model.features(*moved)[:, order.argsort()], model.features(x, mask)
                found[f"{form}.equivariance"] = apart(one[mask], other[mask])  # elsewhere they are anything
        for form in ("sab", "isab"):
            with shapes_only():
                block = self._network(settings, config, form).encoder[0]
                costs = [count_operations(block, torch.empty(1, n, settings.network["width"])) for n in settings.sizes]
            found |= {f"{form}.operations_n{n}": cost for n, cost in zip(settings.sizes, costs, strict=True)}
            steps = [(costs[i + 1] - costs[i]) / (settings.sizes[i + 1] - settings.sizes[i]) for i in (0, -2)]
            found[f"{form}.growth"] = steps[1] / steps[0]
        return found

    def _network(self, settings: OrderConfig, config: SetRun, form: str) -> SetModel:
        encoder, pooling = FORMS[form]
        section = {**settings.network, "encoder": encoder, "pooling": pooling}
        return self.build(section, config.corpus.numbers, config.corpus.outputs).eval()


def apart(one: Tensor, other: Tensor) -> float:
    """The largest difference, relative to the largest number."""
    return float((one - other).abs().max() / other.abs().max())
