"""Fewer resamples than the stages make: as many as a module's RESAMPLES, else enough for what seeds alone decide."""

import pytest

from shared.claims import effects


@pytest.fixture(autouse=True)
def _fewer_resamples(request, monkeypatch):
    monkeypatch.setattr(effects, "RESAMPLES", getattr(request.module, "RESAMPLES", 1_000))
