"""One trained translation model on its test splits: translations, likelihoods, alignments, one record per example."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import shared.tasks.translation.measures  # noqa: F401  registers what evaluation computes
from shared.data.batching import Indices, epoch_batches
from shared.data.tokenizers import BOS, EOS, PAD, SPECIAL, UNK
from shared.decoding.beam import beam_search
from shared.decoding.constraints import Constraints
from shared.errors import ReplicationError
from shared.metrics.alignment import alignment_statistics, merge_pieces, parse_pharaoh, split_links
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
from shared.tasks.examples import Example, write_examples
from shared.tasks.translation.attention_maps import save_attention_maps
from shared.tasks.translation.corpus import ParallelText, PreparedText
from shared.tasks.translation.settings import DecodingConfig, EvaluationConfig, TranslationRun
from shared.training.loss import token_nll

Weights = NDArray[np.float32]
RUNNING_TEXT: Tokenisation = "13a"
"""Text that has capital letters, so that BLEU without them is another measure; generated words have none."""
Cut = Callable[[Sequence[str]], Sequence[str]]


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
        records, weights = _judge_split(model, text, split, config)
        examples += records
        prefix = "" if number == 0 else f"{split}."
        metrics |= {prefix + name: value for name, value in _summary(records).items()}
        if number == 0 and weights:
            _save_heatmaps(out / "attention.npz", text, split, weights, config.evaluation.heatmaps)
            save_attention_maps(out / "heads.npz", model, text, split)
    write_examples(out, examples)
    return metrics


def _judge_split(
    model: Any, text: PreparedText, split: str, config: TranslationRun
) -> tuple[list[Example], list[Weights]]:
    encoded, (sources, references), gold = text.split(split), text.lines(split), text.alignments(split)
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
    text: PreparedText,
    sources: Sequence[str],
    symbols: Sequence[Sequence[int]],
    attention: Sequence[Weights],
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
    model: Any,
    encoded: ParallelText,
    decoding: DecodingConfig,
    *,
    forbid: Sequence[int] = (),
    attention: bool = False,
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


def _in_batches(text: ParallelText, size: int) -> Iterator[Indices]:
    """All indices, sources of similar length together, longest last."""
    yield from epoch_batches((text.source.lengths,), pool=10**6, seed=0, epoch=0, sentences=size)


def _between_words(text: PreparedText, encoded: ParallelText, i: int, weights: Weights) -> NDArray[np.float64]:
    """Weights between symbols to weights between words; end symbols belong to no word."""
    source = [*text.source.words(encoded.source[i].tolist()), -1]
    target = [*text.target.words(encoded.target[i].tolist()), -1]
    return merge_pieces(weights, source, target)


def _save_heatmaps(path: Path, text: PreparedText, split: str, weights: Sequence[Weights], count: int) -> None:
    """The attention of ``count`` test sentences of middling length, evenly spread over the split."""
    encoded, gold = text.split(split), text.alignments(split)
    fitting = [i for i in range(len(encoded)) if 6 <= len(encoded.source[i]) <= 24]
    chosen = [fitting[round(k)] for k in np.linspace(0, len(fitting) - 1, min(count, len(fitting)))]
    arrays: dict[str, Any] = {}
    for number, i in enumerate(chosen):
        source, target = encoded.source[i].tolist(), encoded.target[i].tolist()
        arrays[f"weights_{number}"] = weights[i]
        arrays[f"source_{number}"] = np.array([*text.source.pieces(source), SPECIAL[EOS]])
        arrays[f"target_{number}"] = np.array([*text.target.pieces(target), SPECIAL[EOS]])
        if gold is not None:
            arrays[f"gold_{number}"] = split_links(
                parse_pharaoh(gold[i]).possible, text.source.words(source), text.target.words(target)
            )
    np.savez_compressed(path, **arrays)
