"""One trained translation model on its test splits: translations, likelihoods, alignments, one record per example."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

import shared.tasks.translation.measures  # noqa: F401  registers what evaluation computes
from shared.data.batching import Indices, epoch_batches
from shared.data.tokenizers import BOS, EOS, PAD, SPECIAL, UNK
from shared.decoding.beam import beam_search
from shared.decoding.constraints import Constraints
from shared.errors import ReplicationError
from shared.metrics.alignment import alignment_statistics, merge_pieces, parse_pharaoh, split_links
from shared.metrics.operations import FORWARD_PASSES, OPERATIONS_PER_MULTIPLY_ADD, count_operations
from shared.metrics.parsing import bracket_counts
from shared.metrics.registry import corpus_values
from shared.metrics.translation import (
    Tokenisation,
    bleu,
    bleu_moses,
    bleu_statistics,
    chrf,
    compounds_split,
    moses_tokenised,
)
from shared.tasks.examples import Example, write_examples, write_kept
from shared.tasks.translation.corpus import ParallelText, PreparedText
from shared.tasks.translation.settings import DecodingConfig, EvaluationConfig, TranslationRun
from shared.training.loss import token_nll

Weights = NDArray[np.float32]
RUNNING_TEXT: Tokenisation = "13a"
"""Text that has capital letters, so that BLEU without them is another measure; generated words have none."""
Cut = Callable[[Sequence[str]], Sequence[str]]
HEADS_OF = 2
"""Sentences of which the attention of every head is kept."""
HEADS_SYMBOLS = 10
"""On the longer side of these: enough to show patterns, few enough to be named beside small heatmaps."""
SAMPLED = 16
"""Batches whose operations are counted, from those of short sentences to those of long ones."""


def signatures(evaluation: EvaluationConfig) -> dict[str, str]:
    """The sacreBLEU signatures that this module's scores are made under."""
    found = {"bleu": bleu(["a"], ["a"], tokenise=evaluation.bleu), "chrf": chrf(["a"], ["a"])}
    if evaluation.moses:
        found["bleu_tokenized"] = bleu_moses(["a"], ["a"], evaluation.moses)
        if evaluation.compounds:
            found["bleu_compounds"] = bleu_moses(["a"], ["a"], evaluation.moses, compounds=True)
    named = {name: score.signature for name, score in found.items()}
    if evaluation.bleu == RUNNING_TEXT:
        named["bleu_lowercase"] = named["bleu"].replace("case:mixed", "case:lc")
    return named


def evaluate_translation(model: Any, text: PreparedText, config: TranslationRun, out: Path) -> dict[str, float]:
    """Judge ``model``, in evaluation mode, on every test split of its task.

    Writes ``examples.jsonl.gz`` (all test splits) into ``out`` and, if the model attends, ``attention.npz``, and
    ``heads.npz`` if it has heads to tell apart.

    Returns:
        Metrics of the first test split, and of the others with the split's name before them.
    """
    out.mkdir(parents=True, exist_ok=True)
    metrics: dict[str, float] = {}
    examples: list[Example] = []
    for number, split in enumerate(config.corpus.test):
        encoded, gold = text.split(split), text.alignments(split)
        records, weights = _judge_split(model, text, split, encoded, gold, config)
        examples += records
        prefix = "" if number == 0 else f"{split}."
        metrics |= {prefix + name: value for name, value in _summary(records).items()}
        if number == 0 and weights:
            _save_attention(out / "attention.npz", text, encoded, gold, weights, config.evaluation.heatmaps)
            save_attention_maps(out / "heads.npz", model, text, encoded)
    write_examples(out, examples)
    return metrics


def _judge_split(
    model: Any, text: PreparedText, split: str, encoded: ParallelText, gold: Sequence[str] | None,
    config: TranslationRun,
) -> tuple[list[Example], list[Weights]]:  # fmt: skip
    sources, references = text.lines(split)
    nll, weights = teacher_forced(model, encoded, config.decoding.batch)
    replace = config.decoding.replace_unknown
    if replace and not weights:
        raise ReplicationError("decoding.replace_unknown needs a model with attention; leave it out for this one.")
    symbols, attention = search(model, encoded, config.decoding, attention=replace)
    hypotheses = text.target.decode(symbols)
    others: dict[str, list[str]] = {}
    if config.decoding.no_unknown:
        others["_known"] = text.target.decode(search(model, encoded, config.decoding, forbid=(UNK,))[0])
    if replace:
        others["_replaced"] = replace_unknown(text, sources, symbols, attention)
    columns = _columns({"": hypotheses} | others, references, config.evaluation)
    records = []
    for i, (source, reference) in enumerate(zip(sources, references, strict=True)):
        record = {
            "id": f"{split}-{i}", "split": split, "source": source, "reference": reference,
            "source_length": len(source.split()), "reference_length": len(reference.split()),
            "nll": nll[i], "tokens": len(encoded.target[i]) + 1, "exact": int(hypotheses[i] == reference),
            "unknown": bool(UNK in encoded.source[i] or UNK in encoded.target[i]),
        }  # fmt: skip
        record |= {name: column[i] for name, column in columns.items()}
        if gold is not None and weights:
            record["alignment"] = alignment_statistics(
                _between_words(text, encoded, i, weights[i]), parse_pharaoh(gold[i])
            )
        records.append(record)
    return records, weights


def replace_unknown(
    text: PreparedText, sources: Sequence[str], symbols: Sequence[Sequence[int]], attention: Sequence[Weights]
) -> list[str]:
    """Translations whose unknown words are looked up (Luong et al. 2015, section 4, after Jean et al. 2015).

    For each, the source word with the highest weight is taken, the first of equals, and its translation in the
    dictionary put there, or if it has none the word itself.
    """
    dictionary, lines = text.dictionary(), []
    for source, line, weights in zip(sources, symbols, attention, strict=True):
        words, pieces = text.source.split(source), text.target.pieces(line)
        for place in (place for place, symbol in enumerate(line) if symbol == UNK):
            word = words[weights[place, : len(words)].argmax()]
            pieces[place] = dictionary.get(word, word)
        lines.append(" ".join(pieces))
    return lines


def _columns(
    translations: Mapping[str, Sequence[str]], references: Sequence[str], evaluation: EvaluationConfig
) -> dict[str, Sequence[Any]]:
    """What records hold of each translation of the same sources: the text, and its counts under every kind of BLEU.

    Args:
        translations: by what is put behind a column's name; nothing for the model's own.
        references: of each.
        evaluation: which kinds.
    """
    columns: dict[str, Sequence[Any]] = {f"hypothesis{name}": lines for name, lines in translations.items()}
    for kind, (cut, tokenise) in _kinds(evaluation).items():
        tokenised = cut(references)
        for name, lines in translations.items():
            columns[kind + name] = bleu_statistics(cut(lines), tokenised, tokenise=tokenise).tolist()
    if evaluation.brackets:
        columns["brackets"] = list(map(bracket_counts, translations[""], references))
    return columns


def _kinds(evaluation: EvaluationConfig) -> dict[str, tuple[Cut, Tokenisation]]:
    """Every kind of BLEU asked for, with what is done to the text before sacreBLEU tokenises it."""
    kinds: dict[str, tuple[Cut, Tokenisation]] = {"bleu": (list, evaluation.bleu)}
    if evaluation.bleu == RUNNING_TEXT:
        kinds["bleu_lowercase"] = lowercased, RUNNING_TEXT
    if evaluation.moses:
        kinds["bleu_tokenized"] = partial(moses_tokenised, language=evaluation.moses), "none"
        if evaluation.compounds:
            kinds["bleu_compounds"] = partial(compounds_split, language=evaluation.moses), "none"
    return kinds


def lowercased(lines: Sequence[str]) -> list[str]:
    """The lines without capital letters, as sacreBLEU's option ``-lc`` makes them."""
    return [line.lower() for line in lines]


def _summary(records: Sequence[Example]) -> dict[str, float]:
    hypotheses, references = ([record[key] for record in records] for key in ("hypothesis", "reference"))
    lengths = [sum(len(line.split()) for line in lines) for lines in (hypotheses, references)]
    chrf_score = chrf(hypotheses, references).value
    return corpus_values(records) | {"chrf": chrf_score, "length_ratio": lengths[0] / lengths[1]}


@torch.no_grad()
def teacher_forced(model: Any, text: ParallelText, size: int) -> tuple[list[float], list[Weights]]:
    """Every reference's negative log-likelihood, nats, and its attention (T, S), end symbols included."""
    device = next(model.parameters()).device
    nll, weights = np.zeros(len(text)), {}
    for indices in _in_batches(text, size):
        batch = text.batch(indices).to(device)
        logits, attention = model(batch.source, batch.source_mask, batch.target)
        nll[indices] = token_nll(logits, batch.labels).double().sum(1).cpu().numpy()
        if attention is not None:
            for i, rows in zip(indices.tolist(), attention.float().cpu().numpy(), strict=True):
                weights[i] = rows[: len(text.target[i]) + 1, : len(text.source[i]) + 1]
    return nll.tolist(), [weights[i] for i in sorted(weights)]


def search(
    model: Any, encoded: ParallelText, decoding: DecodingConfig, *, forbid: Sequence[int] = (), attention: bool = False
) -> tuple[list[list[int]], list[Weights]]:
    """Every source's best translation as symbols and, if asked for, its attention (T, S), end symbol included."""
    device = next(model.parameters()).device
    best: dict[int, list[int]] = {}
    weights: dict[int, Weights] = {}
    for indices in _in_batches(encoded, decoding.batch):
        batch = encoded.batch(indices).to(device)
        lengths = batch.source_mask.sum(1)
        constraints = Constraints(
            begin=BOS, end=EOS, padding=PAD, minimum=(lengths * decoding.minimum_ratio).long(),
            maximum=((lengths * decoding.maximum_ratio).long() + decoding.maximum_extra).clamp(min=1),
            forbidden=forbid,
        )  # fmt: skip
        with torch.no_grad():
            state = model.start(batch.source, batch.source_mask)
        found = beam_search(
            model, state, constraints, beam=decoding.beam, normalisation=decoding.normalisation,
            alpha=decoding.alpha, attention=attention,
        )  # fmt: skip
        best |= dict(zip(indices.tolist(), found.best(), strict=True))
        if found.attention is not None:
            weights |= dict(zip(indices.tolist(), found.attention[:, 0].float().cpu().numpy(), strict=True))
    return [best[i] for i in range(len(encoded))], [weights[i] for i in sorted(weights)]


def _in_batches(text: ParallelText, size: int) -> list[Indices]:
    """All indices, sources of similar length together, longest last."""
    return epoch_batches((text.source.lengths,), pool=10**6, seed=0, epoch=0, sentences=size)


def _between_words(text: PreparedText, encoded: ParallelText, i: int, weights: Weights) -> NDArray[np.float64]:
    """Weights between symbols to weights between words; end symbols belong to no word."""
    source = [*text.source.words(encoded.source[i].tolist()), -1]
    target = [*text.target.words(encoded.target[i].tolist()), -1]
    return merge_pieces(weights, source, target)


def _save_attention(
    path: Path, text: PreparedText, encoded: ParallelText, gold: Sequence[str] | None, weights: Sequence[Weights],
    count: int,
) -> None:  # fmt: skip
    """The attention of ``count`` test sentences of middling length, evenly spread over the split."""
    fitting = [i for i in range(len(encoded)) if 6 <= len(encoded.source[i]) <= 24]
    kept = []
    for i in (fitting[round(k)] for k in np.linspace(0, len(fitting) - 1, min(count, len(fitting)))):
        kept.append({"weights": weights[i], **_named(text, encoded, i)})
        if gold is not None:
            source, target = encoded.source[i].tolist(), encoded.target[i].tolist()
            links = parse_pharaoh(gold[i]).possible
            kept[-1]["gold"] = split_links(links, text.source.words(source), text.target.words(target))
    write_kept(path, kept)


def save_attention_maps(path: Path, model: Any, text: PreparedText, encoded: ParallelText) -> None:
    """Write every head's weights on two test sentences of middling length, if the model can tell them.

    Writes ``source_<i>`` (S,) and ``target_<i>`` (T,), the symbols with their end symbol, and for every array that
    ``model.attention_maps`` returns ``<name>_<i>`` (N, H, rows, columns) in half precision. Row t of the decoder's
    maps is of the step that predicts target symbol t.

    Args:
        path: of the file, an .npz.
        model: in evaluation mode; without ``attention_maps(source, source_mask, target)`` nothing is written.
        text: the prepared task.
        encoded: its test split.
    """
    if not hasattr(model, "attention_maps"):
        return
    kept, device = [], next(model.parameters()).device
    away = np.abs(np.maximum(encoded.source.lengths, encoded.target.lengths) - HEADS_SYMBOLS)
    for i in np.sort(np.argsort(away, kind="stable")[:HEADS_OF]).tolist():  # of equals the first
        batch = encoded.batch(np.array([i])).to(device)
        with torch.no_grad():
            maps = model.attention_maps(batch.source, batch.source_mask, batch.target)
        heads = {name: weights[:, 0].half().cpu().numpy() for name, weights in maps.items()}
        kept.append(heads | _named(text, encoded, i))
    write_kept(path, kept)


def _named(text: PreparedText, encoded: ParallelText, i: int) -> dict[str, Any]:
    """The symbols of a pair by name, with their end symbols."""
    sides = {"source": (text.source, encoded.source), "target": (text.target, encoded.target)}
    return {
        side: np.array([*tokenizer.pieces(symbols[i].tolist()), SPECIAL[EOS]])
        for side, (tokenizer, symbols) in sides.items()
    }


def training_operations(
    model: nn.Module, text: ParallelText, order: Iterator[Indices], *, updates: Sequence[int], accumulate: int
) -> dict[str, float]:  # fmt: skip
    """Count the operations of training from forward passes over single sentences as long as its batches were.

    No product combines different sentences, so a batch of B sentences has B times the operations of one. The operations
    are nearly proportional to the symbols of a batch, padding included, so the total is extrapolated from the counted
    batches by symbols. The counted batches are chosen by length and not at regular updates, because lengths vary so
    much that the totals of runs of equal cost then differed by 15 %.

    Args:
        model: that was trained, on the CPU, called as ``model(source, source_mask, target)``.
        text: what it was trained on.
        order: the indices of its batches, from the first on.
        updates: number of updates of each run; an ensemble has several runs.
        accumulate: batches that made one update.

    Returns:
        ``training_operations``: floating-point operations of all updates, two per multiply-add, the backward pass
        taken as twice the forward pass and padding included; ``forward_multiply_adds_per_label``, by labels that are
        not padding.
    """
    batches = max(updates) * accumulate
    sides = [side.lengths + 1 for side in (text.source, text.target)]  # and the end symbol
    shapes = (
        (len(indices), *(side[indices].max() for side in sides), sides[1][indices].sum())
        for indices in islice(order, batches)
    )
    rows, sources, targets, labels = np.fromiter(shapes, np.dtype((np.int64, 4)), batches).T
    by_length = np.argsort(sources + targets, kind="stable")
    sampled = min(SAMPLED, batches)
    chosen = by_length[((np.arange(sampled) + 0.5) * batches / sampled).astype(int)]
    counted = sum(int(rows[i]) * _forward(model, int(sources[i]), int(targets[i])) for i in chosen)
    symbols = rows * (sources + targets)
    multiply_adds = counted * float(symbols.sum() / symbols[chosen].sum())
    per_update = OPERATIONS_PER_MULTIPLY_ADD * FORWARD_PASSES * multiply_adds / max(updates)
    return {
        "training_operations": per_update * sum(updates),
        "forward_multiply_adds_per_label": multiply_adds / float(labels.sum()),
    }


def _forward(model: nn.Module, source_length: int, target_length: int) -> int:
    """Multiply-adds for one pair."""
    source, target = (torch.ones(1, length, dtype=torch.long) for length in (source_length, target_length))
    with torch.no_grad():
        return count_operations(model, source, source > 0, target)
