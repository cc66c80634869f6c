"""What tests of the kinds' Lightning modules have in common."""

from shared.training.run import train_run

SETTINGS = {
    "updates": 3, "batch": {"sentences": 2}, "optimizer": {"name": "sgd", "learning_rate": 0.1}, "validate_every": 1,
    "clip": None,
}  # fmt: skip


def logged(module, monkeypatch):
    """A dictionary that always has the last values that the module has logged."""
    values = {}
    monkeypatch.setattr(module, "log", lambda name, value, **_: values.update({name: float(value)}))
    return values


def train(module, folder, batches, valid, fingerprint=""):
    train_run(
        module, module.config, batches=batches, valid=valid, folder=folder, seed=1, fingerprint=fingerprint,
        label="a run",
    )  # fmt: skip
