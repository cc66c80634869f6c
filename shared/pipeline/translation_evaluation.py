"""One trained translation model on its test splits: translations, likelihoods, alignments, one record per example."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from shared.data.batching import Indices, epoch_batches
from shared.data.parallel import ParallelText, PreparedText
from shared.data.tokenizers import BOS, EOS, PAD, SPECIAL, UNK
from shared.decoding.beam import beam_search
from shared.decoding.constraints import Constraints
from shared.metrics.alignment import agreement, alignment_statistics, merge_pieces, parse_pharaoh
from shared.metrics.translation import Tokenisation, bleu, bleu_statistics, chrf, perplexity
from shared.pipeline.run_config import DecodingConfig, RunConfig
from shared.training.loss import token_nll

Example = dict[str, Any]
Weights = NDArray[np.float32]


def signatures(tokenise: Tokenisation) -> dict[str, str]:
    """The sacreBLEU signatures that this module's scores are made under."""
    return {"bleu": bleu(["a"], ["a"], tokenise=tokenise).signature, "chrf": chrf(["a"], ["a"]).signature}


def evaluate_translation(model: Any, text: PreparedText, config: RunConfig, out: Path) -> dict[str, float]:
    """Judge ``model``, in evaluation mode, on every test split of its task.

    Writes ``examples.jsonl.gz`` (all test splits) and, if the model attends, ``attention.npz`` into ``out``.

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
        metrics |= {prefix + name: value for name, value in _summary(records, config.evaluation.bleu).items()}
        if number == 0 and weights:
            _save_heatmaps(out / "attention.npz", text, split, weights, config.evaluation.heatmaps)
    with gzip.GzipFile(
        out / "examples.jsonl.gz", "wb", mtime=0
    ) as file:  # no time in it: same results, same bytes
        file.write("".join(json.dumps(example, ensure_ascii=False) + "\n" for example in examples).encode())
    return metrics


def _judge_split(
    model: Any, text: PreparedText, split: str, config: RunConfig
) -> tuple[list[Example], list[Weights]]:
    encoded, (sources, references), gold = text.split(split), text.lines(split), text.alignments(split)
    nll, weights = _teacher_forced(model, encoded, config.decoding.batch)
    hypotheses = _translate(model, text, encoded, config.decoding)
    known = (
        _translate(model, text, encoded, config.decoding, forbid=(UNK,))
        if config.decoding.no_unknown
        else None
    )
    statistics = bleu_statistics(hypotheses, references, tokenise=config.evaluation.bleu)
    known_statistics = bleu_statistics(known, references, tokenise=config.evaluation.bleu) if known else None
    records = []
    for i, (source, reference) in enumerate(zip(sources, references, strict=True)):
        record = {
            "id": f"{split}-{i}", "split": split, "source": source, "reference": reference,
            "hypothesis": hypotheses[i], "source_length": len(source.split()),
            "reference_length": len(reference.split()), "nll": nll[i], "tokens": len(encoded.target[i]) + 1,
            "bleu": statistics[i].tolist(), "exact": int(hypotheses[i] == reference),
            "unknown": bool(UNK in encoded.source[i] or UNK in encoded.target[i]),
        }  # fmt: skip
        if known is not None and known_statistics is not None:
            record |= {"hypothesis_known": known[i], "bleu_known": known_statistics[i].tolist()}
        if gold is not None and weights:
            record["alignment"] = alignment_statistics(
                _between_words(text, encoded, i, weights[i]), parse_pharaoh(gold[i])
            )
        records.append(record)
    return records, weights


def _summary(records: Sequence[Example], tokenise: Tokenisation) -> dict[str, float]:
    hypotheses, references = ([record[key] for record in records] for key in ("hypothesis", "reference"))
    nll, tokens = (sum(record[key] for record in records) for key in ("nll", "tokens"))
    metrics = {
        "bleu": bleu(hypotheses, references, tokenise=tokenise).value,
        "chrf": chrf(hypotheses, references).value,
        "nll_per_token": nll / tokens,
        "nll_per_sentence": nll / len(records),
        "perplexity": perplexity(nll, tokens),
        "exact_match": float(np.mean([record["exact"] for record in records])),
        "length_ratio": sum(len(h.split()) for h in hypotheses) / sum(len(r.split()) for r in references),
    }
    aligned = [record["alignment"] for record in records if "alignment" in record]
    if aligned:
        metrics["alignment_accuracy"] = sum(a["hits"] for a in aligned) / sum(a["words"] for a in aligned)
        metrics["aer"] = agreement(np.sum([a["aer"] for a in aligned], axis=0)).error_rate
    metrics |= _without_unknown(records, tokenise)
    return metrics


def _without_unknown(records: Sequence[Example], tokenise: Tokenisation) -> dict[str, float]:
    """Table 1's second column: sentences without an unknown word in source or reference, UNK forbidden."""
    chosen = [record for record in records if "hypothesis_known" in record and not record["unknown"]]
    if not chosen:
        return {}
    hypotheses, references = ([record[key] for record in chosen] for key in ("hypothesis_known", "reference"))
    return {"bleu_known": bleu(hypotheses, references, tokenise=tokenise).value}


@torch.no_grad()
def _teacher_forced(model: Any, text: ParallelText, size: int) -> tuple[list[float], list[Weights]]:
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


def _translate(
    model: Any,
    text: PreparedText,
    encoded: ParallelText,
    decoding: DecodingConfig,
    forbid: Sequence[int] = (),
) -> list[str]:
    """The best translation of every source, detokenised."""
    device = next(model.parameters()).device
    best: dict[int, list[int]] = {}
    for indices in _in_batches(encoded, decoding.batch):
        batch = encoded.batch(indices).to(device)
        lengths = batch.source_mask.sum(1)
        constraints = Constraints(
            begin=BOS, end=EOS, padding=PAD, minimum=(lengths * decoding.minimum_ratio).long(),
            maximum=(lengths * decoding.maximum_ratio).long().clamp(min=1), forbidden=forbid,
        )  # fmt: skip
        with torch.no_grad():
            state = model.start(batch.source, batch.source_mask)
        found = beam_search(
            model, state, constraints, beam=decoding.beam,
            normalisation=decoding.normalisation, alpha=decoding.alpha,
        )  # fmt: skip
        best |= dict(zip(indices.tolist(), found.best(), strict=True))
    return text.target.decode([best[i] for i in range(len(encoded))])


def _in_batches(text: ParallelText, size: int) -> Iterator[Indices]:
    """All indices, sources of similar length together, longest last."""
    yield from epoch_batches((text.source.lengths,), pool=10**6, seed=0, epoch=0, sentences=size)


def _between_words(
    text: PreparedText, encoded: ParallelText, i: int, weights: Weights
) -> NDArray[np.float64]:
    """Weights between symbols to weights between words; end symbols belong to no word."""
    source = [*text.source.words(encoded.source[i].tolist()), -1]
    target = [*text.target.words(encoded.target[i].tolist()), -1]
    return merge_pieces(weights, source, target)


def _save_heatmaps(
    path: Path, text: PreparedText, split: str, weights: Sequence[Weights], count: int
) -> None:
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
            arrays[f"gold_{number}"] = parse_pharaoh(gold[i]).possible
    np.savez_compressed(path, **arrays)
