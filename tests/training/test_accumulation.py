"""An update of several batches is that of one batch with all that they have, however unequal they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from shared.tasks.language.streams import LanguageBatch
from shared.training.run import train_run
from tests.tasks.captioning.toy_captioner import ToyCaptioner
from tests.training.killable_run import KINDS, for_validation, ordered

PLAIN = {"optimizer": {"name": "adadelta"}, "schedule": {"name": "constant"}, "updates": 1, "validate_every": 1}
CASES: dict[str, dict[str, Any]] = {
    "translation": {},
    "translation, per sentence": {"loss_per": "sentence"},
    "classification": {},
    "captioning": {},
    "captioning, per caption": {"loss_per": "sentence"},
    "language": {"batch": {"sentences": 8, "length": 5}, "memory": 9, "loss_on": "last_half"},
    "sequences": {},
}


def updated(kind: str, changed: dict[str, Any], folder: Path, batches: list[Any]) -> dict[str, torch.Tensor]:
    """The weights after one update of these batches."""
    config_type, build_module, build_model, examples, _ = KINDS[kind]
    config = config_type.model_validate({"batch": {"sentences": 8}} | PLAIN | changed | {"accumulate": len(batches)})
    torch.manual_seed(3)
    module = build_module(build_model(), config)
    train_run(
        module, config, batches=lambda start: iter(batches), valid=for_validation(examples(50, seed=2)), folder=folder,
        seed=1, fingerprint="", label="run",
    )  # fmt: skip
    return {name: weight.detach() for name, weight in module.named_parameters()}


@pytest.mark.parametrize("case", CASES)
def test_batches_of_an_update_weigh_as_much_as_they_have_items(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nn.Dropout, "forward", lambda _, x: x)
    monkeypatch.setattr(ToyCaptioner, "reinforced", False)
    kind, changed = case.partition(",")[0], CASES[case]
    config_type, _, _, examples, count = KINDS[kind]
    config = config_type.model_validate({"batch": {"sentences": 8}} | PLAIN | changed)
    whole = next(ordered(examples(count, seed=1), config)(0))
    rows = 2
    if isinstance(whole, LanguageBatch):  # a memory has one number of columns
        whole.places[:3], rows = -1, 4
    parts = [whole.each(lambda part: part[:rows]), whole.each(lambda part: part[rows:])]
    assert parts[0].tokens * 2 < parts[1].tokens
    once = updated(kind, changed, tmp_path / "once", [whole])
    assert_close(updated(kind, changed, tmp_path / "twice", parts), once, rtol=1e-4, atol=1e-6)
