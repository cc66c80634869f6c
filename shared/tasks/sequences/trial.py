"""Completes one sequence with a trained model: a word to be copied, a picture, or a protein.

Shape letters: T symbols of a sequence.
"""

from __future__ import annotations

import re
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from shared.claims.words import number_of
from shared.data.opening import read_picture
from shared.data.tokenizers import BOS
from shared.errors import ReplicationError
from shared.tasks import tried
from shared.tasks.sequences.corpus import PreparedSequences
from shared.tasks.sequences.evaluation import continued, given_pixels
from shared.tasks.sequences.pixels import pictures, reduced
from shared.tasks.sequences.proteins import decode, encode
from shared.tasks.sequences.settings import FIRST, LETTERS, MASK, PicturesConfig, SequenceRun

ADDED = 40
"""Amino acids that are drawn after those given."""
HIDDEN = "?"
"""Stands for an amino acid that is to be filled in."""
DRAWN = "What follows is drawn from the model's probabilities, always with the same noise."
DIGITS = 9
"""The most digits that a number may have; Python refuses to read a number of some thousands."""
_UPPER = str.maketrans(ascii_lowercase, ascii_uppercase)  # other characters may become letters of amino acids
NUMBERS = re.compile(r"\d+([\s,]+\d+)*")


def try_input(model: Any, data: PreparedSequences, config: SequenceRun, asked: str, seed: int) -> tried.Tried:
    """Complete ``asked``, with the recurrent form of the model where it has one.

    Args:
        model: in evaluation mode; a :class:`shared.decoding.protocol.GenerativeModel` unless letters are masked.
        data: the prepared task.
        config: the variant's settings.
        asked: numbers of symbols or pixels with spaces between them, ``test:<number>`` or the path of an image file for
            a picture, or letters of amino acids.
        seed: of the run; the noise is that of judging.

    Raises:
        ReplicationError: the input is empty or too long, or a part of it is not a symbol of the task.
    """
    completed = {"copies": _copied, "pixels": _drawn, "proteins": _prolonged if config.corpus.causal else _filled}
    with torch.inference_mode():
        return completed[config.corpus.of](model, data, config, asked)


def _copied(model: Any, data: PreparedSequences, config: SequenceRun, asked: str) -> tried.Tried:
    corpus: Any = config.corpus
    lengths = f"{corpus.shortest} to {corpus.longest}" if corpus.shortest < corpus.longest else f"{corpus.longest}"
    expected = f"{lengths} numbers from 1 to {data.symbols - 1} with spaces between them"
    word = _numbers(tried.not_empty(asked, expected), range(1, data.symbols), expected)
    tried.not_longer(len(word), corpus.longest, "the longest word")
    copy = continued(model, torch.tensor([[0, *word, 0, *word]]), len(word) + 1)[0, -len(word) :].tolist()
    right = sum(one == other for one, other in zip(word, copy, strict=True))
    notes = [f"As they were given: {right} of {number_of(len(word), 'symbol')}.", DRAWN]
    if len(word) < corpus.shortest:
        notes.append(f"The model was trained with words of {lengths} symbols.")
    return tried.Tried(" ".join(map(str, word)), " ".join(map(str, copy)), lines=notes)


def _drawn(model: Any, data: PreparedSequences, config: SequenceRun, asked: str) -> tried.Tried:
    (height, width, channels), levels = data.summary["shape"], data.summary["levels"]
    size, test = height * width * channels, data.split(config.corpus.test[0])
    expected = (
        f"{tried.TEST}0 to {tried.TEST}{len(test) - 1} for a picture of the test split, the path of an image file, or "
        f"the first pixels, numbers from 0 to {levels - 1} with spaces between them"
    )
    name = tried.not_empty(asked, expected)
    given = given_pixels(config.evaluation.pictures or PicturesConfig(), data.summary["shape"])
    whole = True
    if (number := tried.numbered(name, len(test))) is not None:
        pixels = test.batch(np.array([number])).targets[0].numpy()
    elif NUMBERS.fullmatch(name):
        numbers = _numbers(name, range(levels), expected)
        tried.not_longer(len(numbers), size - 1, f"what can be given of the {size} pixels of a picture")
        name, whole, given = number_of(len(numbers), "pixel"), False, len(numbers)
        pixels = np.pad(numbers, (0, size - given))
    else:
        corpus: Any = config.corpus
        with tried.reading_picture(Path(name), expected):
            file = Image.fromarray(read_picture(Path(name).read_bytes()))
        image = file.convert("L" if channels == 1 else "RGB").resize((width * corpus.pool, height * corpus.pool))
        values = np.asarray(image).reshape(1, height * corpus.pool, width * corpus.pool, channels)
        pixels = reduced(values, corpus).astype(np.int64).ravel()

    def coloured(values: NDArray[np.integer]) -> tried.Pixels:
        """(T,) to (H, W, 3), a copy."""
        return np.repeat(pictures(values, data.summary["shape"], levels), 3 // channels, axis=-1).copy()

    completed = continued(model, torch.from_numpy(np.concatenate(([levels], pixels))[None]), given)[0]
    seen = coloured(pixels)
    seen.reshape(-1, 3)[-(-given // channels) :] = tried.UNSEEN
    shown = {"given": seen, "completed": coloured(completed)} | ({"as it is": coloured(pixels)} if whole else {})
    output = f"{size - given} of {number_of(size, 'pixel')}, row by row after the {given} given"
    return tried.Tried(name, output, pictures=shown, lines=[DRAWN])


def _prolonged(model: Any, data: PreparedSequences, config: SequenceRun, asked: str) -> tried.Tried:
    """A protein of which the first amino acids are given."""
    limit = config.corpus.length
    expected = f"1 to {limit - 1} letters of amino acids, such as MKTAYIAKQR"
    letters, symbols = _letters(asked, LETTERS, expected)
    tried.not_longer(len(symbols), limit - 1, "what the model may be given of the longest sequence")
    whole = torch.tensor([[BOS, *symbols, *[FIRST] * min(ADDED, limit - len(symbols))]])
    drawn = continued(model, whole, len(symbols))[0, len(symbols) :].tolist()
    end = next((place for place, symbol in enumerate(drawn) if symbol < FIRST), len(drawn))
    ended = [f"After {number_of(end, 'letter')} the model has ended the sequence."] if end < len(drawn) else []
    return tried.Tried(letters, decode(drawn[:end]), lines=[DRAWN, *ended])


def _filled(model: Any, data: PreparedSequences, config: SequenceRun, asked: str) -> tried.Tried:
    """A protein with gaps."""
    limit = config.corpus.length
    expected = f"up to {limit} letters of amino acids with '{HIDDEN}' for those to be filled in, such as MKTA?IAK?R"
    letters, encoded = _letters(asked, LETTERS + HIDDEN, expected)
    symbols = np.array(encoded, dtype=np.int64)
    gaps = np.flatnonzero(np.array(list(letters)) == HIDDEN)
    if not len(gaps) or len(gaps) == len(letters):
        raise ReplicationError(
            f"the input has {number_of(len(gaps), 'gap')} in {number_of(len(letters), 'letter')}; give {expected}."
        )
    tried.not_longer(len(letters), limit, "the longest sequence")
    symbols[gaps] = MASK
    device = next(model.parameters()).device
    shares = model.output.log_probs(model(torch.from_numpy(symbols[None]).to(device))[0, gaps]).double().exp().cpu()
    names = [decode([symbol]) for symbol in range(shares.size(1))]
    symbols[gaps] = shares.argmax(1).numpy()
    of_gaps = [tried.ranked(dict(zip(names, row, strict=True)), 5) for row in shares.tolist()]
    notes = [
        f"Letter {gap + 1}: " + ", ".join(f"{name} {100 * share:.0f} %" for name, share in row) + "."
        for gap, row in zip(gaps, of_gaps, strict=True)
    ]
    return tried.Tried(letters, decode(symbols), shares=of_gaps[0] if len(gaps) == 1 else (), lines=notes)


def _numbers(text: str, known: range, expected: str) -> list[int]:
    """The numbers in a text, all of them symbols."""
    if not NUMBERS.fullmatch(text):
        raise ReplicationError(f"{tried.quoted(text)} is not a sequence of numbers; give {expected}.")
    written = re.findall(r"\d+", text)
    if long := [number for number in written if len(number) > DIGITS]:
        raise ReplicationError(f"a number of {len(long[0])} digits is no symbol of the task; give {expected}.")
    numbers = [int(number) for number in written]
    if unknown := sorted({*numbers} - {*known}):
        raise ReplicationError(f"{unknown[0]} is no symbol of the task; give {expected}.")
    return numbers


def _letters(asked: str, known: str, expected: str) -> tuple[str, list[int]]:
    """The capital letters that are asked for, all of them known, and their symbols."""
    text = tried.not_empty(asked, expected).translate(_UPPER)
    if unknown := sorted({*text} - {*known}):
        raise ReplicationError(f"{unknown[0]!r} stands for no amino acid; give {expected}.")
    return text, encode(text).tolist()
