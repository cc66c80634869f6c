"""What a report says of the data of its tasks."""

from types import SimpleNamespace

import pytest

from shared.data.cards import load_card
from shared.reports.document import Bullets, Details, plain_text
from shared.reports.report import describe_data


@pytest.mark.parametrize(
    ("dataset", "corpus", "said"),
    [
        ("generated_swaps", {}, "longer than any in train."),
        ("multi30k", {"train_pairs": 9667}, "Used are the first 9,667 pairs of train."),
        (
            "wikitext2",
            {"lines": {"test": 600, "valid": 500}},
            "Used are the first 600 lines of test, 500 lines of valid.",
        ),
        ("generated_tally", {"train_texts": 500}, "Used are 500 texts of train, drawn at random once."),
        ("mnist", {"images": {"train": 5000}}, "Used are the first 5,000 pictures of train."),
    ],
)
def test_title_splits_and_the_part_that_is_used_are_said(root, dataset, corpus, said):
    card = load_card(dataset, root / "data")
    data, folded = describe_data(card, SimpleNamespace(**corpus))
    text = plain_text(data.text)
    assert text.startswith(f"Data: {card.title}.")
    assert all(f"{split}: {what}" in text for split, what in card.splits.items())
    assert text.endswith(said)
    assert ("Used are" in text) == bool(corpus)
    assert isinstance(folded, Details)
    (traps,) = folded.blocks
    assert isinstance(traps, Bullets)
    assert list(traps.items) == list(card.traps)
