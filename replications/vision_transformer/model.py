"""The Vision Transformer (Dosovitskiy et al. 2021): a Transformer that reads a picture patch by patch.

The encoder's layers are those of ``shared/layers/transformer.py``, with the norm before each sub-layer. A picture comes
as a text of its pixels, row by row (:func:`pictures`), and a grey level is a channel, as red is in a colour picture.

Shape letters: B batch, n pixels of a text, S side of a picture, C channels, P side of a patch, N = (S / P)² patches,
D model width, H heads, L layers, K classes.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from shared.attention.multi_head import MultiHeadAttention
from shared.layers.transformer import Layer
from shared.tasks.classification.corpus import Classified

Places = Literal["1-D", "2-D", "none"]
"""What a patch is told of its place (appendix D.4)."""


def pictures(texts: tuple[Tensor, ...], masks: tuple[Tensor, ...], side: int, channels: int) -> tuple[Tensor, Tensor]:
    """The one text (B, n) of each example, under its mask, to pictures.

    Returns:
        (B, S, S, C), 1 in the channel of the pixel's symbol; zero everywhere at pixels that the text does not have.
        (B, S, S) bool, true at pixels that it has.
    """
    (text,), (mask,) = texts, masks
    pixels = functional.one_hot(text, channels) * mask.unsqueeze(-1)
    missing = side**2 - text.size(1)
    square = (side, side)
    x = functional.pad(pixels, (0, 0, 0, missing)).unflatten(1, square)
    return x, functional.pad(mask, (0, missing)).unflatten(1, square)


def patches(x: Tensor, size: int) -> Tensor:
    """Section 3.1: (B, S, S, …) to the sequence x_p of flattened patches (B, N, P² · …), row by row."""
    across = x.size(1) // size
    squares: Tensor = x.unflatten(2, (across, size)).unflatten(1, (across, size)).transpose(2, 3)
    return squares.flatten(3).flatten(1, 2)


def roll_out(weights: list[Tensor]) -> Tensor:
    """How much of each position's input is in each position's output (appendix D.8, after Abnar & Zuidema 2020).

    Weights are averaged over heads; each position keeps half of itself, which stands for the residual; the layers'
    matrices are multiplied.

    Args:
        weights: of each layer, the lowest first, (B, H, T, T).

    Returns:
        (B, T, T), rows sum to one.
    """
    found = torch.eye(weights[0].size(-1), dtype=weights[0].dtype, device=weights[0].device)
    for a in weights:
        mixed = a.mean(1)
        found = (mixed + torch.eye(mixed.size(-1), dtype=a.dtype, device=a.device)) / 2 @ found
    return found


class PositionEmbedding(nn.Module):
    """E_pos, learned: a vector for each place in the sequence, or one for its row beside one for its column.

    Args:
        places: which.
        across: patches in a row.
        width: D.
    """

    def __init__(self, *, places: Places, across: int, width: int) -> None:
        super().__init__()
        self.across = across
        shape = (across**2, width) if places == "1-D" else (2, across, width // 2)
        self.table = nn.Parameter(nn.init.normal_(torch.empty(shape), std=0.02))

    def forward(self) -> Tensor:
        """(N, D)."""
        if self.table.dim() == 2:
            return self.table
        rows, columns = self.table
        of_rows = rows.unsqueeze(1).expand(-1, self.across, -1)
        return torch.cat((of_rows, columns.expand(self.across, -1, -1)), dim=-1).flatten(0, 1)


class VisionTransformer(nn.Module):
    """Equations 1 to 4.

    Args:
        channels: C.
        classes: K.
        side: S.
        patch: P.
        layers, heads, width, hidden: L, H, D and the width of the MLP.
        places: what a patch is told of its place.
        class_token: whether the class is read from a token of its own; else from the mean of all patches
            (appendix D.3).
        dropout: on embeddings, sub-layers and inside of the MLP.
    """

    layers: Any

    def __init__(
        self, *, channels: int, classes: int, side: int, patch: int, layers: int, heads: int, width: int, hidden: int,
        places: Places, class_token: bool, dropout: float,
    ) -> None:  # fmt: skip
        super().__init__()
        self.channels, self.side, self.patch = channels, side, patch
        self.embedding = nn.Linear(patch**2 * channels, width)  # E of equation 1
        self.x_class = nn.Parameter(torch.zeros(width)) if class_token else None
        self.class_position = nn.Parameter(torch.zeros(width)) if class_token and places != "none" else None
        across = side // patch
        self.positions = None if places == "none" else PositionEmbedding(places=places, across=across, width=width)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            Layer(
                width=width, dropout=dropout, norm="pre",
                attention=MultiHeadAttention(
                    query_size=width, heads=heads, key_size=width // heads, value_size=width // heads, bias=True
                ),
                feed_forward=nn.Sequential(
                    nn.Linear(width, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, width)
                ),
            )
            for _ in range(layers)
        )  # fmt: skip
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def embed(self, x: Tensor) -> Tensor:
        """Equation 1: patches (B, N, P²C) to z_0 (B, 1 + N, D); (B, N, D) without a class token."""
        z: Tensor = self.embedding(x)
        if self.positions is not None:
            z = z + self.positions()
        if self.x_class is not None:
            first = self.x_class if self.class_position is None else self.x_class + self.class_position
            z = torch.cat((first.expand(len(z), 1, -1), z), dim=1)
        return self.dropout(z)

    def forward(self, texts: tuple[Tensor, ...], masks: tuple[Tensor, ...]) -> Classified:
        """One text (B, n) and its mask (B, n) to logits (B, K), and the roll-out to its pixels (B, 1, n).

        A patch without a pixel is not attended to. Training computes no roll-out.
        """
        x, there = pictures(texts, masks, self.side, self.channels)
        z = self.embed(patches(x.to(self.head.weight.dtype), self.patch))
        seen = patches(there, self.patch).any(-1)  # (B, N)
        if self.x_class is not None:
            seen = functional.pad(seen, (1, 0), value=True)
        weights: list[Tensor] = []

        def attend(z: Tensor, attention: MultiHeadAttention) -> Tensor:
            z, a = attention(z, attention.project(z), mask=seen[:, None, None], weights=not self.training)
            weights.extend(() if a is None else (a,))
            return z

        for layer in self.layers:
            z = layer(z, partial(attend, attention=layer.attention))  # equations 2 and 3
        y = self.norm(z)
        readers = seen / seen.sum(1, keepdim=True)  # of the mean, each patch alike
        if self.x_class is not None:
            readers = functional.one_hot(torch.zeros(len(z), dtype=torch.long, device=z.device), z.size(1))
        readers = readers.to(y.dtype).unsqueeze(1)  # (B, 1, T)
        logits = self.head((readers @ y).squeeze(1))  # equation 4, of the class token
        return Classified(logits, self._attention(readers @ roll_out(weights), there, masks[0]) if weights else ())

    def _attention(self, rows: Tensor, there: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        """Roll-out (B, 1, T) to pixels (B, 1, n): a patch's share is divided among its pixels."""
        across = self.side // self.patch
        of_patches = rows[..., -(across**2) :].unflatten(-1, (across, across))  # (B, 1, S / P, S / P)
        squares = of_patches.repeat_interleave(self.patch, -2).repeat_interleave(self.patch, -1)
        pixels = squares.flatten(2)[..., : mask.size(1)] * mask.unsqueeze(1)
        return (pixels / pixels.sum(-1, keepdim=True),)


class ResidualBlock(nn.Module):
    """shortcut(x) + conv(relu(norm(conv(relu(norm(x)))))) (He et al. 2016), with group norm as the paper's rivals."""

    def __init__(self, *, incoming: int, outgoing: int, stride: int, groups: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.GroupNorm(groups, incoming), nn.ReLU(), nn.Conv2d(incoming, outgoing, 3, stride, padding=1, bias=False),
            nn.GroupNorm(groups, outgoing), nn.ReLU(), nn.Conv2d(outgoing, outgoing, 3, padding=1, bias=False),
        )  # fmt: skip
        # Places are left out before the convolution and not by its stride: of a 1 x 1 convolution with a stride oneDNN
        # computes a wrong gradient, and writes past its memory, where the features are few (oneDNN's issue 6035).
        self.stride = stride
        same = stride == 1 and incoming == outgoing
        self.shortcut = nn.Identity() if same else nn.Conv2d(incoming, outgoing, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, S, S) to (B, C′, S / stride, S / stride)."""
        return self.shortcut(x[..., :: self.stride, :: self.stride]) + self.residual(x)


class ConvolutionalNetwork(nn.Module):
    """The rival: a residual network whose stages halve the picture and double the features, then a mean over places.

    Args:
        channels: C.
        classes: K.
        side: S.
        features: of the first stage.
        stages: how many, of one block each.
        groups: of the norms.
        dropout: on the mean.
    """

    def __init__(
        self, *, channels: int, classes: int, side: int, features: int, stages: int, groups: int, dropout: float
    ) -> None:
        super().__init__()
        self.channels, self.side = channels, side
        widths = [features, *(features * 2**stage for stage in range(stages))]
        self.root = nn.Conv2d(channels, features, 3, padding=1, bias=False)
        self.blocks = nn.Sequential(*(
            ResidualBlock(incoming=widths[i], outgoing=widths[i + 1], stride=1 if i == 0 else 2, groups=groups)
            for i in range(stages)
        ))  # fmt: skip
        self.norm = nn.GroupNorm(groups, widths[-1])
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, texts: tuple[Tensor, ...], masks: tuple[Tensor, ...]) -> Classified:
        """See :class:`VisionTransformer`; it does not attend."""
        x, _ = pictures(texts, masks, self.side, self.channels)
        h = torch.relu(self.norm(self.blocks(self.root(x.permute(0, 3, 1, 2).to(self.head.weight.dtype)))))
        return Classified(self.head(self.dropout(h.mean((2, 3)))))
