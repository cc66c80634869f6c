"""One trained language model on its test splits: the loss of every symbol, and what the memory does for it.

Every symbol of a split is scored exactly once, in the order of the text. The text is cut into columns that are read
side by side; every column but the first reads as many symbols before its own as the memory and one segment hold,
without scoring them. Only what layers above the first carry from further back than that depends on the columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from shared.data.tokenizers import BOS, EOS, PAD, UNK, Tokenizer
from shared.decoding.protocol import Memory
from shared.decoding.sampling import continue_text
from shared.errors import ReplicationError
from shared.tasks.batches import device_of
from shared.tasks.examples import Example, records, write_kept, write_records
from shared.tasks.language.corpus import LanguageBatch, PreparedLanguage, Stream
from shared.tasks.language.settings import ContextsConfig, LanguageEvaluation, LanguageRun, SampleConfig
from shared.tasks.replication import Replication

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

PARTS = 8  # of a segment
DISTANCES = 2 ** np.arange(2, 31)  # ends of the ranges that distances of recalls are counted in
INPUTS = 4096  # symbols of all columns together that are read at once where contexts are compared
TEXTS, ROWS = 2, 8  # whose attention is kept: parts of the text, and the last symbols of each


def evaluate(
    replication: Replication, config: LanguageRun, text: PreparedLanguage, trained: Sequence[Path], out: Path
) -> dict[str, float]:
    """Score every symbol of the test splits with one trained seed; there are no ensembles.

    Writes ``examples.jsonl.gz`` (all test splits) into ``out`` and, of the first one, ``attention.npz``, see
    :func:`kept_texts`, and if asked for ``contexts.npz``, see :func:`losses_by_context`, and ``samples.json``, see
    :func:`write_on`.

    Returns:
        Metrics of the first test split, and of the others with the split's name before them.

    Raises:
        ReplicationError: the first test split is too short for the contexts or samples asked for.
    """
    (model,) = replication.trained_models(config, text, trained)
    evaluation, first = config.evaluation, config.corpus.test[0]
    with torch.inference_mode():
        splits = {
            split: _evaluate_split(model, text, split, evaluation, evaluation.memories if split == first else ())
            for split in config.corpus.test
        }
        metrics = write_records(out, splits)
        if evaluation.contexts is not None:
            losses = losses_by_context(model, text.split(first), evaluation, evaluation.contexts)
            np.savez_compressed(out / "contexts.npz", **losses)
        if evaluation.samples is not None:
            samples = write_on(model, text, first, evaluation, evaluation.samples)
            (out / "samples.json").write_text(json.dumps(samples, ensure_ascii=False, indent=1), encoding="utf-8")
        if hasattr(model, "attention_maps"):
            write_kept(out / "attention.npz", kept_texts(model, text, first, evaluation))
    return metrics


def losses_by_context(
    model: Any, stream: Stream, evaluation: LanguageEvaluation, contexts: ContextsConfig
) -> dict[str, Any]:
    """The loss of some symbols after exactly c symbols of context, read from nothing, for all c asked for.

    The symbols stand a step Δ apart, in runs that are evenly spread over the text. One reading from a starting place
    therefore gives losses with every c, each of another symbol. If symbols that repeat an earlier one are asked for,
    their places are irregular, and each of their contexts is read separately. Segments are as in the evaluation, or of
    Δ symbols if that is less. A model without memory sees only the last segment of the context, or with sliding windows
    the last window, however long the context is.

    Returns:
        ``context`` (C,), symbols; ``nats`` (C, P); ``places`` (P,) of the symbols in the stream.

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
    return {"context": np.array(lengths), "nats": np.stack(nats), "places": places}


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
    model: Any, stream: Stream, starts: Places, evaluation: LanguageEvaluation, step: int, most: int
) -> Floats:
    """Nats (S, C) of the symbol after each step of a context, up to the longest one, that begins at ``starts`` (S,).

    A step is read in segments as in the evaluation; the first one is shorter if they do not fit.
    """
    short, whole = step % evaluation.length, step // evaluation.length
    segments = [*([short] if short else []), *[evaluation.length] * whole]
    found = []
    for group in np.array_split(starts, -(-len(starts) * max(segments) // INPUTS)):
        inside = (group[:, None] + np.arange(most + 1)).clip(max=len(stream) - 1)  # the value is unused
        read = torch.from_numpy(stream.symbols[inside].astype(np.int64)).to(device_of(model))
        memory, nats = model.memory(len(group), evaluation.reach.reach), []
        for begin in range(0, most, step):
            for inputs in read[:, begin : begin + step].split(segments, dim=1):
                log_probs = model.next_log_probs(inputs, memory)
            nats.append(-log_probs.gather(1, read[:, begin + step, None]))
        found.append(torch.cat(nats, dim=1).double().cpu().numpy())
    return np.concatenate(found)


def _after(model: Any, stream: Stream, places: Places, context: int) -> Floats:
    """Nats (P,) of the symbols at these places, each after so many symbols and nothing else."""
    nats = []
    for group in np.array_split(places, -(-len(places) * context // INPUTS)):
        symbols = stream.symbols[group[:, None] + np.arange(-context, 1)].astype(np.int64)
        read = torch.from_numpy(symbols).to(device_of(model))
        log_probs = model.next_log_probs(read[:, :-1])
        nats.append(-log_probs.gather(1, read[:, -1:]).squeeze(1).double().cpu().numpy())
    return np.concatenate(nats)


def _evaluate_split(
    model: Any, text: PreparedLanguage, split: str, config: LanguageEvaluation, memories: Sequence[int]
) -> list[Example]:
    """A record of every block of consecutive symbols of a split."""
    stream, reach, sliding = text.split(split), config.reach.reach, config.sliding
    segments: dict[int, tuple[Floats, Places]] = {}  # length of the memory to what is scored with it
    for memory in sorted({*memories} if sliding else {*memories, reach.memory}):
        warm_up = memory + config.length if memory else 0
        batches = stream.evaluation_batches(columns=config.columns, length=config.length, warm_up=warm_up)
        segments[memory] = _score(model, stream, batches, model.memory(config.columns, reach._replace(memory=memory)))
    if sliding is None:
        nats, _ = segments[reach.memory]
    else:
        nats, _ = _score(model, stream, stream.windows(**sliding.model_dump()), None)
    blocks = [slice(begin, begin + config.block) for begin in range(0, len(stream), config.block)]
    sizes, per_symbol = [len(nats[block]) for block in blocks], text.units[split] / len(stream)
    columns: dict[str, Sequence[Any]] = {
        "nll": [float(nats[block].sum()) for block in blocks],
        "tokens": sizes,
        "unit": [text.summary["unit"]] * len(blocks),
        "units": [size * per_symbol for size in sizes],
    }
    if reach.memory in segments and config.length >= PARTS:
        found, within = segments[reach.memory]
        parts = within * PARTS // config.length
        sums = (np.bincount(parts[block], found[block], PARTS).tolist() for block in blocks)
        counts = (np.bincount(parts[block], minlength=PARTS).tolist() for block in blocks)
        columns["positions"] = [list(zip(*pair, strict=True)) for pair in zip(sums, counts, strict=True)]
    if memories:
        columns["memories"] = [
            {str(memory): float(of[block].sum()) for memory, (of, _) in segments.items()} for block in blocks
        ]
    if stream.distances is not None:
        columns["recalls"] = [_recalls(stream.distances[block], nats[block]) or None for block in blocks]
    return records(split, columns)


def _score(
    model: Any, stream: Stream, batches: Iterable[LanguageBatch], memory: Memory | None
) -> tuple[Floats, Places]:
    """The nats (N,) of all N symbols, and the place (N,) of each symbol in its segment."""
    nats, within = np.full(len(stream), np.nan), np.zeros(len(stream), dtype=np.int64)
    for batch in batches:
        mask, there = batch.mask, batch.to(device_of(model))
        found = model(there.inputs, there.targets, memory).double().cpu()
        places = batch.places[mask].numpy()
        nats[places], within[places] = found[mask].numpy(), mask.nonzero()[:, 1].numpy()
    return nats, within


def _recalls(distances: NDArray[np.integer], nats: Floats) -> dict[str, Any]:
    """End of a range of distances to nats, number and number of those with p > 1/2, of the symbols recalled."""
    recalled = distances > 0
    ends, nats = DISTANCES[np.searchsorted(DISTANCES, distances[recalled])], nats[recalled]
    return {
        str(end): [float(nats[ends == end].sum()), int((ends == end).sum()), int((nats[ends == end] < np.log(2)).sum())]
        for end in np.unique(ends)
    }  # fmt: skip


def kept_texts(
    model: Any, text: PreparedLanguage, split: str, evaluation: LanguageEvaluation
) -> list[dict[str, NDArray[Any]]]:
    """Every head's weights on the last symbols of some parts of a split.

    A part is read as in evaluation, segment by segment from nothing, until the memory is full. Where it is known which
    symbols repeat an earlier one, such a symbol follows each part, and stood as far before as the model sees. Else
    parts are evenly spread.

    Args:
        model: has ``attention_maps(segments, reach)``.
        text: the prepared task.
        split: of the test text.
        evaluation: how far the model sees.

    Returns:
        of each part ``symbols`` (S,), those that the last one attends to; ``next``, what follows; ``own``, how many of
        the S are of the last segment; and ``weights`` (N, H, R, S), of the R last symbols, in half precision.
    """
    stream, length, reach = text.split(split), evaluation.length, evaluation.reach.reach
    read = (1 + -(-reach.memory // length)) * length
    kept = []
    for end in _ends(stream, read, length + reach.memory):
        symbols = stream.symbols[end - read : end].astype(np.int64)
        given = torch.from_numpy(symbols).to(device_of(model)).unsqueeze(0)
        weights = model.attention_maps(given.split(length, dim=1), reach)
        seen, pieces = weights.size(-1), text.tokenizer.pieces([*symbols.tolist(), int(stream.symbols[end])])
        kept.append({
            "symbols": np.array(pieces[-1 - seen : -1]), "next": np.array(pieces[-1]), "own": np.array(length),
            "weights": weights[:, 0, :, -ROWS:].half().cpu().numpy(),
        })  # fmt: skip
    return kept


def _ends(stream: Stream, least: int, seen: int) -> list[int]:
    """Places after the last symbol of every part; before each there are at least so many symbols."""
    places = np.arange(least, len(stream))
    if stream.distances is None:
        return places[np.linspace(0, len(places) - 1, TEXTS + 2).astype(int)[1:-1]].tolist() if len(places) else []
    distances = np.asarray(stream.distances[least:], dtype=np.int64)
    within = np.where(distances <= seen, distances, 0)
    furthest = np.argsort(-within, kind="stable")[:TEXTS]
    return np.sort(places[furthest[within[furthest] > 0]]).tolist()


def write_on(
    model: Any, text: PreparedLanguage, split: str, evaluation: LanguageEvaluation, wanted: SampleConfig
) -> list[dict[str, str]]:
    """Let a model write on from several places of a test split, evenly spread, always with the same noise.

    A model without memory reads no more at once than it is judged with: a segment, or a window of those that slide.

    Args:
        model: a :class:`LanguageModel` in evaluation mode.
        text: the prepared task.
        split: that it goes on with.
        evaluation: how far the model sees.
        wanted: what is written.

    Returns:
        of each place its ``prompt``, the model's ``text``, and the ``true`` text that follows the prompt.

    Raises:
        ReplicationError: the test split is too short, or the model predicts NaN.
    """
    symbols = text.split(split).symbols
    spare = len(symbols) - wanted.prompt - wanted.length
    if spare < 0:
        raise ReplicationError(
            f"a prompt of {wanted.prompt} symbols and {wanted.length} more do not fit into the {len(symbols)} symbols "
            "of the test text; make evaluation.samples shorter."
        )
    starts = np.linspace(0, spare, wanted.prompts + 2).astype(int)[1:-1]
    whole = symbols[starts[:, None] + np.arange(wanted.prompt + wanted.length)].astype(np.int64)
    prompts, true = np.split(whole, [wanted.prompt], axis=1)
    window = evaluation.sliding.context if evaluation.sliding else evaluation.length
    seen = wanted.prompt if evaluation.reach.memory else window
    written = drawn(model, torch.from_numpy(prompts[:, -seen:]), evaluation, wanted, seed=0)
    columns = {"prompt": prompts.tolist(), "text": written, "true": true.tolist()}
    return [{name: decoded(text.tokenizer, of[i]) for name, of in columns.items()} for i in range(wanted.prompts)]


def drawn(
    model: Any, prompts: torch.Tensor, evaluation: LanguageEvaluation, wanted: SampleConfig, seed: int
) -> list[list[int]]:
    """The symbols that a model adds to each of the prompts (B, T), drawn with the noise of a seed."""
    device = device_of(model)
    return continue_text(
        model, prompts.to(device), evaluation.reach.reach, length=wanted.length,
        never=(PAD, UNK, BOS), generator=torch.Generator(device).manual_seed(seed), temperature=wanted.temperature,
        top_k=wanted.top_k, top_p=wanted.top_p,
    ).tolist()  # fmt: skip


def decoded(tokenizer: Tokenizer, symbols: Sequence[int]) -> str:
    """Text, with its line ends."""
    lines: list[list[int]] = [[]]
    for symbol in symbols:
        if symbol == EOS:
            lines.append([])
        else:
            lines[-1].append(symbol)
    return "\n".join(tokenizer.decode(lines))
