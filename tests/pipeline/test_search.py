"""A search tries settings with pilot seeds on validation data, and says when a paper's settings are not the best."""

import csv
import json
import shutil

import pytest

from shared.pipeline.__main__ import main
from shared.pipeline.config import ScaleFile
from shared.pipeline.search import Search, unfollowed, untuned
from shared.tasks.settings import StudyConfig
from tests.pipeline.scratch import change_yaml
from tests.pipeline.toys import LEFT_OUT, Paper, enter, write_project, write_yaml
from tests.refused import assert_refused

PAPER, RATE = "toy_sequences", "training.optimizer.learning_rate"
RATES, SIZES, PILOTS = [0.00001, 0.03], [6, 9], [101, 102]
GROUPS = [{"variants": ["long"], "key": RATE, "values": RATES, "updates": 60},
          {"variants": ["short"], "key": "model.size", "values": SIZES},
          {"variants": ["twin"], "same_as": "long", "because": "it differs in nothing."}]  # fmt: skip


class Project(Paper):
    """A project with a toy paper, which is the current folder."""

    def __init__(self, root):
        super().__init__("sequences", root)
        self.scale = self.settings.parent
        self.result = self.scale / "search.json"

    def search(self, *options, status=0):
        assert main(["search", PAPER, "--scale", "smoke", *options]) == status

    def asks(self, change):
        change_yaml(self.scale / "search.yaml", change)

    def set(self, variant, section, **values):
        change_yaml(self.settings, lambda c: c["variants"][variant].setdefault(section, {}).update(values))

    def found(self, variant, group=0):
        return json.loads(self.result.read_text())["groups"][group]["variants"][variant]

    def trials(self, variant):
        """Fingerprint's beginning to the record and the validation losses of each trial."""
        return {
            path.parent.name: (json.loads(path.read_text()), losses(path.with_name("curve.csv")))
            for path in (self.runs / "search" / variant).glob("*/run.json")
        }


def losses(curve):
    with curve.open() as file:
        rows = [row for row in csv.DictReader(file) if (row["split"], row["metric"]) == ("valid", "loss")]
    return [float(row["value"]) for row in rows]


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A project in which a search was made, and what it printed."""
    root = write_project(tmp_path_factory.mktemp("search") / "project")
    change_yaml(root / "params.yaml", lambda content: content.update(workers=1))
    change_yaml(root / "replications" / PAPER / "variants.yaml", lambda content: content["variants"].update(twin={}))
    scale = root / "replications" / PAPER / "smoke"
    change_yaml(scale / "params.yaml", lambda content: content["variants"].update(twin={"task": "task"}))
    write_yaml(scale / "search.yaml", {"seeds": PILOTS, "groups": GROUPS})
    with pytest.MonkeyPatch.context() as patch:
        enter(root, patch)
        Project(root).search()
    return root


@pytest.fixture
def project(searched, tmp_path, monkeypatch):
    """A copy of it, in which a test may change what it wants."""
    root = tmp_path / "project"
    shutil.copytree(searched, root, symlinks=True)
    enter(root, monkeypatch)
    return Project(root)


def test_the_best_value_has_the_least_validation_loss_at_the_end(project):
    found, trials = project.found("long"), project.trials("long").values()
    assert len(trials) == len(RATES) * len(PILOTS)
    for rate, told in zip(RATES, found["trials"], strict=True):
        own = [each for each in trials if each[0]["parameters"]["training"]["optimizer"]["learning_rate"] == rate]
        of = {record["seed"]: valid for record, valid in own}
        assert told["value"] == rate
        assert told["seeds"] == {str(seed): of[seed][-1] for seed in PILOTS}
        assert told["loss"] == pytest.approx(sum(of[seed][-1] for seed in PILOTS) / 2, rel=1e-5)
    assert found["best"] == 0.03
    assert {record["updates"] for record, _ in trials} == {60}
    assert {record["updates"] for record, _ in project.trials("short").values()} == {2}
    record, rounding = json.loads(project.result.read_text()), 0.05 * (len(RATES) + len(SIZES) + 1)
    runs = [run for variant in ("long", "short") for run, _ in project.trials(variant).values()]
    assert abs(record["processor_seconds"] - sum(run["processor_seconds"] for run in runs)) <= rounding
    assert record.keys() >= {"git_commit", "git_dirty", "date", "seeds"}
    assert not [*project.runs.rglob("*.ckpt")]


def test_a_trial_is_what_the_train_stage_trains(project):
    project.set("short", "model", size=SIZES[0])
    change_yaml(project.scale / "params.yaml", lambda content: content["variants"]["short"].update(seeds=PILOTS))
    assert main(["train", f"{PAPER}.short", "--scale", "smoke"]) == 0
    for seed in PILOTS:
        trials = [valid for record, valid in project.trials("short").values()
                  if (record["seed"], record["parameters"]["model"]["size"]) == (seed, SIZES[0])]  # fmt: skip
        assert [losses(project.runs / "short" / "train" / f"seed{seed}" / "curve.csv")] == trials


def test_what_is_finished_is_kept_and_what_is_new_is_trained(project, capsys):
    before = project.trials("long")
    project.asks(lambda content: content["groups"][0]["values"].append(0.01))
    project.search()
    printed = capsys.readouterr().out
    assert printed.count("finished before, kept") == 4 + len(SIZES) * len(PILOTS)
    after = project.trials("long")
    assert len(after) == len(before) + len(PILOTS)
    assert {name: after[name] for name in before} == before
    assert [trial["value"] for trial in project.found("long")["trials"]] == [*RATES, 0.01]


def test_one_variant_is_tried_anew_without_the_runs_of_the_others(project):
    before = json.loads(project.result.read_text())
    shutil.rmtree(project.runs / "search")
    project.asks(lambda content: content["groups"][0].update(values=[0.02, 0.03]))
    project.search("--only", "long")
    assert not project.trials("short")
    assert project.found("short", 1) == before["groups"][1]["variants"]["short"]
    assert [trial["value"] for trial in project.found("long")["trials"]] == [0.02, 0.03]


@pytest.mark.parametrize(
    ("only", "said"), [("short", "search.yaml asks of 'long'; add that variant"), ("lomg", "(did you mean 'long'?)")]
)
def test_an_outcome_that_does_not_answer_is_not_kept(only, said, project, capsys):
    project.set("long", "training", clip=0.5)
    before = project.result.read_bytes()
    project.search("--only", only, status=2)
    assert said in capsys.readouterr().err
    assert project.result.read_bytes() == before


@pytest.mark.parametrize("changed", ["settings", "card"])
def test_other_settings_or_data_are_tried_anew(changed, project, capsys):
    if changed == "settings":
        project.set("long", "training", clip=0.5)
    else:
        tasks = project.runs / "tasks" / "task"
        before = (tasks / "summary.json").stat().st_ino
        card = project.root / "data" / f"{PAPER}.yaml"
        change_yaml(card, lambda content: content["sources"][0]["parameters"].update(seed=9))
    assert "asks of 'long' now, or its other settings or its data have changed" in unfollowed(PAPER, "smoke")[0]
    project.search()
    kept = capsys.readouterr().out.count("finished before, kept")
    assert kept == (len(SIZES) * len(PILOTS) if changed == "settings" else 0)
    assert len(project.trials("long")) == 2 * len(RATES) * len(PILOTS)
    if changed == "card":
        assert (tasks / "summary.json").stat().st_ino != before


def test_a_trial_that_fails_is_named_and_the_others_finish(project, capsys):
    shutil.rmtree(project.runs / "search" / "long")
    project.result.unlink()
    project.breaks("error", seed=102, batch=3)
    project.search(status=2)
    assert f"{PAPER}.long {RATE} 0.03 seed 102: the toy breaks" in capsys.readouterr().err
    assert sorted(record["seed"] for record, _ in project.trials("long").values()) == [101, 101]
    assert not project.result.exists()


def test_what_diverges_is_never_best(project, capsys):
    def change(content):
        content["groups"][1:] = [{"variants": ["short"], "key": RATE, "values": [3.0e38, 0.03], "updates": 3}]

    project.asks(change)
    project.search()
    assert "diverged" in capsys.readouterr().out
    found = project.found("short", 1)
    assert found["trials"][0]["loss"] is None
    assert found["trials"][0]["seeds"] == {"101": None, "102": None}
    assert found["best"] == 0.03
    for trial in found["trials"]:
        trial["loss"] = None
    record = json.loads(project.result.read_text())
    record["groups"][1]["variants"]["short"] = found | {"best": None}
    project.result.write_text(json.dumps(record))
    assert unfollowed(PAPER, "smoke")[0].endswith(f"short diverged with every {RATE}; try others.")


def test_a_setting_that_is_not_the_best_is_named_until_it_is_set_or_kept_for_a_reason(project, capsys):
    best = project.found("short", 1)["best"]
    capsys.readouterr()
    project.search()
    (line,) = unfollowed(PAPER, "smoke")
    scale = f"replications/{PAPER}/smoke"
    assert line.startswith(f"{scale}/params.yaml: variants.short.model.size is 12, but the search found {best} best; ")
    assert line in capsys.readouterr().out
    project.asks(lambda content: content["groups"][1].update(kept={"short": "12 is what the paper has"}))
    assert unfollowed(PAPER, "smoke") == []
    project.asks(lambda content: content["groups"][1].pop("kept"))
    project.set("short", "model", size=best)
    assert unfollowed(PAPER, "smoke") == []
    project.set("short", "model", size=(set(SIZES) - {best}).pop())
    assert f"the search found {best} best" in unfollowed(PAPER, "smoke")[0]


def test_a_variant_that_goes_with_another_has_its_value(project):
    project.set("short", "model", size=project.found("short", 1)["best"])
    project.set("twin", "training", optimizer={"learning_rate": 0.01})
    (line,) = unfollowed(PAPER, "smoke")
    assert f"variants.twin.{RATE} is 0.01, but that of 'long', with which it goes, is 0.03" in line
    project.asks(lambda content: content["groups"][2].update(kept={"twin": "it is larger"}))
    assert unfollowed(PAPER, "smoke") == []


def test_what_the_search_of_a_variant_lacks_is_named(project):
    """Before a claim is contradicted: three pilot seeds, and a best value that lies inside."""
    found = untuned(ScaleFile(PAPER, "smoke"))
    assert found["long"].startswith(f"it was searched with 2 pilot seeds, not 3; the best {RATE} is the ")
    assert found["twin"] == found["long"]
    record = json.loads(project.result.read_text())
    rates, outcome = record["groups"][0], record["groups"][0]["variants"]["long"]
    rates["values"] = [0.1 * outcome["best"], outcome["best"], 10.0 * outcome["best"]]
    for trial in outcome["trials"]:
        trial["seeds"] = dict.fromkeys(("101", "102", "103"), 1.0)
    project.result.write_text(json.dumps(record))
    assert {"long", "twin"} & untuned(ScaleFile(PAPER, "smoke")).keys() == set()
    project.result.unlink()
    assert untuned(ScaleFile(PAPER, "smoke"))["long"] == "its settings were not searched"


def test_without_a_search_there_is_nothing_to_follow_and_one_without_outcome_is_named(project):
    project.result.unlink()
    (line,) = unfollowed(PAPER, "smoke")
    assert line.endswith(f"search.json does not exist; run 'python -m shared.pipeline search {PAPER} --scale smoke'.")
    (project.scale / "search.yaml").unlink()
    assert unfollowed(PAPER, "smoke") == []


@pytest.mark.parametrize(("group", "changes"), [
    (None, {"seeds": [101]}),
    (0, {"values": [0.00001, 0.04]}),
    (0, {"updates": None}),
    (0, {"seeds": [103]}),
    (0, {"variants": ["long", "twin"]}),
    (1, {"key": "training.clip", "values": [1, 2]}),
])  # fmt: skip
def test_an_outcome_of_another_search_does_not_count(group, changes, project):
    project.asks(lambda content: (content if group is None else content["groups"][group]).update(changes))
    assert "search.json: it is not of what" in unfollowed(PAPER, "smoke")[0]


MISTAKES = [
    (0, {"variants": ["lomg"]}, "has no variant 'lomg' (did you mean 'long'?)"),
    (2, {"variants": ["unread"]}, f"'unread' is left out: {LEFT_OUT}."),
    (0, {"key": "training.optimizer.learning_rat"}, "'training.optimizer.learning_rat' (did you mean"),
    (0, {"key": "model.sise"}, "'sise' (did you mean 'size'?)"),
    (0, {"values": [0.1, 0.1]}, "values': each must stand there once, not as 0.1 does, got [0.1, 0.1]"),
    (0, {"values": [0.1, -0.1]}, f"values: {RATE} -0.1 cannot be tried: "),
    (1, {"values": [3, 0]}, "values: model.size 0 cannot be tried: "),
    (1, {"variants": ["long"], "key": RATE}, f"groups: {RATE} of long stands there twice"),
    (1, {"kept": {"long": "it is good"}}, "kept: 'long' is no variant of its group"),
    (2, {"same_as": "twin"}, "same_as: 'twin' is not tried"),
    (2, {"because": None}, "'groups.2.because'"),
    (None, {"seeds": [101, 3]}, "seeds: 3 is a seed that decides claims about 'long'"),
    (0, {"seeds": [3]}, "seeds: 3 is a seed that decides claims about 'long'"),
    (None, {"seeds": [101, 101]}, "'seeds': each must stand there once, not as 101 does, got [101, 101]"),
]


@pytest.mark.parametrize(("group", "changes", "message"), MISTAKES)
def test_a_mistake_is_one_sentence_with_file_and_key(group, changes, message, project, capsys):
    project.asks(lambda content: (content if group is None else content["groups"][group]).update(changes))
    project.search(status=2)
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith(f"error: replications/{PAPER}/smoke/search.yaml: ")
    assert message in error


def test_a_study_is_not_searched(project, monkeypatch):
    from replications.toy_sequences import settings

    monkeypatch.setattr(settings, "ROUTES", {"study": {"speed": StudyConfig}}, raising=False)
    project.set("short", "model", study="speed")
    assert_refused(r"smoke/search.yaml: variants: 'short' is a study", unfollowed, PAPER, "smoke")


@pytest.mark.parametrize(("updates", "every"), [(10, 10), (30, 15), (40, 40)])
def test_every_trial_is_validated_at_its_end(updates, every, project):
    project.set("long", "training", validate_every=15)
    project.asks(lambda content: content["groups"][0].update(updates=updates))
    training = (search := Search(ScaleFile(PAPER, "smoke"))).config(search.tried[0], "long", RATES[0]).training
    assert (training.updates, training.validate_every) == (updates, every)
