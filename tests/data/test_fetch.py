import hashlib
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

from shared.data import fetch as fetching
from shared.data.fetch import MANIFEST, fetch, verify
from shared.errors import ReplicationError
from tests.data.odd import CARD, SPLITS
from tests.refused import assert_refused

RAW = {
    f"{split}.{language}": "".join(f"{language} {split} {i}\n" for i in range(count))
    for split, count in (("train", 30), ("val", 5), ("test", 5))
    for language in ("en", "fr")
}
OTHER = "autre\n" * 5
LEAK = "EN test 0!\n"  # a sentence of test, written otherwise, in train
RAW["train.en"] += LEAK
RAW["train.fr"] += "fr train 30\n"


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def write_card(root, **changes):
    named = {"train": "train", "valid": "val", "test": "test"}
    parts = {split: [{"en": f"{name}.en", "fr": f"{name}.fr"}] for split, name in named.items()}
    own = {"raw": {name: {"sha256": sha256(text)} for name, text in RAW.items()},
           "reader": {"name": "parallel", "options": {"parts": parts}},
           "files": {"valid.en": sha256(RAW["val.en"])}}  # fmt: skip
    (root / "toy.yaml").write_text(yaml.safe_dump(CARD | own | changes))


def on_the_web(web):
    """Serve the raw files; the source of a card."""
    web.files = {name: text.encode() for name, text in RAW.items()}
    return {"kind": "web", "downloads": [{"url": web.url(name)} for name in RAW]}


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.delenv("REPLICATIONS_MIRROR", raising=False)
    (tmp_path / "data").mkdir()
    write_card(tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def mirror(tmp_path):
    folder = tmp_path / "mirror/toy"
    folder.mkdir(parents=True)
    for name, text in RAW.items():
        (folder / name).write_text(text)
    return tmp_path / "mirror"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_data_set_arrives_whole_verified_and_without_leaks(root, mirror):
    manifest = fetch("toy", root=root, mirror=mirror)
    assert manifest.source == "mirror toy"
    assert manifest.dropped == {"train": 1, "valid": 0, "test": 0}
    assert manifest.files["train.en"].lines == manifest.files["train.fr"].lines == 30
    assert (root / "toy/train.en").read_text() == RAW["train.en"].removesuffix(LEAK)
    assert manifest.raw == {name: sha256(text) for name, text in RAW.items()}
    assert verify("toy", root=root) == manifest
    assert json.loads((root / "toy" / MANIFEST).read_text()) == json.loads(manifest.model_dump_json())
    assert names(root / "toy") == sorted([*manifest.files, MANIFEST])
    assert names(root) == [".locks", "toy", "toy.yaml"]


def test_a_second_fetch_touches_nothing_and_needs_no_source(root, mirror):
    first = fetch("toy", root=root, mirror=mirror)
    before = {path: path.stat().st_mtime_ns for path in (root / "toy").iterdir()}
    shutil.rmtree(mirror)
    assert fetch("toy", root=root) == first
    assert {path: path.stat().st_mtime_ns for path in (root / "toy").iterdir()} == before


@pytest.mark.parametrize("damage", ["missing", "shorter", "manifest"])
def test_damaged_data_is_fetched_anew(root, mirror, damage):
    first = fetch("toy", root=root, mirror=mirror)
    if damage == "missing":
        (root / "toy/test.fr").unlink()
    elif damage == "shorter":
        (root / "toy/test.fr").write_text("x")
    else:
        (root / "toy" / MANIFEST).write_text("{")
    assert fetch("toy", root=root, mirror=mirror) == first
    assert verify("toy", root=root) == first


def test_verify_finds_what_sizes_do_not_show(root, mirror):
    fetch("toy", root=root, mirror=mirror)
    content = (root / "toy/test.fr").read_bytes()
    (root / "toy/test.fr").write_bytes(content.swapcase())
    fetch("toy", root=root)
    assert_refused(r"test\.fr is missing or has changed; delete", verify, "toy", root=root)


def test_a_changed_card_fetches_anew_and_changed_prose_does_not(root, mirror):
    assert_refused("fetch 'toy' first", verify, "toy", root=root)
    first = fetch("toy", root=root, mirror=mirror)
    write_card(root, title="Another title")
    assert fetch("toy", root=root) == verify("toy", root=root) == first
    write_card(root, files={})
    assert_refused("fetch 'toy' first", verify, "toy", root=root)
    assert fetch("toy", root=root, mirror=mirror).card_sha256 != first.card_sha256


def test_the_sources_are_tried_in_their_order(root, mirror, web, monkeypatch):
    write_card(root, sources=[*CARD["sources"], on_the_web(web)])
    monkeypatch.setenv("REPLICATIONS_MIRROR", str(mirror))
    assert fetch("toy", root=root).source == "mirror toy"
    shutil.rmtree(root / "toy")
    (mirror / "toy/val.fr").write_text("something else\n")
    manifest = fetch("toy", root=root, mirror=mirror)
    assert manifest.source.startswith("web http://127.0.0.1")
    assert verify("toy", root=root) == manifest


def test_if_every_source_fails_one_error_lists_them_all_with_reasons(root, web, fake_program):
    fake_program("something-else", "")
    sources = [
        {"kind": "mirror", "folder": "toy"},
        {"kind": "npm", "package": "toy@1.0.0", "sha256": "0" * 64, "members": {n: n for n in RAW}},
        {"kind": "apt", "packages": {"toy": {n: n for n in RAW}}},
        {"kind": "web", "downloads": [{"url": web.url(name)} for name in RAW]},
    ]
    write_card(root, sources=sources)
    with pytest.raises(ReplicationError) as failure:
        fetch("toy", root=root)
    lines = str(failure.value).splitlines()
    assert lines[0] == "no source could provide the data set 'toy':"
    assert lines[1] == "  mirror toy: no mirror is set ($REPLICATIONS_MIRROR)"
    assert lines[2] == "  npm toy@1.0.0: npm is not installed"
    assert lines[3].startswith("  apt toy: apt-get is not installed")
    assert lines[4].startswith("  web http://127.0.0.1")
    assert "the server says 404" in lines[4]
    assert "set REPLICATIONS_MIRROR" in lines[5]
    write_card(root)
    with pytest.raises(ReplicationError, match=r"It cannot be fetched from elsewhere \(licence: none\): set REPL"):
        fetch("toy", root=root)
    assert not (root / "toy").exists()


def test_wrong_raw_data_is_refused_with_how_to_accept_it(root, mirror):
    (mirror / "toy/val.fr").write_text(OTHER)
    with pytest.raises(ReplicationError, match=rf"sha256 of val\.fr is {sha256(OTHER)}.*also_accepted"):
        fetch("toy", root=root, mirror=mirror)
    raw = {name: {"sha256": sha256(text)} for name, text in RAW.items()}
    raw["val.fr"]["also_accepted"] = [sha256(OTHER)]
    # Its 'files' are of the pinned version, so they are not compared.
    write_card(root, raw=raw, files={"valid.fr": "0" * 64})
    assert fetch("toy", root=root, mirror=mirror).raw["val.fr"] == sha256(OTHER)


def test_without_a_published_hash_the_first_one_must_stay_the_same(root, mirror):
    write_card(root, raw={name: {"sha256": None, "unverified": "never published"} for name in RAW}, files={})
    first = fetch("toy", root=root, mirror=mirror)
    (root / "toy/train.en").unlink()
    (mirror / "toy/val.fr").write_text(OTHER)
    with pytest.raises(ReplicationError, match="delete the old data"):
        fetch("toy", root=root, mirror=mirror)
    (mirror / "toy/val.fr").write_text(RAW["val.fr"])
    assert fetch("toy", root=root, mirror=mirror) == first


PARTS = {split: [{"en": f"{split}.en", "fr": f"{split}.fr"}] for split in SPLITS}


@pytest.mark.parametrize(("changes", "said"), [
    ({"files": {"valid.en": "0" * 64}}, r"valid\.en came out with the sha256"),
    ({"files": {"valid.de": "0" * 64}}, r"wrote no file valid\.de"),
    ({"reader": {"name": "parallel", "options": {"parts": PARTS}}},
     r"toy\.yaml: the reader looks for 'valid\.en', which is not a file of the raw data \(.*val\.en.*\); correct"),
    ({"needs_bytes": 10**18}, r"needs 1,000,000,000,000 MB of free disk.*make room"),
])  # fmt: skip
def test_what_does_not_come_out_as_the_card_says_leaves_nothing(root, mirror, changes, said):
    write_card(root, **changes)
    assert_refused(said, fetch, "toy", root=root, mirror=mirror)
    downloads = [] if "needs_bytes" in changes else ["toy.downloads"]  # a full disk is noticed before anything starts
    assert names(root) == [".locks", *downloads, "toy.yaml"]


@pytest.mark.parametrize("step", ["obtain", "write_corpus", "assert_disjoint", "put_in_place"])
def test_an_interruption_leaves_nothing_that_could_be_taken_for_whole(root, mirror, monkeypatch, step):
    first = fetch("toy", root=root, mirror=mirror)
    (root / "toy/test.fr").unlink()
    left = names(root / "toy")

    def interrupt(*_args, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fetching, step, interrupt)
        with pytest.raises(KeyboardInterrupt):
            fetch("toy", root=root, mirror=mirror)
    assert names(root / "toy") == left
    assert not list(root.glob("toy.partial-*"))
    assert fetch("toy", root=root, mirror=mirror) == first


@pytest.mark.parametrize("complete", [False, True])
def test_a_killed_fetch_leaves_only_leftovers_that_the_next_one_removes(root, mirror, complete):
    put_in_place = fetching.put_in_place

    def killed(*folders):
        if complete:
            put_in_place(*folders)
        os.kill(os.getpid(), 9)

    child = os.fork()
    if child == 0:
        fetching.put_in_place = killed
        fetch("toy", root=root, mirror=mirror)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 9
    assert (root / f"toy.partial-{child}").is_dir()
    assert (root / "toy").exists() == complete
    fetch("toy", root=root, mirror=mirror)
    assert names(root) == [".locks", "toy", "toy.yaml"]


def test_two_fetches_at_once_download_once(root, web, capsys):
    write_card(root, sources=[on_the_web(web)])
    with ThreadPoolExecutor(4) as pool:
        manifests = list(pool.map(lambda _: fetch("toy", root=root), range(4)))
    assert all(manifest == manifests[0] for manifest in manifests)
    assert len(web.requests) == len(RAW)
    assert "another process is fetching it" in capsys.readouterr().err


@pytest.mark.parametrize(("served", "said", "again"), [
    (None, r"test\.fr: the server says 404", ["test.fr"]),
    (OTHER.encode(), rf"sha256 of test\.fr is {sha256(OTHER)}", RAW),
])  # fmt: skip
def test_whole_downloads_are_kept_until_a_server_is_repaired_unless_one_is_wrong(root, web, served, said, again):
    write_card(root, sources=[on_the_web(web)])
    right, web.files["test.fr"] = web.files["test.fr"], served
    with pytest.raises(ReplicationError, match=said):
        fetch("toy", root=root)
    web.files["test.fr"] = right
    web.requests.clear()
    assert fetch("toy", root=root).raw["test.fr"] == sha256(RAW["test.fr"])
    assert web.requests == [f"/{name}" for name in again]


def test_what_is_no_corpus_is_fetched_as_it_is(root, mirror):
    (mirror / "toy" / "weights.bin").write_bytes(b"\x80\xff\r\n\x00")
    pin = hashlib.sha256(b"\x80\xff\r\n\x00").hexdigest()
    bare = {"languages": {}, "splits": {}, "reader": {"name": "files"}}
    write_card(root, **bare, raw={"weights.bin": {"sha256": pin}}, files={"weights.bin": pin})
    manifest = fetch("toy", root=root, mirror=mirror)
    assert {name: record.sha256 for name, record in manifest.files.items()} == {"weights.bin": pin}
    assert names(root / "toy") == [MANIFEST, "weights.bin"]
    assert (root / "toy" / "weights.bin").read_bytes() == b"\x80\xff\r\n\x00"
    assert verify("toy", root=root) == manifest
