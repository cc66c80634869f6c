"""What an estimate adds up, and the parts of test splits that it is made from."""

import datetime
import json
import time
from types import SimpleNamespace

import numpy as np
import pytest

from shared.claims.results import COSTS
from shared.data.ragged import RaggedArray
from shared.errors import ReplicationError
from shared.pipeline.estimate import Estimate, described, summed
from shared.pipeline.past import judged_otherwise, judging_record, past_of, trained_mark
from shared.pipeline.provenance import machine
from shared.pipeline.shortened import chosen, part_of, shortened
from shared.pipeline.trials import Loading, extrapolated, is_enough, limited
from shared.tasks.language.streams import Stream
from shared.tasks.translation.corpus import ParallelText

LOAD = Loading(train=6.0, evaluate=4.0)
NETWORK = Estimate(
    1000, 0.5, 200, 5, "measured on its data", validations=10, validation=2.0, opening=10.0, judging=20.0, judged=5,
    load=LOAD, memory=300.0,
)  # fmt: skip
STUDY = Estimate(0, 0.0, 0, 3, "measured", judging=30.0, judged=3, load=LOAD, memory=200.0)
BEGIN = datetime.datetime(2026, 11, 23, 12, tzinfo=datetime.UTC)


def test_a_variant_costs_its_stages_and_every_part_of_every_seed():
    assert NETWORK.run == 200 * 0.5 + 10 * 2.0 + 10.0
    assert pytest.approx(3600 * NETWORK.hours) == 6 + 4 + 5 * (130 + 20)
    assert pytest.approx(3600 * STUDY.hours) == 6 + 4 + 3 * 30


@pytest.mark.parametrize(("workers", "rounds"), [(1, 5), (2, 3), (5, 1), (64, 1)])
def test_seeds_are_side_by_side_and_stages_follow_each_other(workers, rounds):
    assert pytest.approx(3600 * NETWORK.elapsed(workers)) == 6 + 4 + rounds * (130 + 20)


def test_a_line_says_of_what_a_variant_s_cost_is_made():
    line = described(NETWORK)
    assert "1,000 parameters; 5 seeds of 200 updates of 0.5 s, 10 validations of 2 s" in line
    assert "5 times 20 s to judge" in line
    assert line.endswith("measured on its data: 0.21 processor hours")
    assert "trains no network; 3 seeds of 30 s" in described(STUDY)


def test_the_sum_says_what_is_included_and_when_it_is_done():
    first, included, *more = summed([NETWORK, STUDY], 2, BEGIN)
    hours = (6 + 4 + 3 * 150 + 6 + 4 + 2 * 30) / 3600
    assert first.startswith("together 0.24 processor hours; 2 at once take 0.15 hours")
    assert f"until about {BEGIN + datetime.timedelta(hours=hours):%Y-%m-%d %H:%M}; 300 MiB" in first
    assert included.startswith("included: imports, training, validation and judging of all seeds; not included:")
    assert more == []


def test_what_is_unknown_is_said():
    unknown = Estimate(10, 9.0, 100, 1, "measured", missing=("judging: a trial takes more than 60 s",))
    assert "WITHOUT judging: a trial takes more than 60 s" in described(unknown)
    assert "of 1 of 2 variants a part is unknown" in summed([NETWORK, unknown], 1, BEGIN)[-1]


def test_what_does_not_depend_on_the_share_is_paid_once():
    cost = {share: 3.0 + 8.0 * share for share in (0.25, 0.5, 1.0)}
    assert extrapolated((0.25, cost[0.25]), (0.5, cost[0.5])) == pytest.approx(cost[1.0])
    assert extrapolated((0.25, 5.0), (0.5, 4.9)) == pytest.approx(4.9)  # noise makes nothing cheaper


def shares(cost, count):
    return [(2**n / 64, cost(2**n / 64)) for n in range(count)]


def test_only_a_cost_that_grows_evenly_tells_that_of_the_whole():
    even, levels_off = (lambda share: 1 + 80 * share), (lambda share: 1 + min(5.0, 80 * share))
    assert [is_enough(shares(even, count)) for count in (1, 2, 3)] == [False, False, True]
    assert not any(is_enough(shares(levels_off, count)) for count in (1, 2, 4, 5, 6, 7))
    assert not is_enough(shares(lambda share: 10 * share, 5))  # so little is judged as a whole
    assert is_enough([(0.25, 8.0), (0.5, 16.0)])  # so long a trial is believed


def spend(seconds):
    begin = time.process_time()
    while time.process_time() - begin < seconds:
        pass


def test_a_trial_is_stopped_when_it_takes_too_long():
    with pytest.raises(ReplicationError, match=r"more than 0\.05 processor seconds"), limited(0.05):
        spend(20.0)
    with limited(0.05):
        pass
    spend(0.1)


def text(lengths):
    lines = RaggedArray.pack([[10 + i] * n for i, n in enumerate(lengths)])
    return ParallelText(lines, lines, np.array(lengths))


def test_fewer_examples_are_spread_over_the_split_and_stay_whole():
    whole = text([3, 1, 4, 1, 5, 9, 2, 6, 5])
    left = chosen(whole, len(whole), 1 / 3)
    assert left.tolist() == [0, 4, 8]
    part = part_of(whole, len(whole), left)
    assert [line.tolist() for line in (part.source[i] for i in range(3))] == [[10] * 3, [14] * 5, [18] * 5]
    assert part.words.tolist() == [3, 5, 5]


def test_of_a_text_its_begin_is_left():
    stream = Stream(np.arange(10), np.arange(10)[::-1])
    part = part_of(stream, 10, chosen(stream, 10, 0.4))
    assert (part.symbols.tolist(), part.distances.tolist()) == ([0, 1, 2, 3], [9, 8, 7, 6])


class Prepared:
    """A prepared task with two splits."""

    def split(self, name):
        return text([2, 3, 4, 5])

    def lines(self, name):
        return ["a", "b", "c", "d"], ["A", "B", "C", "D"]

    def both(self, name):
        return list(zip(*self.lines(name), strict=True))

    def dictionary(self):
        return {"a": "A"}


def test_only_test_splits_are_shortened_and_all_that_belongs_to_them():
    short = shortened(Prepared(), ["test"], 0.5)
    assert isinstance(short, Prepared)
    assert [len(short.split(name)) for name in ("train", "test")] == [4, 2]
    assert short.lines("test") == (["a", "d"], ["A", "D"])
    assert short.lines("valid") == Prepared().lines("valid")
    assert short.both("test") == [("a", "A"), ("d", "D")]
    assert short.dictionary() == {"a": "A"}
    assert [len(shortened(Prepared(), ["test"], share).split("test")) for share in (0.001, 1.0)] == [1, 4]


class Config:
    """Settings of a variant, as far as records ask for them."""

    evaluation = SimpleNamespace(checkpoint="last")

    def model_dump(self, **_):
        return {"model": {"size": 3}}


@pytest.fixture
def folder(tmp_path):
    record = {
        **machine(), "parameters": {"model": {"size": 3}, "seeds": [1, 2]}, "updates": 100, "processor_seconds": 20.0,
        "stopped_because": "the end", "fingerprint": "a mark", "checkpoints": ["last.ckpt"],
    }  # fmt: skip
    for seed, whole in ((1, 30.0), (2, 5.0)):  # the second was killed, and continued near its end
        place = tmp_path / "train" / f"seed{seed}"
        (place / "checkpoints").mkdir(parents=True)
        (place / "checkpoints" / "last.ckpt").touch()
        (place / "run.json").write_text(json.dumps(record | {"process_seconds": whole}))
    (tmp_path / "evaluation").mkdir()
    costs = judging_record(Config(), machine(), {"seed 1": 2.0, "seed 2": 4.0, "ensemble": 50.0}, {})
    (tmp_path / "evaluation" / COSTS).write_text(json.dumps(costs))
    return tmp_path


def test_finished_runs_tell_what_further_ones_cost(folder):
    past = past_of(folder, Config())
    assert (past.update, past.run, past.evaluation) == (0.2, 30.0, 3.0)
    assert past.trained == folder / "train" / "seed1"


@pytest.mark.parametrize("changed", [{"cpu": "another"}, {"parameters": {"model": {"size": 4}}}])
def test_runs_of_other_settings_or_machines_tell_nothing(folder, changed):
    for path in (*folder.glob("train/*/run.json"), folder / "evaluation" / COSTS):
        path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    past = past_of(folder, Config())
    assert (past.update, past.run, past.evaluation, past.trained) == (None, None, None, None)


@pytest.mark.parametrize(("content", "wrong"), [("{", "is damaged"), ("[]", "is damaged"), ("{}", "lacks the key")])
def test_a_damaged_record_is_named(folder, content, wrong):
    record = folder / "train" / "seed1" / "run.json"
    whole = record.read_text()
    record.write_text(content)
    for reading in (lambda: past_of(folder, Config()), lambda: trained_mark(record.parent, Config())):
        with pytest.raises(ReplicationError, match=rf"seed1/run\.json {wrong}.*; run its train stage again\."):
            reading()
    record.write_text(whole)
    (folder / "evaluation" / COSTS).write_text(content)
    for reading in (lambda: past_of(folder, Config()), lambda: judged_otherwise(folder, Config())):
        with pytest.raises(ReplicationError, match=rf"{COSTS} {wrong}.*; run its evaluate stage again\."):
            reading()
