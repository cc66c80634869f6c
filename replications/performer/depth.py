"""How the error of FAVOR+ grows through a network (section 4.3, figure 14): one of l layers, for several l.

Networks of random weights; nothing is trained and no data are read.

Shape letters: B sequences, T symbols, D width, N draws, L depths, P projections (m in the paper).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from replications.performer.draws import Interval, Values, mean_interval
from replications.performer.settings import EXACT, DepthConfig
from shared.tasks.replication import NetworkStudy
from shared.tasks.settings import RunConfig


class Stack:
    """Networks with one kind of attention at every depth: each consists of the first layers of the deepest one.

    The networks share the projections and the final normalisation of the deepest one, so they differ in depth only.

    Args:
        build: a network of random weights from its number of layers.
        depths: every l, ascending.
    """

    def __init__(self, build: Callable[[int], nn.Module], depths: Sequence[int]) -> None:
        self._deepest = partial(build, depths[-1])
        self._networks = [build(layers) for layers in depths]

    def draw(self, weights: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        """Draw weights and projections anew, but keep ``weights`` if given; return those of the deepest network."""
        deepest = self._deepest()
        if weights is not None:
            hand_over(weights, deepest)
        for network in self._networks:
            hand_over(deepest.state_dict(), network)
        return dict(deepest.named_parameters())

    def states(self, symbols: Tensor) -> list[Tensor]:
        """(B, T) to (B, T, D) at every depth."""
        return [network(symbols) for network in self._networks]


class Depth(NetworkStudy):
    """The variant ``depth``.

    Two networks have the same random weights; one attends exactly, the other through positive orthogonal features. The
    error is the norm of the difference of their states, over that of the exact one's.
    """

    @torch.inference_mode()
    def measure(self, config: RunConfig, seed: int) -> Mapping[str, float]:
        """The metrics of :func:`depth_metrics` for draws that the run's seed determines."""
        settings = config.checked_model(DepthConfig)
        torch.manual_seed(seed)
        exact, *others = (
            Stack(partial(self._network, settings, attention), settings.depths)
            for attention in (EXACT, *settings.favor())
        )
        size = (settings.sequences, settings.length)
        errors = [one_draw(exact, others, torch.randint(settings.symbols, size)) for _ in range(settings.draws)]
        return depth_metrics(settings, np.array(errors))

    def _network(self, settings: DepthConfig, attention: Mapping[str, Any], layers: int) -> nn.Module:
        return self.build(settings.of(attention, layers), settings.symbols, settings.causal).eval()


def one_draw(exact: Stack, others: Sequence[Stack], symbols: Tensor) -> list[list[float]]:
    """The errors of each of ``others`` at every depth; all of them have the weights of ``exact``."""
    weights = exact.draw()
    truth = exact.states(symbols)
    errors = []
    for stack in others:
        stack.draw(weights)
        pairs = zip(stack.states(symbols), truth, strict=True)
        errors.append([float((h - of).norm() / of.norm()) for h, of in pairs])
    return errors


def hand_over(tensors: Mapping[str, Tensor], network: nn.Module) -> None:
    """Load ``tensors`` into ``network``: they must contain its weights, may lack its buffers and may contain more."""
    missing = set(network.load_state_dict(tensors, strict=False).missing_keys)
    kept = sorted(missing & {name for name, _ in network.named_parameters()})
    assert not kept, f"one of the two networks has no '{kept[0]}'"


def depth_metrics(settings: DepthConfig, errors: Values) -> dict[str, float]:
    """Geometric means over draws with 95 % t intervals of logarithms; ratios are between errors of one draw.

    Of every ``features_<P>``: ``error`` by depth; ``growth``, the deepest network's error to the shallowest's; and
    ``least_step``, the smallest of the ratios of the error at a depth to that at the depth before, its ``_low`` and
    ``_high`` the smallest ends of their intervals. Of ``most_over_fewest``: ``error_ratio`` by depth, of the largest P
    to the smallest.

    Args:
        settings: of the study.
        errors: (N, number of ``projections``, L).
    """
    sizes, logs, metrics = [f"_l{layers}" for layers in settings.depths], np.log(errors), dict[str, float]()
    for count, log in zip(settings.projections, np.moveaxis(logs, 1, 0), strict=True):
        subject = f"features_{count}"
        metrics |= mean_interval(log).exp().named(f"{subject}.error", sizes)
        metrics |= mean_interval(log[:, -1] - log[:, 0]).exp().named(f"{subject}.growth")
        steps = mean_interval(np.diff(log)).exp()
        metrics |= Interval(*(x.min() for x in steps)).named(f"{subject}.least_step")
    ratio = mean_interval(logs[:, -1] - logs[:, 0]).exp()
    return metrics | ratio.named("most_over_fewest.error_ratio", sizes)
