"""Where to look: f_att, soft and hard attention (Xu et al. 2015, sections 3.1.2 and 4), and views without attention.

Shape letters are those of :mod:`.model`: B batch, k beams,
L places, D annotation width, A width of the attention's layer.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from shared.attention.additive import additive_log_weights
from shared.attention.twins import runs_as


class Image(NamedTuple):
    """What a decoder keeps of a picture."""

    a: Tensor  # (B, L, D) annotation vectors a_i
    keys: Tensor  # (B, L, A) what of e_ti depends on a_i alone; without attention A is 0


class Look(NamedTuple):
    """One step's view of the picture."""

    z_hat: Tensor  # (B, k, D) context vector, before the gate β
    log_alpha: Tensor | None = None  # (B, k, L); None without attention
    s: Tensor | None = None  # (B, k) the place drawn; None where none is


class Glimpse(nn.Module, ABC):
    """φ, which makes the context vector ẑ_t of the annotation vectors (equation 6).

    Args:
        annotation_size: D, the width of what it sees.
        query_size: A, the width of what it is asked with.
    """

    def __init__(self, *, annotation_size: int, query_size: int = 0) -> None:
        super().__init__()
        self.annotation_size, self.query_size = annotation_size, query_size

    def keys(self, a: Tensor) -> Tensor:
        """What every step needs of the annotation vectors, once per picture: (B, L, D) to (B, L, A)."""
        return a[..., :0]

    @abstractmethod
    def forward(self, query: Tensor, image: Image, drawn: Tensor | None = None) -> Look:
        """Look at pictures.

        Args:
            query: (B, k, A) W_d h_{t-1}.
            image: of B pictures.
            drawn: (B, 1) bool, in which pictures hard attention draws a place; None where it is not trained.
        """


@runs_as(additive_log_weights)
def log_weights(query: Tensor, keys: Tensor, u: Tensor) -> Tensor:
    """log α_t of e_ti = uᵀ tanh(W_d h_{t-1} + key_i) and α_t = softmax(e_t) (equations 4 and 5).

    Args:
        query: (B, k, A) W_d h_{t-1}.
        keys: (B, L, A).
        u: (A,).

    Returns:
        (B, k, L).
    """
    e = torch.tanh(query.unsqueeze(2) + keys.unsqueeze(1)) @ u
    return torch.log_softmax(e, dim=-1)


class Attention(Glimpse):
    """e_ti = f_att(a_i, h_{t-1}), a perceptron, and α_t = softmax(e_t) (equations 4 and 5).

    f_att is uᵀ tanh(W_c a_i + b + W_d h_{t-1}) + c, and with a second layer, as on COCO, what is added
    to W_d h_{t-1} is tanh(W_1 (W_c a_i + b) + b_1). The decoder has W_d, among its other weights of h_{t-1}.

    Args:
        annotation_size: D.
        attention_size: A.
        layers: that a_i goes through.
    """

    def __init__(self, *, annotation_size: int, attention_size: int, layers: int) -> None:
        super().__init__(annotation_size=annotation_size, query_size=attention_size)
        widths = [annotation_size, *[attention_size] * layers]
        self.w_c = nn.ModuleList(nn.Linear(*pair) for pair in itertools.pairwise(widths))
        self.u = nn.Linear(attention_size, 1)  # its bias c changes no softmax, but the code has it

    def keys(self, a: Tensor) -> Tensor:
        """See :meth:`Glimpse.keys`."""
        first, *others = self.w_c
        keys: Tensor = first(a)
        for layer in others:
            keys = torch.tanh(layer(keys))
        return keys

    def log_alpha(self, query: Tensor, keys: Tensor) -> Tensor:
        """log α_t: (B, k, A) and (B, L, A) to (B, k, L); c, which no softmax sees, is left out."""
        return log_weights(query, keys, self.u.weight[0])


class SoftAttention(Attention):
    """ẑ_t = Σ_i α_ti a_i, what is to be expected of a drawn place (section 4.2, equation 13)."""

    def forward(self, query: Tensor, image: Image, drawn: Tensor | None = None) -> Look:
        """See :meth:`Glimpse.forward`."""
        log_alpha = self.log_alpha(query, image.keys)
        return Look(log_alpha.exp() @ image.a, log_alpha)


class HardAttention(Attention):
    """ẑ_t = a_s of one place s ~ Multinoulli(α_t) (section 4.1, equations 8 and 9).

    In training, pictures that are not ``drawn`` have the expectation, as above (end of section 4.1). Otherwise the
    place is the likeliest.

    Args:
        pathwise: whether through that expectation α learns what it does to the caption, as in the text and the code;
            without it α learns by its score function alone.
        sizes: those of :class:`Attention`.
    """

    def __init__(self, *, pathwise: bool, **sizes: int) -> None:
        super().__init__(**sizes)
        self.pathwise = pathwise

    def forward(self, query: Tensor, image: Image, drawn: Tensor | None = None) -> Look:
        """See :meth:`Glimpse.forward`."""
        log_alpha = self.log_alpha(query, image.keys)
        if drawn is None:
            return Look(_at(image.a, log_alpha.argmax(-1)), log_alpha)
        alpha = log_alpha.exp()
        s = torch.multinomial(alpha.detach().flatten(0, 1), 1).view(alpha.shape[:2])  # (B, k)
        expected = (alpha if self.pathwise else alpha.detach()) @ image.a
        return Look(torch.where(drawn.unsqueeze(2), _at(image.a, s), expected), log_alpha, s)


class MeanVector(Glimpse):
    """The same view at every step, the mean of all a_i: a captioner without attention."""

    def forward(self, query: Tensor, image: Image, drawn: Tensor | None = None) -> Look:
        """See :meth:`Glimpse.forward`."""
        return Look(image.a.mean(1, keepdim=True).expand(-1, query.size(1), -1))


def _at(a: Tensor, places: Tensor) -> Tensor:
    """The annotation vectors of places: (B, L, D) and (B, k) to (B, k, D)."""
    return a.gather(1, places.unsqueeze(2).expand(-1, -1, a.size(-1)))
