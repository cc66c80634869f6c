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

from shared.data.batching import Indices, epoch_batches
from shared.data.tokenizers import BOS, EOS, PAD, SPECIAL, UNK
from shared.decoding.beam import beam_search
from shared.decoding.constraints import Constraints
from shared.decoding.ensemble import Ensemble
from shared.errors import ReplicationError
from shared.metrics.alignment import alignment_statistics, merge_pieces, parse_pharaoh, split_links
from shared.metrics.operations import FORWARD_PASSES, OPERATIONS_PER_MULTIPLY_ADD, count_operations
from shared.metrics.parsing import bracket_counts
from shared.metrics.registry import corpus_values
from shared.metrics.translation import Tokenisation, bleu_signature, bleu_statistics, chrf, moses_tokenised
from shared.tasks.batches import device_of, training_order
from shared.tasks.examples import Example, records, write_kept, write_records
from shared.tasks.replication import Replication
from shared.tasks.translation.corpus import ParallelText, PreparedText, TranslationBatch
from shared.tasks.translation.settings import DecodingConfig, EvaluationConfig, TranslationRun
from shared.training.checkpoints import load_checkpoint
from shared.training.loss import token_nll

Weights = NDArray[np.float32]
RUNNING_TEXT: Tokenisation = "13a"
"""Text that has capital letters, so that BLEU without them is another measure; generated words have none."""
HEADS_OF = 2
"""Sentences of which the attention of every head is kept."""
HEADS_SYMBOLS = 10
"""On the longer side of these: enough to show patterns, few enough to be named beside small heatmaps."""
SAMPLED = 16
"""Batches whose operations are counted, from those of short sentences to those of long ones."""


def evaluate(
    replication: Replication, config: TranslationRun, text: PreparedText, trained: Sequence[Path], out: Path
) -> dict[str, float]:
    """Translate and score the test splits with one trained seed, or with the ensemble of several.

    Writes ``examples.jsonl.gz`` (all test splits) into ``out`` and, if the model attends, ``attention.npz``, and
    ``heads.npz`` if it has heads to tell apart.

    Returns:
        Metrics of the first test split, and of the others with the split's name before them.
    """
    models = replication.trained_models(config, text, trained)
    model = models[0] if len(models) == 1 else Ensemble(models).eval()
    found = {split: _evaluate_split(model, text, split, config) for split in config.corpus.test}
    metrics = write_records(out, {split: examples for split, (examples, _) in found.items()}, _values)
    first = config.corpus.test[0]
    if weights := found[first][1]:
        encoded = text.split(first)
        write_kept(out / "attention.npz", _kept(text, first, weights, config.evaluation.heatmaps))
        write_kept(out / "heads.npz", attention_maps(model, text, encoded))
    if config.evaluation.operations:  # of an ensemble those of all its members
        train = text.training_split(config.training)
        order = training_order(train, config.training.batch, config.seeds[0])(start=0)
        updates = [load_checkpoint(folder / "checkpoints" / "last.ckpt")["global_step"] for folder in trained]
        metrics |= training_operations(
            models[0].cpu(), train, order, updates=updates, accumulate=config.training.accumulate
        )
    return metrics


def describe(config: TranslationRun) -> Mapping[str, Any]:
    """What a token is, and the sacreBLEU signatures that scores are made under."""
    evaluation = config.evaluation
    signatures = {"bleu": bleu_signature(evaluation.bleu), "chrf": chrf(["a"], ["a"])[1]}
    if evaluation.moses:
        signatures["bleu_tokenized"] = bleu_signature(moses=evaluation.moses)
        if evaluation.compounds:
            signatures["bleu_compounds"] = bleu_signature(moses=evaluation.moses, compounds=True)
    if evaluation.bleu == RUNNING_TEXT:
        signatures["bleu_lowercase"] = signatures["bleu"].replace("case:mixed", "case:lc")
    return {"signatures": signatures, "token": config.corpus.tokenizer.unit}


def _evaluate_split(
    model: Any, text: PreparedText, split: str, config: TranslationRun
) -> tuple[list[Example], list[Weights]]:
    """The record of every pair of a split, and its attention if the model attends."""
    encoded, gold, (sources, references) = text.split(split), text.alignments(split), text.lines(split)
    decoding, evaluation = config.decoding, config.evaluation
    nll, weights = teacher_forced(model, encoded, decoding.batch)
    if decoding.replace_unknown and not weights:
        raise ReplicationError("decoding.replace_unknown needs a model with attention; leave it out for this one.")
    symbols, attention = search(model, encoded, decoding, attention=decoding.replace_unknown)
    # By what is put behind a column's name; nothing for the model's own.
    translations = {"": text.target.decode(symbols)}
    if decoding.no_unknown:
        translations["_known"] = text.target.decode(search(model, encoded, decoding, forbid=(UNK,))[0])
    if decoding.replace_unknown:
        translations["_replaced"] = replace_unknown(text, sources, symbols, attention)
    columns = pair_columns(sources, references) | {
        "nll": nll,
        "tokens": (encoded.target.lengths + 1).tolist(),
        "exact": [int(said == meant) for said, meant in zip(translations[""], references, strict=True)],
        "unknown": [bool(UNK in encoded.source[i] or UNK in encoded.target[i]) for i in range(len(encoded))],
    }
    columns |= {f"hypothesis{name}": lines for name, lines in translations.items()}
    for kind, (cut, tokenise) in _kinds_of_bleu(evaluation).items():
        tokenised = cut(references)
        for name, lines in translations.items():
            columns[kind + name] = bleu_statistics(cut(lines), tokenised, tokenise=tokenise).tolist()
    if evaluation.brackets:
        columns["brackets"] = list(map(bracket_counts, translations[""], references))
    if gold is not None and weights:
        columns["alignment"] = [
            alignment_statistics(_between_words(text, encoded, i, weights[i]), parse_pharaoh(links))
            for i, links in enumerate(gold)
        ]
    return records(split, columns), weights


def pair_columns(sources: Sequence[str], references: Sequence[str]) -> dict[str, list[Any]]:
    """What a record has of a pair itself, whatever is judged: both texts, and how many words they have."""
    return {
        "source": [*sources], "reference": [*references],
        "source_length": [len(line.split()) for line in sources],
        "reference_length": [len(line.split()) for line in references],
    }  # fmt: skip


def _kinds_of_bleu(
    evaluation: EvaluationConfig,
) -> dict[str, tuple[Callable[[Sequence[str]], Sequence[str]], Tokenisation]]:
    """Every kind of BLEU asked for, with what is done to the text before sacreBLEU tokenises it."""
    kinds: dict[str, Any] = {"bleu": (list, evaluation.bleu)}
    if evaluation.bleu == RUNNING_TEXT:
        kinds["bleu_lowercase"] = lambda lines: [line.lower() for line in lines], RUNNING_TEXT  # as sacreBLEU's -lc
    if evaluation.moses:
        kinds["bleu_tokenized"] = partial(moses_tokenised, language=evaluation.moses), "none"
        if evaluation.compounds:
            kinds["bleu_compounds"] = partial(moses_tokenised, language=evaluation.moses, compounds=True), "none"
    return kinds


def _values(examples: Sequence[Example]) -> dict[str, float]:
    """The registered measures, and two that are not means over examples."""
    hypotheses, references = ([example[key] for example in examples] for key in ("hypothesis", "reference"))
    lengths = [sum(len(line.split()) for line in lines) for lines in (hypotheses, references)]
    score, _ = chrf(hypotheses, references)
    return corpus_values(examples) | {"chrf": score, "length_ratio": lengths[0] / lengths[1]}


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


@torch.no_grad()
def teacher_forced(model: Any, text: ParallelText, size: int) -> tuple[list[float], list[Weights]]:
    """Every reference's negative log-likelihood, nats, and its attention (T, S), end symbols included."""
    nll, weights = np.zeros(len(text)), {}
    for indices, batch in _batches(model, text, size):
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
    best: dict[int, list[int]] = {}
    weights: dict[int, Weights] = {}
    for indices, batch in _batches(model, encoded, decoding.batch):
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


def _batches(model: Any, text: ParallelText, size: int) -> Iterator[tuple[Indices, TranslationBatch]]:
    """All pairs on the model's device, sources of similar length together, longest last."""
    for indices in epoch_batches((text.source.lengths,), pool=10**6, seed=0, epoch=0, sentences=size):
        yield indices, text.batch(indices).to(device_of(model))


def _between_words(text: PreparedText, encoded: ParallelText, i: int, weights: Weights) -> NDArray[np.float64]:
    """Weights between symbols to weights between words; end symbols belong to no word."""
    source = [*text.source.words(encoded.source[i].tolist()), -1]
    target = [*text.target.words(encoded.target[i].tolist()), -1]
    return merge_pieces(weights, source, target)


def _kept(text: PreparedText, split: str, weights: Sequence[Weights], count: int) -> list[dict[str, Any]]:
    """The attention of ``count`` test sentences of middling length, evenly spread over the split."""
    encoded, gold = text.split(split), text.alignments(split)
    fitting = [i for i in range(len(encoded)) if 6 <= len(encoded.source[i]) <= 24]
    kept = []
    for i in (fitting[round(k)] for k in np.linspace(0, len(fitting) - 1, min(count, len(fitting)))):
        kept.append({"weights": weights[i], **_named(text, encoded, i)})
        if gold is not None:
            source, target = encoded.source[i].tolist(), encoded.target[i].tolist()
            links = parse_pharaoh(gold[i]).possible
            kept[-1]["gold"] = split_links(links, text.source.words(source), text.target.words(target))
    return kept


@torch.no_grad()
def attention_maps(model: Any, text: PreparedText, encoded: ParallelText) -> list[dict[str, Any]]:
    """Every head's weights on two test sentences of middling length; none if the model cannot tell them.

    Args:
        model: in evaluation mode; it may have ``attention_maps(source, source_mask, target)``.
        text: the prepared task.
        encoded: its test split.

    Returns:
        of each ``source`` (S,) and ``target`` (T,), the symbols with their end symbol, and every array that
        ``model.attention_maps`` returns, (N, H, rows, columns) in half precision. Row t of the decoder's maps is of the
        step that predicts target symbol t.
    """
    if not hasattr(model, "attention_maps"):
        return []
    kept = []
    away = np.abs(np.maximum(encoded.source.lengths, encoded.target.lengths) - HEADS_SYMBOLS)
    for i in np.sort(np.argsort(away, kind="stable")[:HEADS_OF]).tolist():  # of equals the first
        batch = encoded.batch(np.array([i])).to(device_of(model))
        maps = model.attention_maps(batch.source, batch.source_mask, batch.target)
        heads = {name: weights[:, 0].half().cpu().numpy() for name, weights in maps.items()}
        kept.append(heads | _named(text, encoded, i))
    return kept


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
