"""One trained language model on its test splits: the loss of every symbol, and what the memory does for it.

Every symbol of a split is scored exactly once, in the order of the text. The text is cut into columns that are read
side by side; every column but the first reads as many symbols before its own as the memory and one segment hold,
without scoring them. Only what layers above the first carry from further back than that depends on the columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

import shared.tasks.language.measures  # noqa: F401  registers what evaluation computes
from shared.attention.memory import Reach
from shared.decoding.language_model import LanguageModel, Memory
from shared.errors import ReplicationError
from shared.tasks.examples import Example, judged, write_examples
from shared.tasks.language.attention_maps import save_attention_maps
from shared.tasks.language.corpus import PreparedLanguage
from shared.tasks.language.samples import write_samples
from shared.tasks.language.settings import ContextsConfig, LanguageEvaluation, LanguageRun
from shared.tasks.language.streams import LanguageBatch, Stream

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

PARTS = 8  # of a segment
DISTANCES = 2 ** np.arange(2, 31)  # ends of the ranges that distances of recalls are counted in
INPUTS = 4096  # symbols of all columns together that are read at once where contexts are compared


def evaluate_language(model: nn.Module, text: PreparedLanguage, config: LanguageRun, out: Path) -> dict[str, float]:
    """Judge ``model``, in evaluation mode, on every test split of its task.

    Writes ``examples.jsonl.gz`` (all test splits) into ``out`` and, of the first one, ``attention.npz``, see
    :func:`save_attention_maps`, and if asked for ``contexts.npz``, see :func:`losses_by_context`, and ``samples.json``.

    Args:
        model: a :class:`LanguageModel`.
        text: the prepared task.
        config: the variant's settings.
        out: folder of the seed.

    Returns:
        Metrics of the first test split, and of the others with the split's name before them.

    Raises:
        ReplicationError: the first test split is too short for the contexts or samples asked for.
    """
    out.mkdir(parents=True, exist_ok=True)
    evaluation, first = config.evaluation, config.corpus.test[0]
    with torch.inference_mode():
        splits = {
            split: _judge_split(model, text, split, evaluation, evaluation.memories if split == first else ())
            for split in config.corpus.test
        }
        if evaluation.contexts is not None:
            losses = losses_by_context(model, text.split(first), evaluation, evaluation.contexts)
            np.savez_compressed(out / "contexts.npz", **losses._asdict())
        if evaluation.samples is not None:
            write_samples(model, text, config, out)
    save_attention_maps(out / "attention.npz", model, text, first, evaluation)
    write_examples(out, [example for examples in splits.values() for example in examples])
    return judged(splits)


class LossesByContext(NamedTuple):
    """Losses with C lengths of the context, of the same P symbols."""

    context: Places  # (C,) symbols
    nats: Floats  # (C, P)
    places: Places  # (P,) of the symbols in the stream


def losses_by_context(
    model: nn.Module, stream: Stream, evaluation: LanguageEvaluation, contexts: ContextsConfig
) -> LossesByContext:
    """The loss of some symbols after exactly c symbols of context, read from nothing, for all c asked for.

    The symbols stand a step Δ apart, in runs that are evenly spread over the text. One reading from a starting place
    therefore gives losses with every c, each of another symbol. If symbols that repeat an earlier one are asked for,
    their places are irregular, and each of their contexts is read separately. Segments are as in the evaluation, or of
    Δ symbols if that is less. A model without memory sees only the last segment of the context, or with sliding windows
    the last window, however long the context is.

    Raises:
        ReplicationError: the text is too short, or has no repeated symbols although they are asked for.
    """
    lengths = list(range(contexts.step, contexts.most + 1, contexts.step))
    starts, runs = _runs(len(stream), contexts)
    places = runs.ravel() if contexts.of == "all" else _recalled(stream, contexts)
    if not evaluation.reach.memory:
        width = evaluation.sliding.context if evaluation.sliding else evaluation.length
        seen = {n: _after(model, stream, places, n) for n in {min(n, width) for n in lengths}}
        nats = [seen[min(n, width)] for n in lengths]
    elif contexts.of == "all":
        # (runs, starts, C); a symbol of a run meets its context of C - k steps k starts later than the longest one
        read = _read_on(model, stream, starts.ravel(), evaluation, contexts.step, contexts.most)
        read = read.reshape(*starts.shape, -1)
        first, count = len(lengths) - 1, runs.shape[1]
        nats = [read[:, first - k : first - k + count, k].ravel() for k in range(len(lengths))]
    else:
        nats = [_read_on(model, stream, places - n, evaluation, contexts.step, n)[:, -1] for n in lengths]
    return LossesByContext(np.array(lengths), np.stack(nats), places)


def _runs(size: int, contexts: ContextsConfig) -> tuple[Places, Places]:
    """Places (runs, P / runs) of symbols, and those at which their contexts begin (runs, P / runs + C - 1)."""
    steps, step = contexts.most // contexts.step, contexts.step
    count = min(contexts.positions, (size - 1) // step - steps + 1)
    if count < 1:
        raise ReplicationError(
            f"the first test split has {size:,} symbols, too few for contexts of {contexts.most:,}; make "
            "evaluation.contexts.most smaller."
        )
    runs = max(1, count // (4 * steps))  # long runs: what is read before their first symbols costs little
    length = count // runs
    begins = np.linspace(0, size - 1 - (length + steps - 1) * step, runs).astype(np.int64)[:, None]
    return begins + step * np.arange(length + steps - 1), begins + step * np.arange(steps, length + steps)


def _recalled(stream: Stream, contexts: ContextsConfig) -> Places:
    """Places (P,) of symbols that repeat an earlier one, evenly chosen from all that have the longest context."""
    found = np.flatnonzero(np.zeros(0) if stream.distances is None else stream.distances)
    found = found[found >= contexts.most]
    if not len(found):
        raise ReplicationError(
            "the first test split has no recalls after as many symbols as evaluation.contexts.most; make it smaller."
        )
    return found[np.linspace(0, len(found) - 1, min(contexts.positions, len(found))).astype(np.int64)]


def _read_on(
    model: nn.Module, stream: Stream, starts: Places, evaluation: LanguageEvaluation, step: int, most: int
) -> Floats:
    """Nats (S, C) of the symbol after each step of a context, up to the longest one, that begins at ``starts`` (S,).

    A step is read in segments as in the evaluation; the first one is shorter if they do not fit.
    """
    reader, device = cast(LanguageModel, model), next(model.parameters()).device
    short, whole = step % evaluation.length, step // evaluation.length
    segments = [*([short] if short else []), *[evaluation.length] * whole]
    found = []
    for group in np.array_split(starts, -(-len(starts) * max(segments) // INPUTS)):
        inside = (group[:, None] + np.arange(most + 1)).clip(max=len(stream) - 1)  # the value is unused
        read = torch.from_numpy(stream.symbols[inside].astype(np.int64)).to(device)
        memory, nats = reader.memory(len(group), evaluation.reach.reach), []
        for begin in range(0, most, step):
            for inputs in read[:, begin : begin + step].split(segments, dim=1):
                log_probs = reader.next_log_probs(inputs, memory)
            nats.append(-log_probs.gather(1, read[:, begin + step, None]))
        found.append(torch.cat(nats, dim=1).double().cpu().numpy())
    return np.concatenate(found)


def _after(model: nn.Module, stream: Stream, places: Places, context: int) -> Floats:
    """Nats (P,) of the symbols at these places, each after so many symbols and nothing else."""
    reader, device = cast(LanguageModel, model), next(model.parameters()).device
    nats = []
    for group in np.array_split(places, -(-len(places) * context // INPUTS)):
        symbols = stream.symbols[group[:, None] + np.arange(-context, 1)].astype(np.int64)
        read = torch.from_numpy(symbols).to(device)
        log_probs = reader.next_log_probs(read[:, :-1])
        nats.append(-log_probs.gather(1, read[:, -1:]).squeeze(1).double().cpu().numpy())
    return np.concatenate(nats)


class _Scored(NamedTuple):
    """What a model makes of the N symbols of a split.

    Attributes:
        nats: (N,), in segments or in sliding windows, as the model is judged.
        parts: (N,) the part of its segment, of eight, that each symbol stands in; None if the text is not read in
            segments with the model's own memory, or if segments are shorter than eight symbols.
        by_memory: length of the memory to nats (N,), in segments, of all lengths asked for.
    """

    nats: Floats
    parts: Places | None
    by_memory: dict[int, Floats]


def _judge_split(
    model: nn.Module, text: PreparedLanguage, split: str, config: LanguageEvaluation, memories: Sequence[int]
) -> list[Example]:
    stream = text.split(split)
    scored, per_symbol = _scored(model, stream, config, memories), text.units[split] / len(stream)
    examples = []
    for number, begin in enumerate(range(0, len(stream), config.block)):
        block = slice(begin, begin + config.block)
        nats = scored.nats[block]
        example: Example = {
            "id": f"{split}-{number}", "split": split, "nll": float(nats.sum()), "tokens": len(nats),
            "unit": text.unit, "units": len(nats) * per_symbol,
        }  # fmt: skip
        if scored.parts is not None:
            example["positions"] = _positions(scored.parts[block], scored.by_memory[config.reach.memory][block])
        if memories:
            example["memories"] = {
                str(length): float(found[block].sum()) for length, found in sorted(scored.by_memory.items())
            }
        if stream.distances is not None and (recalls := _recalls(stream.distances[block], nats)):
            example["recalls"] = recalls
        examples.append(example)
    return examples


def _scored(model: nn.Module, stream: Stream, config: LanguageEvaluation, memories: Sequence[int]) -> _Scored:
    reach, sliding = config.reach.reach, config.sliding
    found = {
        length: _in_segments(model, stream, config, reach._replace(memory=length))
        for length in sorted({*memories} if sliding else {*memories, reach.memory})
    }
    parts = None
    if reach.memory in found and config.length >= PARTS:
        parts = found[reach.memory][1] * PARTS // config.length
    by_memory = {length: nats for length, (nats, _) in found.items()}
    if sliding is None:
        return _Scored(by_memory[reach.memory], parts, by_memory)
    nats, _ = _score(model, stream, stream.windows(**sliding.model_dump()), None)
    return _Scored(nats, parts, by_memory)


def _in_segments(model: nn.Module, stream: Stream, config: LanguageEvaluation, reach: Reach) -> tuple[Floats, Places]:
    """As :func:`_score`, in segments one after the other."""
    warm_up = reach.memory + config.length if reach.memory else 0
    batches = stream.evaluation_batches(columns=config.columns, length=config.length, warm_up=warm_up)
    return _score(model, stream, batches, cast(LanguageModel, model).memory(config.columns, reach))


def _score(
    model: nn.Module, stream: Stream, batches: Iterable[LanguageBatch], memory: Memory | None
) -> tuple[Floats, Places]:
    """The nats (N,) of all N symbols, and the place (N,) of each symbol in its segment."""
    reader, device = cast(LanguageModel, model), next(model.parameters()).device
    nats, within = np.full(len(stream), np.nan), np.zeros(len(stream), dtype=np.int64)
    for batch in batches:
        mask, there = batch.mask, batch.to(device)
        found = reader(there.inputs, there.targets, memory).double().cpu()
        places = batch.places[mask].numpy()
        nats[places], within[places] = found[mask].numpy(), mask.nonzero()[:, 1].numpy()
    return nats, within


def _positions(parts: Places, nats: Floats) -> list[list[float]]:
    """Nats and number of the symbols in each part of the segment."""
    sums, counts = np.bincount(parts, nats, minlength=PARTS), np.bincount(parts, minlength=PARTS)
    return [[total, count] for total, count in zip(sums.tolist(), counts.tolist(), strict=True)]


def _recalls(distances: NDArray[np.integer], nats: Floats) -> dict[str, Any]:
    """End of a range of distances to nats, number and number of those with p > 1/2, of the symbols recalled."""
    recalled = distances > 0
    ends, nats = DISTANCES[np.searchsorted(DISTANCES, distances[recalled])], nats[recalled]
    return {
        str(end): [float(nats[ends == end].sum()), int((ends == end).sum()), int((nats[ends == end] < np.log(2)).sum())]
        for end in np.unique(ends)
    }  # fmt: skip
