"""The models of Katharopoulos et al. and of Choromanski et al. of a few weights, and sequences for them."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from replications.linear_transformer import replication as linear_transformer
from replications.performer import replication as performer
from tests.checklist import F64, spread

VOCABULARY, D, N, H, HIDDEN = 13, 8, 2, 2, 12
SIZES = {"layers": N, "heads": H, "width": D, "hidden": HIDDEN}
TRANSFORMERS = {
    "linear": {"attention": "linear"},
    "linear, positions beside": {"attention": "linear", "positions": "concatenated"},
    "linear, rows and columns": {"attention": "linear", "positions": "rows and columns", "max_length": 81},
    "linear, pixels": {"attention": "linear", "output": "logistics", "components": 3},
    "softmax": {"attention": "softmax"},
    "lsh, 1 round": {"attention": "lsh", "buckets": 4, "chunk": 3},
    "lsh, 4 rounds": {"attention": "lsh", "buckets": 4, "chunk": 3, "rounds": 4},
}
"""Of the first paper, by a name; those of the second have the name of their attention."""
PERFORMERS = ("exact", "relu", "positive", "hyperbolic", "trigonometric")
MODELS = (*TRANSFORMERS, *PERFORMERS)


def small(name: str, *, causal: bool = True, std: float | None = 0.5, **changes: object) -> nn.Module:
    """In evaluation mode and in double precision; weights as they are first drawn where ``std`` is None."""
    if name in PERFORMERS:
        attention = "softmax" if name == "exact" else name
        section = {"attention": attention, "features": 6} | SIZES | changes
        model = performer.build_model(performer.settings.ModelConfig.model_validate(section), VOCABULARY, causal)
    else:
        section = {"max_length": 80} | TRANSFORMERS[name] | SIZES | changes
        kind = linear_transformer.settings.ModelConfig
        model = linear_transformer.build_model(kind.model_validate(section), VOCABULARY, causal)
    return model.to(F64).eval() if std is None else spread(model, std)


def symbols(batch: int, length: int) -> Tensor:
    """(B, T), such as have a level among pixels, one of which none has."""
    return torch.randint(VOCABULARY - 1, (batch, length))


def padded(lengths: list[int]) -> tuple[Tensor, Tensor]:
    """Sequences (B, T) with any symbols for padding, and the mask (B, T), true at what is none."""
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return symbols(*mask.shape), mask


def drawn(model: nn.Module) -> dict[str, Tensor]:
    """What the model draws for itself."""
    own = (name for name, _ in model.named_buffers() if name.endswith((".rotations", ".w")))
    return {name: model.get_buffer(name).clone() for name in own}


def steps(model: nn.Module, inputs: Tensor) -> Iterator[Tensor]:
    """The states (B, D) of symbols (B, T), one after the other."""
    state = model.initial_state(len(inputs))
    for read in inputs.unbind(1):
        h, state = model.step(read, state)
        yield h
