"""Captions one picture with a trained model, and shows where it looked for each word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shared.data.fetch import fetch
from shared.data.photos import decode
from shared.data.tokenizers import EOS
from shared.metrics.alignment import merge_pieces
from shared.tasks import tried
from shared.tasks.captioning.corpus import PreparedCaptions, features_folder, trained_encoder
from shared.tasks.captioning.evaluation import search
from shared.tasks.captioning.settings import CaptionCorpusConfig, CaptioningRun
from shared.vision.features import load_features

KEPT, PICTURES = "pictures.npz", 12
"""The test pictures that come with a published model: the file that has them, and how many."""
CAPTION = (
    "Where the model looked in the picture while it wrote each word; shades are shares of the word's largest weight."
)


def try_input(model: Any, text: PreparedCaptions, config: CaptioningRun, asked: str, seed: int) -> tried.Tried:
    """Caption the picture ``asked`` with the variant's search.

    Args:
        model: in evaluation mode.
        text: the prepared task.
        config: the variant's settings.
        asked: path of an image file, or ``test:<number>`` for a picture of the first test split.
        seed: of the run; nothing is drawn.

    Raises:
        ReplicationError: there is no such picture, or its encoder cannot be obtained.
    """
    first, device = config.corpus.test[0], next(model.parameters()).device
    stored, kept = load_features(features_folder(text.folder) / f"{first}.npy"), text.folder / KEPT
    count = len(stored)
    expected = f"the path of an image file, or {tried.TEST}0 to {tried.TEST}{count - 1} for a picture of the test split"
    name = tried.not_empty(asked, expected)
    number = tried.numbered(name, count)
    if number is None:
        with tried.reading_picture(Path(name), expected):
            picture = decode(Path(name).read_bytes()).copy()  # as the photos of data sets are read
        features = _encoded(config.corpus, picture)
        notes = [f"The picture is read as {picture.shape[0]} x {picture.shape[1]} pixels, cut to its middle."]
    else:
        if kept.exists():
            picture = np.load(kept)["pictures"][number]
        else:
            fetch(config.corpus.dataset)  # at once if it is there
            picture = text.images(first).images([number])[0]
        features = torch.from_numpy(np.array(stored[number : number + 1])).float()
        notes = [f"A reference: {text.references(first)[number][0]}"]
    features = features.to(device)
    (symbols,) = search(model, features, config.evaluation)
    line = [*symbols, EOS]
    with torch.no_grad():
        answer = model(features, torch.tensor([line], device=device))
    rows, numbers = tried.whole_words(text.tokenizer, line)
    notes.append(f"The caption has a log-probability of {-float(answer.nats.double().sum()):z.2f} nats.")
    if answer.gates is not None:
        gates = merge_pieces(answer.gates[0].double().cpu().numpy()[:, None], [0], numbers)[:, 0]
        listed = ", ".join(f"{word} {gate:.2f}" for word, gate in zip(rows, gates, strict=True))
        notes.append(f"The gate on what is seen: {listed}.")
    weights = []
    if answer.attention is None:
        notes.append(tried.NO_ATTENTION)
    else:
        values = merge_pieces(answer.attention[0].double().cpu().numpy(), range(answer.attention.size(2)), numbers)
        weights.append(tried.Weights(CAPTION, rows, (), values, "map", (text.grid.rows, text.grid.columns), picture))
    (output,) = text.tokenizer.decode([symbols])
    return tried.Tried(name, output, weights, pictures={"The picture": picture}, lines=notes)


def publish(text: PreparedCaptions, config: CaptioningRun, out: Path) -> None:
    """Write the first test pictures and their features, for a model that is tried where nothing was fetched.

    Args:
        text: the prepared task.
        config: the variant's settings.
        out: folder that has what else :func:`try_input` reads of the prepared task.
    """
    first, folder = config.corpus.test[0], features_folder(out)
    features = load_features(features_folder(text.folder) / f"{first}.npy")[:PICTURES]
    folder.mkdir(parents=True)
    np.save(folder / f"{first}.npy", features)
    np.savez_compressed(out / KEPT, pictures=text.images(first).images(range(len(features))))


def _encoded(corpus: CaptionCorpusConfig, picture: tried.Pixels) -> Tensor:
    """(1, L, D) of a picture, by the encoder that the features of the task come from."""
    if corpus.encoder.standardise:
        fetch(corpus.dataset)
    encoder = trained_encoder(corpus, Path("data") / corpus.dataset)
    device = next((weights.device for weights in encoder.parameters()), torch.device("cpu"))
    with torch.inference_mode():
        return encoder(torch.from_numpy(picture[None]).to(device)).half().float()
