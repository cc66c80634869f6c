"""Every kind of source gives its raw files, and fails in a sentence that says why; no wrong file is left behind."""

import errno
import gzip
import hashlib
import io
import os
import sys
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from rich.console import Console

from shared.data.cards import Source
from shared.data.sources import Workspace, obtain, sha256_of
from shared.errors import ReplicationError
from tests.data.odd import archive

TEXT = b"line one\nline two\n" * 20_000


def source(**values):
    return TypeAdapter(Source).validate_python(values)


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def space(tmp_path):
    folders = [tmp_path / name for name in ("raw", "downloads")]
    for folder in folders:
        folder.mkdir()
    return Workspace(*folders, None, 1_000_000, Console(file=io.StringIO()))


@pytest.fixture
def client(fake_program, monkeypatch):
    """As ``fake_program``; the client ``pip`` is a Python that does not run pip."""

    def make(name, body):
        log = fake_program("python" if name == "pip" else name, body)
        if name == "pip":
            monkeypatch.setattr(sys, "executable", str(log.parent / "bin/python"))
        return log

    return make


def test_a_mirror_gives_plain_and_packed_files(tmp_path, space):
    (tmp_path / "mirror/toy").mkdir(parents=True)
    (tmp_path / "mirror/toy/a").write_bytes(b"plain")
    (tmp_path / "mirror/toy/b.gz").write_bytes(gzip.compress(TEXT))
    obtain(source(kind="mirror", folder="toy"), ["a", "b"], space._replace(mirror=tmp_path / "mirror"))
    assert (space.raw / "a").read_bytes() == b"plain"
    assert (space.raw / "b").read_bytes() == TEXT


@pytest.mark.parametrize("relaxed", [False, True])
def test_pip_downloads_the_pinned_wheels_and_nothing_runs(tmp_path, space, client, relaxed):
    wheels = {name: archive(tmp_path / f"{name}-1.0.whl", [("data/x", name.encode())]) for name in ("a", "b")}
    log = client("pip", f"shutil.copy({str(tmp_path)!r} + '/' + sys.argv[-1][0] + '-1.0.whl', '.')")
    pins = [{"requirement": f"{name}==1.0", "sha256": sha256_of(wheel), "members": {"data/x": name},
             "ignore_requires_python": relaxed} for name, wheel in wheels.items()]  # fmt: skip
    obtain(source(kind="pip", wheels=pins), ["a", "b"], space)
    assert [(space.raw / name).read_text() for name in wheels] == ["a", "b"]
    option = "--ignore-requires-python " if relaxed else ""
    command = f"-m pip download --quiet --no-deps --only-binary=:all: {option}"
    assert log.read_text() == f"{command}a==1.0\n{command}b==1.0\n"


def test_npm_packs_the_pinned_package_without_scripts(tmp_path, space, client):
    package = archive(tmp_path / "toy-1.0.0.tgz", [("package/a", TEXT)])
    log = client("npm", f"shutil.copy({str(package)!r}, '.')")
    pin = {"sha256": sha256_of(package), "members": {"package/a": "a"}}
    obtain(source(kind="npm", package="@toy/toy@1.0.0", **pin), ["a"], space)
    assert (space.raw / "a").read_bytes() == TEXT
    assert log.read_text() == "pack --loglevel=error --ignore-scripts @toy/toy@1.0.0\n"


def test_apt_updates_its_lists_if_a_package_is_not_found(tmp_path, space, client):
    tar = archive(tmp_path / "content.tar", [("./usr/t/a", TEXT), ("./usr/t/b", b"b")])
    updated = tmp_path / "updated"
    log = client("apt-get", f"""
updated = pathlib.Path({str(updated)!r})
if sys.argv[2] == "update":
    updated.touch()
elif not updated.exists():
    sys.exit('E: Unable to locate package toy-en')
else:
    shutil.copy({str(tar)!r}, sys.argv[3] + "_4%3a1-2_all.deb")
""")  # fmt: skip
    client("dpkg-deb", "sys.stdout.buffer.write(open(sys.argv[2], 'rb').read())")
    apt = source(kind="apt", packages={"toy-en": {"usr/t/": "en/"}, "toy": {"usr/t/a": "a"}})
    obtain(apt, ["en/", "a"], space)
    assert (space.raw / "en/a").read_bytes() == (space.raw / "a").read_bytes() == TEXT
    asked = [f"-qq {line}\n" for line in ("download toy-en", "update", "download toy-en", "download toy")]
    assert log.read_text() == "".join(asked)


def test_the_web_gives_packed_and_plain_files_and_members_of_archives_once(tmp_path, web, space):
    packed = archive(tmp_path / "c.tgz", [("d/c", TEXT)]).read_bytes()
    web.files = {"a.gz": gzip.compress(TEXT), "b": b"plain", "c.tgz": packed}
    packs = [{"url": web.url("a.gz")}, {"url": web.url("c.tgz"), "members": {"d/c": "c"}}]
    downloads = [packs[0], {"url": web.url("b"), "sha256": sha256(b"plain"), "bytes": 5}, packs[1]]
    for _ in range(2):  # what is whole is not fetched again
        obtain(source(kind="web", downloads=downloads), ["a", "b", "c"], space)
        assert (space.raw / "a").read_bytes() == (space.raw / "c").read_bytes() == TEXT
        assert (space.raw / "b").read_bytes() == b"plain"
        assert web.requests == ["/a.gz", "/b", "/c.tgz"]
        for path in space.raw.iterdir():
            path.unlink()


WHEEL = {"kind": "pip", "wheels": [{"requirement": "toy==1.0", "sha256": "0" * 64, "members": {"a": "a"}}]}
NPM = {"kind": "npm", "package": "toy@1.0.0", "sha256": "0" * 64, "members": {"a": "a"}}
APT = {"kind": "apt", "packages": {"toy": {"usr/a": "a"}}}
MIRROR = {"kind": "mirror", "folder": "toy"}
UNREACHED = "reached no package registry; connect this machine to the network, or set the proxy that it needs$"


@pytest.mark.parametrize(("values", "name", "body", "said"), [
    (MIRROR, "", "", r"no mirror is set \(\$REPLICATIONS_MIRROR\)"),
    (WHEEL, "pip", "open('toy-1.0.whl', 'w').write('x')", "toy==1.0: another sha256 than the card says"),
    (NPM, "npm", "open('toy-1.0.0.tgz', 'w').write('x')", "toy@1.0.0: another sha256 than the card says"),
    (NPM, "npm", "", r"0 files \*\.tgz arrived instead of one"),
    (NPM, "other", "", "npm is not installed"),
    (APT, "other", "", "apt-get is not installed"),
    (APT, "apt-get", "sys.exit('E: Permission denied' if 'update' in sys.argv else 'E: no package toy')",
     r"E: no package toy; updating the lists: .*E: Permission denied"),
    (WHEEL, "pip", "sys.exit('WARNING: NewConnectionError\\nERROR: No matching distribution')", f"pip {UNREACHED}"),
    (NPM, "npm", "sys.exit('npm error code ENOTFOUND\\nA complete log of this run: x')", f"npm {UNREACHED}"),
    (NPM, "npm", "sys.exit('npm error odd\\nA complete log of this run: x')", "npm failed: npm error odd$"),
    (APT, "apt-get", "sys.exit('E: Temporary failure resolving deb')", f"apt-get {UNREACHED}"),
])  # fmt: skip
def test_a_source_that_fails_says_why_and_leaves_nothing(space, client, values, name, body, said):
    client(name or "other", body)
    with pytest.raises(ReplicationError, match=said):
        obtain(source(**values), ["a"], space)
    assert not list(space.raw.iterdir())
    assert not list(space.downloads.iterdir())


def test_a_mirror_that_lacks_a_file_names_it(tmp_path, space):
    with pytest.raises(ReplicationError, match="toy/a does not exist"):
        obtain(source(**MIRROR), ["a"], space._replace(mirror=tmp_path))


@pytest.mark.parametrize(("name", "content", "values", "said"), [
    ("a", None, {}, "/a: the server says 404"),
    ("a", TEXT, {"sha256": "0" * 64}, "/a: another sha256 than the card says .*" + sha256(TEXT)),
    ("a", TEXT, {"bytes": 17}, "has 360,000 bytes instead of 17"),
    ("a", bytes(1_000_001), {}, "/a has more than 1,000,000 bytes; it is refused"),
    ("a.gz", gzip.compress(TEXT)[:-9], {}, r"a\.gz is damaged"),
    ("a.tgz", gzip.compress(TEXT)[:-9], {"members": {"d/a": "a"}}, r"a\.tgz is damaged"),
    ("a.zip", b"<!DOCTYPE html>", {"members": {"d/a": "a"}}, r"a\.zip is damaged"),
])  # fmt: skip
def test_a_wrong_download_is_refused_and_not_kept(web, space, name, content, values, said):
    web.files = {} if content is None else {name: content}
    with pytest.raises(ReplicationError, match=said):
        obtain(source(kind="web", downloads=[{"url": web.url(name), **values}]), ["a"], space)
    assert not list(space.downloads.iterdir())


def test_a_transfer_that_breaks_off_leaves_nothing_and_the_next_one_is_whole(web, space):
    web.files, web.cuts = {"a": TEXT}, 1
    download = source(kind="web", downloads=[{"url": web.url("a")}])
    with pytest.raises(ReplicationError, match="/a: the transfer broke off"):
        obtain(download, ["a"], space)
    assert not list(space.downloads.iterdir())
    obtain(download, ["a"], space)
    assert (space.raw / "a").read_bytes() == TEXT


def test_an_address_where_nobody_answers_is_said_in_a_few_words(web, space):
    url = web.url("a")
    web.server_close()
    with pytest.raises(ReplicationError, match=r"/a: no connection \(ConnectionError\)$"):
        obtain(source(kind="web", downloads=[{"url": url}]), ["a"], space)


def test_a_folder_is_hashed_by_its_sorted_listing(tmp_path):
    tree = tmp_path / "tree"
    (tree / "b").mkdir(parents=True)
    (tree / "b/x").write_bytes(b"1")
    (tree / "a").write_bytes(b"2")
    assert sha256_of(tree) == sha256(f"{sha256(b'2')}  a\n{sha256(b'1')}  b/x\n".encode())


def test_a_folder_that_may_not_be_read_is_not_passed_over(tmp_path, monkeypatch):
    (tmp_path / "open/closed").mkdir(parents=True)
    scandir = os.scandir

    def refuse(path):
        if Path(path).name == "closed":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)  # whoever runs the tests may be allowed everything
    with pytest.raises(PermissionError, match="closed"):
        sha256_of(tmp_path)
