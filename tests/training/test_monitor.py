"""What a run shows while it goes on."""

from types import SimpleNamespace

import pytest
import torch

from shared.training.monitor import Reporter, Throughput
from shared.training.processes import Group

LOSS, VALID_LOSS, ERROR, BLEU = (torch.tensor(value) for value in (0.5, 0.25, 0.125, 21.34))


@pytest.mark.parametrize(
    ("metrics", "shown"),
    [
        ({"train_loss": LOSS}, "loss 0.500  80 tokens/s"),
        ({"train_loss": LOSS, "valid_loss": VALID_LOSS}, "loss 0.500  valid loss 0.250  80 tokens/s"),
        (
            {"valid_error": ERROR, "valid_loss": VALID_LOSS, "train_auxiliary": LOSS, "train_loss": LOSS},
            "loss 0.500  valid loss 0.250  valid error 12.5%  80 tokens/s",
        ),
        (
            {"valid_bleu": BLEU, "valid_loss": VALID_LOSS, "train_loss": LOSS},
            "loss 0.500  valid loss 0.250  valid BLEU 21.3  80 tokens/s",
        ),
    ],
)
def test_progress_has_the_losses_and_the_error_or_bleu_where_there_is_one(metrics, shown):
    throughput, reports = Throughput(Group()), []
    throughput.load_state_dict({"tokens": 160, "seconds": 2.0, "processor_seconds": 1.0})
    reporter = Reporter("a run", 10, throughput, reports.append)
    reporter.on_train_batch_end(SimpleNamespace(is_global_zero=True, global_step=3, callback_metrics=metrics), None)
    (progress,) = reports
    assert (progress.updates, progress.total, str(progress)) == (3, 10, shown)


def test_progress_is_not_reported_more_often_than_asked():
    reports = []
    reporter = Reporter("a run", 10, Throughput(Group()), reports.append, every=3600.0)
    for update in range(3):
        reporter.on_train_batch_end(
            SimpleNamespace(is_global_zero=True, global_step=update, callback_metrics={"train_loss": LOSS}), None
        )
    assert [progress.updates for progress in reports] == [0]


def test_a_run_ends_with_one_line(capsys):
    throughput = Throughput(Group())
    throughput.load_state_dict({"tokens": 24_000, "seconds": 12.0, "processor_seconds": 11.0})
    reporter = Reporter("a run", 10, throughput, None)
    reporter.on_train_batch_end(
        SimpleNamespace(
            is_global_zero=True,
        ),
        None,
    )
    reporter.on_train_end(SimpleNamespace(is_global_zero=True, global_step=10, callback_metrics={}), None)
    assert capsys.readouterr().out == "a run: 10 updates in 12 s, 2,000 tokens/s\n"
