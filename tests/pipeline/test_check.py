"""Mistakes that are found before any long work, each in one sentence with its file and key, and without torch."""

import io
import json
import re
from dataclasses import replace

import pytest
from ruamel.yaml import YAML

from shared.pipeline.__main__ import main
from shared.pipeline.check import asked_by_tests, check_stage, write_code
from shared.pipeline.config import ScaleFile, load_params, scales_of
from shared.tasks.kinds import papers
from tests.pipeline.scratch import ROOT, change_yaml, copy_files, refusal
from tests.refused import assert_refused

PAPER, SMOKE = "replications/bahdanau", "replications/bahdanau/smoke/params.yaml"
SETS = "replications/set_transformer/quick/params.yaml"
CARD = "data/generated_translation.yaml"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return copy_files(tmp_path_factory.mktemp("check") / "project")


@pytest.fixture
def project(original, monkeypatch):
    """A copy of the project in which a test may change one file: it is restored afterwards."""
    monkeypatch.chdir(original)
    files = [
        *(original / PAPER).rglob("*.yaml"),
        original / SETS,
        original / "params.yaml",
        original / ".dvcignore",
        original / CARD,
    ]
    before = {path: path.read_text() for path in files}
    yield original
    for path, text in before.items():
        path.write_text(text)


def test_what_is_shipped_has_no_mistake(project):
    for scale in ("quick", "smoke"):
        check_stage(None, scale)
    assert (project / "runs" / "smoke" / "performer" / "code" / "train.json").exists()


def test_a_scale_says_what_it_leaves_out_and_where_that_is_run(project):
    assert set(papers()) == set(load_params().papers)
    for paper in papers():
        scales = {scale: ScaleFile(paper, scale) for scale in scales_of(paper)}
        for scale, settings in scales.items():
            assert settings.deviations, settings.path
            assert settings.variants or scale == "paper_scale", settings.path
            for variant, reason in settings.left_out.items():
                assert len(reason) > 10, settings.path
                for other in re.findall(r"(quick|bench|paper_scale)(?: scale)? (?:has|trains|measures)\b", reason):
                    assert variant in scales[other].judged(), (settings.path, variant, reason)


def test_a_variant_of_one_scale_is_named_in_that_scales_file_alone(project):
    for path in (f"{PAPER}/variants.yaml", SMOKE):
        change_yaml(project / path, lambda c: c["variants"].update(mine=c["variants"]["corpus-rnnsearch"]))
    for scale in scales_of("bahdanau"):
        check_stage("bahdanau", scale)
    assert "mine" not in ScaleFile("bahdanau", "quick").left_out


def in_blocks(node):
    """Items of lists under each other, as DVC writes lists anew."""
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        in_blocks(child)
    if node and isinstance(node, list):
        node.fa.set_block_style()
    return node


def as_dvc_writes(text):
    written, round_trip = io.StringIO(), YAML()
    round_trip.default_flow_style = False
    round_trip.dump(in_blocks(round_trip.load(text)), written)
    return written.getvalue()


def test_files_are_in_the_form_that_dvc_writes():
    """So that ``dvc exp run -S`` changes the line it is asked to change, and no other."""
    patterns = ("params.yaml", "replications/*/*/params.yaml", "replications/*/variants.yaml")
    for path in [path for pattern in patterns for path in ROOT.glob(pattern)]:
        assert as_dvc_writes(text := path.read_text(encoding="utf-8")) == text, path


@pytest.mark.slow
@pytest.mark.parametrize("paper", papers())
def test_every_paper_has_what_the_suite_asks_of_it(paper, root, monkeypatch):
    """With an untrained update of every model at smoke scale."""
    monkeypatch.chdir(root)
    assert list(asked_by_tests({scale: ScaleFile(paper, scale) for scale in scales_of(paper)})) == []


def test_what_a_paper_lacks_is_said(root, monkeypatch):
    monkeypatch.chdir(root)
    scales = {scale: ScaleFile("bahdanau", scale) for scale in ("smoke", "quick")}
    monkeypatch.setattr("shared.pipeline.check.load_names", lambda folder: {"rnnsearch-50": "a model without a colour"})
    monkeypatch.setattr("shared.pipeline.check.make_update", lambda *_: 1 / 0)
    said = "\n".join(asked_by_tests(scales))
    assert "names.yaml: 'rnnencdec-50' has no name; reports of the scale quick call it by it." in said
    assert "rnnsearch-50.model: an untrained model makes no update: ZeroDivisionError: division by zero" in said


@pytest.mark.parametrize(("scale", "path", "old", "new", "changed"), [
    ("smoke", CARD, "seed: 1409", "seed: 1410", ["fetch", "report"]),
    ("smoke", CARD, "id:", "# a word\nid:", ["report"]),
    ("quick", f"{PAPER}/quick/search.yaml", "seeds:", "# a word\nseeds:", ["report"]),
])  # fmt: skip
def test_stages_depend_on_what_cards_say_of_data_and_a_report_on_every_word(scale, path, old, new, changed, project):
    def recorded():
        write_code(ScaleFile("bahdanau", scale))
        folder = project / "runs" / scale / "bahdanau" / "code"
        return {name: json.loads((folder / f"{name}.json").read_text()) for name in ("fetch", "train", "report")}

    before, text = recorded(), (project / path).read_text()
    (project / path).write_text(text.replace(old, new, 1))
    after = recorded()
    assert [name for name in after if after[name] != before[name]] == changed
    for name in changed:
        assert {file for file in after[name] if after[name][file] != before[name][file]} == {path}


def test_a_variant_is_its_task_what_it_is_and_what_its_scale_changes(project):
    change_yaml(project / PAPER / "variants.yaml", lambda c: own(c).update(evaluation={"bleu": "13a"}))
    settings = ScaleFile("bahdanau", "smoke")
    run, task = settings.run("rnnsearch-50"), settings.tasks["swaps"].sections
    assert run.task == "swaps"
    assert run.model == task["model"] | settings.identities["rnnsearch-50"].model | {"alignment_size": 16}
    assert (run.evaluation.bleu, run.evaluation.heatmaps) == ("13a", task["evaluation"]["heatmaps"])


def swaps(content):
    return content["tasks"]["swaps"]


def own(content):
    return content["variants"]["rnnsearch-50"]


MISTAKES = [  # of what contradicts something else; what one field alone shows wrong is tried in tests/inputs
    ("claims.yaml", lambda c: [claim.get("not_decided", {}).pop("bench", None) for claim in c["claims"]],
     r"B15-C\d: .* do not run in .*/bench/params.yaml; .* under not_decided.bench"),
    ("claims.yaml", lambda c: c["claims"][1].update(id="B15-C7"), "claims are numbered in order; call it B15-C2"),
    ("claims.yaml", lambda c: c["floors"].pop("swaps"), r"B15-C\d: the task 'swaps' has no floor"),
    ("variants.yaml", lambda c: c["variants"].pop("rnnsearch-30"), "has no variant 'rnnsearch-30'"),
    ("variants.yaml", lambda c: c.update(kind="captioning"), "must be the same as KIND = 'translation'"),
    ("variants.yaml", lambda c: c.update(kind="translatoin"), "variants.yaml: kind: .*did you mean 'translation'"),
    ("smoke/params.yaml", lambda c: swaps(c)["corpus"].update(dataset="generated_translatoin"),
     r"smoke/params.yaml: tasks.swaps.corpus.dataset: .*did you mean 'generated_translation'"),
    ("smoke/params.yaml", lambda c: swaps(c)["corpus"].update(dataset="multi30k", draws="each_seed"),
     r"tasks.swaps.corpus.draws: multi30k is not generated; take 'draws' out"),
    ("smoke/params.yaml", lambda c: swaps(c).update(
        corpus=swaps(c)["corpus"] | {"draws": "each_seed"}, seeds=[1, 2], evaluation={"ensemble": True}
     ), "needs one test set; take corpus.draws 'each_seed' out"),
    ("smoke/params.yaml", lambda c: c["tasks"]["corpus"]["corpus"].update(dataset="mnist"),
     "tasks.corpus.corpus.source: mnist has no 'source'; there are none"),
    ("smoke/params.yaml", lambda c: swaps(c)["training"].update(updates=3), r"validate_every \(4\) must not exceed"),
    ("smoke/params.yaml", lambda c: swaps(c)["training"]["batch"].update(tokens=5), "either tokens or sentences"),
    ("smoke/params.yaml", lambda c: swaps(c).update(seeds=[1], evaluation={"ensemble": True}), "at least two seeds"),
    ("smoke/params.yaml", lambda c: own(c).update(task="swap"), "did you mean 'swaps'"),
    ("smoke/params.yaml", lambda c: c.update(paper="luong"), "must be those of the folder"),
    ("smoke/params.yaml", lambda c: c["variants"].pop("rnnsearch-50"), "50' .* neither runs nor is left out"),
    ("smoke/params.yaml", lambda c: c["left_out"]["reasons"][0]["variants"].append("rnnsearch-50"), "and left_out"),
    ("smoke/params.yaml", lambda c: swaps(c).update(after="features"), "'features' must list 'swaps'"),
    ("smoke/params.yaml", lambda c: c["features"].append("swaps"), "'features' must not list 'swaps'"),
    ("smoke/params.yaml", lambda c: c["tasks"].update(other=swaps(c)), "tasks.other has no variant that runs"),
    # of a task that all its variants override
    ("smoke/params.yaml", lambda c: c["tasks"]["corpus"]["model"].update(alignment_size=10**400),
     r"tasks\.corpus\.model\.alignment_size: a number of over 300 digits is too large"),
    ("smoke/params.yaml", lambda c: c["tasks"]["corpus"]["model"].update(alignment_size="seven"),
     r"tasks\.corpus\.model: 'alignment_size': input should be a valid integer.*, got 'seven'"),
    ("smoke/dvc.yaml", lambda c: c.update(plots=[]), "not the pipeline that all scales share"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "mistake", "message"), MISTAKES)
def test_a_contradiction_is_named_in_one_sentence_with_its_file(file, mistake, message, project):
    change_yaml(project / PAPER / file, mistake)
    assert assert_refused(message, check_stage, "bahdanau", "smoke").startswith(PAPER)


def test_sets_are_composed_of_labelled_pictures(project):
    change_yaml(project / SETS, lambda content: content["tasks"]["digits"]["corpus"].update(dataset="multi30k"))
    assert_refused(
        f"{SETS}: tasks.digits.corpus.dataset: multi30k has no 'text'", check_stage, "set_transformer", "quick"
    )


@pytest.mark.parametrize(("claim", "variants", "message"), [
    ("", ("rnnsearch-05",), r"report.py: \w+: .*has no variant 'rnnsearch-05'"),
    ("B15-C33", (), r"report.py: \w+: claims.yaml has no claim 'B15-C33' \(did you mean"),
])  # fmt: skip
def test_a_figure_that_names_what_is_not_there_is_named(claim, variants, message, project, monkeypatch):
    from replications.bahdanau import report

    shown = report.FIGURES[0]
    monkeypatch.setattr(type(shown), "variants", lambda self: variants)
    monkeypatch.setattr(report, "FIGURES", [replace(shown, claim=claim)])
    assert_refused(message, check_stage, "bahdanau", "smoke")


@pytest.mark.parametrize("name", ["KIND", "ModelConfig"])
def test_what_the_settings_of_a_paper_lack_is_named(name, project, monkeypatch):
    monkeypatch.delattr(f"replications.bahdanau.settings.{name}")
    assert_refused(f"replications/bahdanau/settings.py has no {name}; give it", check_stage, "bahdanau", "smoke")


def test_a_paper_that_no_report_is_made_of_is_named(project):
    change_yaml(project / "params.yaml", lambda content: content["papers"].remove("bahdanau"))
    assert_refused(r"params.yaml: papers must list 'bahdanau'", check_stage, "bahdanau", "smoke")
    change_yaml(project / "params.yaml", lambda content: content["papers"].append("bahdanu"))
    assert_refused(r"params.yaml: papers: there is no paper 'bahdanu' \(did you mean", check_stage, None, "smoke")
    for key, value, said in (
        ("papers", ["a", "b", "a"], "each must .* once, not as a does"),
        ("workers", 10**9, "10000"),
    ):
        change_yaml(project / "params.yaml", lambda content, change={key: value}: content.update(change))
        assert_refused(f"params.yaml: .*'{key}': .*{said}", check_stage, None, "smoke")


@pytest.mark.parametrize("command", ["check", "freeze", "pack", "unpack", "verdicts", "export"])
def test_a_misspelt_paper_gets_the_nearest_one(command, project, capsys):
    assert refusal(capsys, command, "bahdnau") == "error: there is no paper 'bahdnau' (did you mean 'bahdanau'?).\n"


def test_a_scale_that_is_not_there_is_named(project):
    assert_refused(r"there is no scale 'smok' \(did you mean 'smoke'\?\)\.", ScaleFile, "bahdanau", "smok")


def test_the_used_scale_alone_is_in_dvcs_sight(project):
    ignored = project / ".dvcignore"
    for scale in ("smoke", "paper_scale", "quick"):
        assert main(["use", scale]) == 0
        assert f"scale: {scale}\n" in (project / "params.yaml").read_text()
        lines = [line for line in ignored.read_text().splitlines() if "dvc.yaml" in line]
        assert lines == ["/replications/*/*/dvc.yaml", f"!/replications/*/{scale}/dvc.yaml"]
    assert [main(["use", *words.split()]) for words in ("quik", "quick bahdnau", "bench transformer")] == [2, 2, 0]
    seen = [line for line in ignored.read_text().splitlines() if line.startswith("!")]
    assert seen == [f"!/replications/{paper}/bench/dvc.yaml" for paper in ("bahdanau", "luong", "transformer")]
    ignored.write_text(ignored.read_text().rstrip("\n"))  # as some editors leave it
    assert (main(["use", "quick"]), ignored.read_text()) == (0, (ROOT / ".dvcignore").read_text())


@pytest.mark.parametrize("line", ['"scale": quick', "scale:\n  quick", None])
def test_a_scale_is_used_whole_or_not_at_all(line, project, capsys):
    params, ignored = project / "params.yaml", project / ".dvcignore"
    if line is None:
        ignored.unlink()
    else:
        params.write_text(params.read_text().replace(f"scale: {load_params().scale}", line))
    before = params.read_text(), ignored.exists() and ignored.read_text()
    said = ".dvcignore is not there" if line is None else "params.yaml: 0 lines begin with 'scale: ' instead of one"
    assert said in refusal(capsys, "use", "smoke")
    assert (params.read_text(), ignored.exists() and ignored.read_text()) == before
