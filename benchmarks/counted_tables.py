"""What tables know that are counted on training data: the floors of claims.yaml are set below it.

    python -m benchmarks.counted_tables digits|digits-quick|words|words-shuffled|greek

A model has learned its task only if it knows more than such a table. The task must have been prepared before, as
`python -m shared.pipeline fetch` and `prepare` do it: `linear_transformer.mnist`, `transformer_xl.ptb` or
`transformer_xl.sentences`, or `luong.gold`.
Words and pixels are those of the test split; the floor of the Greek text was set on validation verses.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shared.data.ragged import RaggedArray
from shared.data.storage import load_arrays, read_summary
from shared.data.tokenizers import BOS, EOS
from shared.tasks.language.corpus import PreparedLanguage
from shared.tasks.translation.corpus import PreparedText

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class Seen(NamedTuple):
    """Symbols to be predicted, (N,), and for each what is known of it, (N,): equal numbers are the same context."""

    contexts: Integers
    symbols: Integers


def probabilities(train: Seen, held_out: Seen, lower: Floats, discount: float | None = None) -> Floats:
    """What a table gives to the symbols that are held out, where ``lower`` is what a table that knows less gives them.

    With c(h, w) the count of symbol w in context h, c(h) their sum and t(h) the number of different symbols in h,
    absolute discounting is (max(c(h, w) - D, 0) + D t(h) p(w)) / c(h); and Witten-Bell smoothing, which is used without
    a discount, (c(h, w) + t(h) p(w)) / (c(h) + t(h)). A context that was never seen has what is lower.

    Args:
        train: what is counted.
        held_out: what is predicted.
        lower: (N,) p(w) for each symbol of ``held_out``.
        discount: D, between 0 and 1.

    Returns:
        (N,) probabilities; those of all symbols in one context add up to 1 if those of ``lower`` do.
    """
    width = 1 + int(max(train.symbols.max(), held_out.symbols.max()))
    pairs, counts = np.unique(train.contexts * width + train.symbols, return_counts=True)
    contexts, first = np.unique(pairs // width, return_index=True)
    together = _look_up(pairs, counts, held_out.contexts * width + held_out.symbols)
    sums = _look_up(contexts, np.add.reduceat(counts, first), held_out.contexts)
    types = _look_up(contexts, np.diff(first, append=len(pairs)), held_out.contexts)
    if discount is None:
        return (together + np.where(sums == 0, 1, types) * lower) / np.where(sums == 0, 1, sums + types)
    kept, given = np.maximum(together - discount, 0), np.where(sums == 0, 1, discount * types)
    return (kept + given * lower) / np.maximum(sums, 1)


def _look_up(keys: Integers, values: Integers, wanted: Integers) -> Integers:
    """The values of the wanted keys, 0 of those that are not among the sorted ``keys``."""
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, values[places], 0)


class Text(NamedTuple):
    """Symbols of a text, (N,), and which of them are to be predicted, (N,); never the first two."""

    symbols: Integers
    scored: NDArray[np.bool_]

    def n_grams(self, order: int) -> Seen:
        """The scored symbols, and the ``order`` - 1 before each, at most two, as one number."""
        (places,) = np.nonzero(self.scored)
        contexts = np.zeros(len(places), dtype=np.int64)
        for before in range(1, order):
            contexts = contexts * (1 << 20) + self.symbols[places - before]
        return Seen(contexts, self.symbols[places])


def nats_of_text(train: Text, held_out: Text, discount: float | None = None) -> list[float]:
    """Nats a symbol of ``held_out`` if none, one and two of the symbols before are known."""
    known = np.full(int(held_out.scored.sum()), 1 / len(np.unique(train.symbols[train.scored])))
    nats = []
    for order in (1, 2, 3):
        known = probabilities(train.n_grams(order), held_out.n_grams(order), known, discount)
        nats.append(float(-np.log(known).mean()))
    return nats


def words(folder: Path) -> None:
    """Perplexities of Penn Treebank, with a discount of 0.75."""
    prepared = PreparedLanguage(folder)
    streams = (np.asarray(prepared.split(name).symbols, dtype=np.int64) for name in ("train", "test"))
    train, test = (Text(symbols, np.arange(len(symbols)) >= 2) for symbols in streams)
    for known, nats in enumerate(nats_of_text(train, test, 0.75)):
        print(f"{known} words before are known: perplexity {np.exp(nats):.0f}")


def greek(folder: Path) -> None:
    """Nats of English pieces of validation verses, smoothed by Witten and Bell's method."""
    prepared = PreparedText(folder)
    train, valid = (_sentences(prepared.split(name).target) for name in ("train", "valid"))
    for known, nats in enumerate(nats_of_text(train, valid)):
        print(f"{known} pieces before are known: {nats:.2f} nats a piece")


def _sentences(sentences: RaggedArray) -> Text:
    """Each between two start symbols and an end symbol; start symbols are not to be predicted."""
    symbols = np.concatenate([[BOS, BOS, *sentence, EOS] for sentence in sentences])
    return Text(symbols, symbols != BOS)


def digits(folder: Path) -> None:
    """Bits a pixel, but for the first of each picture, of tables by its place and by the pixels before."""
    summary = read_summary(folder)
    levels, splits = summary["levels"], [load_arrays(folder / name, ("pixels",))[0] for name in ("train", "test")]
    train, test = (pixels.astype(np.int64).reshape(-1, *summary["shape"][:2]) for pixels in splits)
    places = np.arange(train[0].size).reshape(train[0].shape)
    contexts: dict[str, Callable[[Integers], Integers]] = {
        "its place is": lambda pictures: np.broadcast_to(places, pictures.shape),
        "the pixel before is": _pixels_before,
        "its place and the pixel before are": lambda pictures: places * levels + _pixels_before(pictures),
        "its four neighbours before are, of nine levels": lambda pictures: neighbours(pictures, levels),
    }
    for name, context in contexts.items():
        seen, held_out = (Seen(_all_but_first(context(each)), _all_but_first(each)) for each in (train, test))
        known = probabilities(seen, held_out, np.full(len(held_out.symbols), 1 / levels))
        print(f"{name} known: {-np.log2(known).mean():.2f} bits a pixel")


def _all_but_first(values: Integers) -> Integers:
    return values.reshape(len(values), -1)[:, 1:].ravel()


def _pixels_before(pictures: Integers) -> Integers:
    """(N, H, W): of each pixel the one before it, row by row; of a picture's first one any other."""
    return np.roll(pictures, 1).reshape(pictures.shape)


def neighbours(pictures: Integers, levels: int) -> Integers:
    """(N, H, W): the pixel to the left and the three above as one number; each 0 (black, or beyond the edge) to 8."""
    coarse = np.pad(np.ceil(pictures * 8 / (levels - 1)).astype(np.int64), ((0, 0), (1, 0), (1, 1)))
    left, above = coarse[:, 1:, :-2], coarse[:, :-1]
    return ((left * 9 + above[:, :, :-2]) * 9 + above[:, :, 1:-1]) * 9 + above[:, :, 2:]


if __name__ == "__main__":
    tables = {
        "digits": ("bench/linear_transformer/tasks/mnist", digits),
        "digits-quick": ("quick/linear_transformer/tasks/mnist", digits),
        "words": ("bench/transformer_xl/tasks/ptb", words),
        "words-shuffled": ("bench/transformer_xl/tasks/sentences", words),
        "greek": ("bench/luong/tasks/gold", greek),
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=tables)
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="the folder of all runs")
    arguments = parser.parse_args()
    folder, show = tables[arguments.table]
    show(arguments.runs / folder)
