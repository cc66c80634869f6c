"""Mistakes that are found before any long work, each in one sentence, and without torch."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from shared.errors import ReplicationError
from shared.pipeline.__main__ import main
from shared.pipeline.check import asked_by_tests, check_stage, write_code
from shared.pipeline.config import ScaleFile, load_params, scales_of
from shared.tasks.kinds import papers
from tests.pipeline.scratch import change_yaml, copy_files, environment

PAPER = "replications/bahdanau"
CARD = "data/generated_translation.yaml"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return copy_files(tmp_path_factory.mktemp("check") / "project")


@pytest.fixture
def project(original, monkeypatch):
    """A copy of the project in which a test may change one file: it is restored afterwards."""
    monkeypatch.chdir(original)
    files = [*(original / PAPER).rglob("*.yaml"), original / "params.yaml", original / CARD]
    before = {path: path.read_text() for path in files}
    yield original
    for path, text in before.items():
        path.write_text(text)


def test_what_is_shipped_has_no_mistake(project):
    for scale in ("quick", "smoke"):
        check_stage(None, scale)
    assert (project / "runs" / "smoke" / "performer" / "code" / "train.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("paper", papers())
def test_every_paper_has_what_the_suite_asks_of_it(paper, root, monkeypatch):
    """With an untrained update of every model at smoke scale."""
    monkeypatch.chdir(root)
    assert list(asked_by_tests({scale: ScaleFile(paper, scale) for scale in scales_of(paper)})) == []


def test_what_a_paper_lacks_is_said(root, tmp_path, monkeypatch):
    from replications.bahdanau import report

    monkeypatch.chdir(root)
    scales = {scale: ScaleFile("bahdanau", scale) for scale in ("smoke", "quick")}
    monkeypatch.setattr("shared.pipeline.check.load_names", lambda folder: {"rnnsearch-50": "a model without a colour"})
    monkeypatch.setattr("shared.pipeline.check.make_update", lambda *_: 1 / 0)
    monkeypatch.setattr(report, "FIGURES", [figure.exhibit for figure in report.FIGURES[:1]] + report.FIGURES[1:])
    said = "\n".join(asked_by_tests(scales))
    assert "names.yaml: 'rnnencdec-50' has no name; reports of the scale quick call it by it." in said
    assert " is not inside of Shows(figure, counterpart=" in said
    assert "rnnsearch-50.model: an untrained model makes no update: ZeroDivisionError: division by zero" in said


def test_fetching_depends_on_what_the_cards_say_of_the_data(project):
    record = project / "runs" / "smoke" / "bahdanau" / "code" / "fetch.json"
    card = project / CARD

    def recorded():
        write_code(ScaleFile("bahdanau", "smoke"))
        return json.loads(record.read_text())

    before = recorded()
    card.write_text(card.read_text().replace("seed: 1409", "seed: 1410"))
    after = recorded()
    assert {name for name in after if after[name] != before[name]} == {CARD}


@pytest.mark.parametrize(("scale", "path"), [("smoke", CARD), ("quick", f"{PAPER}/quick/search.yaml")])
def test_a_report_depends_on_the_words_of_the_cards_and_of_the_search(scale, path, project):
    def recorded():
        write_code(ScaleFile("bahdanau", scale))
        folder = project / "runs" / scale / "bahdanau" / "code"
        return [json.loads((folder / f"{stage}.json").read_text()) for stage in ("fetch", "report")]

    fetch_before, report_before = recorded()
    (project / path).write_text((project / path).read_text() + "# another word\n")
    fetch, report = recorded()
    assert fetch == fetch_before
    assert {name for name in report if report[name] != report_before[name]} == {path}


def test_torch_is_not_imported(project):
    program = (
        "import sys; from shared.pipeline.__main__ import main; main(['check', 'transformer']); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment(), check=True
    )
    modules = set(done.stdout.split())
    assert "shared.pipeline.check" in modules
    assert not modules & {"torch", "lightning", "torchvision", "matplotlib", "scipy"}


def replaced(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("claims.yaml", "variants: [rnnsearch-50, rnnencdec-50]", "variants: [rnnsearch-05, rnnencdec-50]",
         r"claims.yaml: B15-C1: 'primary': .*has no variant 'rnnsearch-05' \(did you mean 'rnnsearch-50'"),
        ("claims.yaml", "greater\n    metric: bleu", "greater\n    metric: blue",
         r"claims.yaml: B15-C1: .*no measure 'blue'.*mean 'bleu"),
        ("claims.yaml", "kind: greater", "kind: grater", "claims.yaml: B15-C1: 'primary': .*'grater'"),
        ("claims.yaml", "    relevant: 4.5\n", "", "B15-C1: primary.relevant is missing; give the smallest effect"),
        ("smoke/params.yaml", "dataset: generated_translation", "dataset: generated_translatoin",
         r"smoke/params.yaml: tasks.swaps.corpus.dataset: .*did you mean 'generated_translation'"),
        ("smoke/params.yaml", "alignment_size: 16", "alignment_sise: 16",
         r"variants.rnnsearch-50.model: unknown key 'alignment_sise' \(did you mean 'alignment_size'"),
        ("smoke/params.yaml", "updates: 8", "updates: '8'",
         r"tasks.swaps: 'training.updates': the text '8' is not a number; take off"),
        ("smoke/params.yaml", "clip: 1.0", "learning_rat: 1.0",
         r"tasks.swaps: unknown key 'training.learning_rat' .*mean 'learning_rate'"),
        ("smoke/params.yaml", "clip: 1.0", "clipp: 1.0", r"unknown key 'training.clipp' .*mean 'clip'"),
        ("smoke/params.yaml", "beam: 2", "beam: 1e9", "'decoding.beam': .* a valid integer, got 1000000000.0"),
        ("smoke/params.yaml", "clip: 1.0", "clip: -1e3", r"training.clip.: .* greater than 0, got -1000\.0"),
        ("smoke/params.yaml", "  swaps:\n", "  swaps:\n    seeds: [3]\n", r"smoke/params.yaml.*'seeds'"),
        ("smoke/dvc.yaml", "persist: true", "persist: false", "not the pipeline that all scales share"),
        ("claims.yaml", "    bench: the quick scale decides it; captions", "    paper_scale: captions",
         r"B15-C\d: .* do not run in .*/bench/params.yaml; .* under not_decided.bench"),
        ("claims.yaml", "id: B15-C2", "id: B15-C7", "B15-C7: claims are numbered in order; call it B15-C2"),
        ("variants.yaml", "rnnsearch-30:", "rnnsearch-03:", r"has no variant 'rnnsearch-30'"),
        ("variants.yaml", "kind: translation", "kind: captioning",
         r"variants.yaml: kind: 'captioning', but replications/bahdanau/settings.py has KIND = 'translation'"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_file_key_and_value(file, old, new, message, project):
    replaced(project / PAPER / file, old, new)
    with pytest.raises(ReplicationError, match=message) as error:
        check_stage("bahdanau", "smoke")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("file", "change", "key"),
    [
        ("claims.yaml", lambda c: c["claims"][0].update(different_here="As in the authors' code."), "different_here"),
        ("smoke/params.yaml", lambda c: c["deviations"].append("The released program has no bias."), r"deviations\.\d"),
        ("paper.yaml", lambda c: c["tables"][1].update(note="In the code it is 1."), r"tables\.1\.note"),
    ],
)
def test_what_is_said_of_the_authors_program_has_one_place(file, change, key, project):
    change_yaml(project / PAPER / file, change)
    with pytest.raises(ReplicationError, match=rf"{file}: \S*{key}: .* under 'program' of \S*paper.yaml"):
        check_stage("bahdanau", "smoke")


def test_a_score_decides_at_the_quick_scale_only_where_the_task_has_a_floor(project):
    change_yaml(project / PAPER / "claims.yaml", lambda content: content["floors"].pop("swaps"))
    with pytest.raises(ReplicationError, match=r"claims.yaml: B15-C\d: the task 'swaps' has no floor"):
        check_stage("bahdanau", "smoke")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (10**30, r"tasks\.corpus\.model\.alignment_size: 1e\+30 is too large"),
        (10**400, r"tasks\.corpus\.model\.alignment_size: a number of over 300 digits is too large"),
        ("seven", r"tasks\.corpus\.model: 'alignment_size': input should be a valid integer.*, got 'seven'"),
    ],
    ids=("large", "huge", "word"),
)
def test_a_mistake_of_a_task_that_all_its_variants_override_is_named(value, message, project):
    def change(content):
        assert content["variants"]["corpus-rnnsearch"]["model"] == {"alignment_size": 16}
        content["tasks"]["corpus"]["model"]["alignment_size"] = value

    change_yaml(project / PAPER / "smoke/params.yaml", change)
    with pytest.raises(ReplicationError, match=message):
        check_stage("bahdanau", "smoke")


def test_a_figure_that_names_an_unknown_variant_is_named(project, monkeypatch):
    from replications.bahdanau import report

    figure = report.FIGURES[0].exhibit
    monkeypatch.setattr(type(figure), "variants", lambda self: ("rnnsearch-05",))
    with pytest.raises(ReplicationError, match=r"report.py: \w+: .*has no variant 'rnnsearch-05'"):
        check_stage("bahdanau", "smoke")


def test_a_figure_of_an_unknown_claim_is_named(project, monkeypatch):
    from replications.bahdanau import report

    monkeypatch.setattr(report, "FIGURES", [replace(report.FIGURES[0], claim="B15-C33")])
    with pytest.raises(ReplicationError, match=r"report.py: \w+: claims.yaml has no claim 'B15-C33' \(did you mean"):
        check_stage("bahdanau", "smoke")


def test_a_paper_that_no_report_is_made_of_is_named(project):
    change_yaml(project / "params.yaml", lambda content: content["papers"].remove("bahdanau"))
    with pytest.raises(ReplicationError, match=r"params.yaml: papers must list 'bahdanau'"):
        check_stage("bahdanau", "smoke")
    change_yaml(project / "params.yaml", lambda content: content["papers"].append("bahdanu"))
    with pytest.raises(ReplicationError, match=r"params.yaml: papers: there is no paper 'bahdanu' \(did you mean"):
        check_stage(None, "smoke")


@pytest.mark.parametrize("command", ["check", "freeze", "pack", "unpack", "verdicts", "export"])
def test_a_misspelt_paper_gets_the_nearest_one(command, project, capsys):
    assert main([command, "bahdnau"]) == 2
    assert capsys.readouterr().err == "error: there is no paper 'bahdnau' (did you mean 'bahdanau'?).\n"


def test_the_command_prints_one_sentence_and_exits_with_2(project, capsys):
    replaced(project / PAPER / "claims.yaml", "greater\n    metric: bleu", "greater\n    metric: blue")
    assert main(["check", "bahdanau", "--scale", "smoke"]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("error: replications/bahdanau/claims.yaml: B15-C1")
    assert "Traceback" not in printed.err


def test_the_used_scale_alone_is_in_dvcs_sight(project):
    for scale in ("smoke", "paper_scale", "quick"):
        assert main(["use", scale]) == 0
        assert f"scale: {scale}\n" in (project / "params.yaml").read_text()
        lines = [line for line in (project / ".dvcignore").read_text().splitlines() if "dvc.yaml" in line]
        assert lines == ["/replications/*/*/dvc.yaml", f"!/replications/*/{scale}/dvc.yaml"]
    assert main(["use", "quik"]) == 2


def test_a_scale_is_used_whole_or_not_at_all(project, capsys):
    before = (project / "params.yaml").read_text()
    (project / ".dvcignore").rename(project / "elsewhere")
    assert main(["use", "paper_scale"]) == 2
    assert ".dvcignore is not there" in capsys.readouterr().err
    assert (project / "params.yaml").read_text() == before
    (project / "elsewhere").rename(project / ".dvcignore")


@pytest.mark.parametrize("line", ['"scale": quick', "scale:\n  quick"])
def test_a_scale_that_is_written_so_that_it_would_not_be_changed_is_refused(line, project, capsys):
    params, ignored = project / "params.yaml", project / ".dvcignore"
    replaced(params, f"scale: {load_params().scale}", line)
    before = params.read_text(), ignored.read_text()
    assert main(["use", "smoke"]) == 2
    assert "params.yaml: 0 lines begin with 'scale: ' instead of one; write 'scale: smoke'" in capsys.readouterr().err
    assert (params.read_text(), ignored.read_text()) == before
