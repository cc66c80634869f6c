import gzip
import hashlib
import io
import os
import shutil
import sys

import pytest
from pydantic import TypeAdapter
from rich.console import Console
from test_archives import make_tar, make_zip

from shared.data.cards import Source
from shared.data.sources import Workspace, obtain, sha256_of
from shared.errors import ReplicationError

TEXT = b"line one\nline two\n" * 20_000
CUT = 1 << 16


def source(**values):
    return TypeAdapter(Source).validate_python(values)


@pytest.fixture
def space(tmp_path):
    folders = [tmp_path / name for name in ("raw", "scratch", "downloads")]
    for folder in folders:
        folder.mkdir()
    return Workspace(*folders, None, 1_000_000, Console(file=io.StringIO()))


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def test_a_mirror_gives_plain_and_packed_files(tmp_path, space):
    (tmp_path / "mirror/toy").mkdir(parents=True)
    (tmp_path / "mirror/toy/a").write_bytes(b"plain")
    (tmp_path / "mirror/toy/b.gz").write_bytes(gzip.compress(TEXT))
    obtain(source(kind="mirror", folder="toy"), ["a", "b"], space._replace(mirror=tmp_path / "mirror"))
    assert (space.raw / "a").read_bytes() == b"plain"
    assert (space.raw / "b").read_bytes() == TEXT


def test_a_mirror_that_is_not_set_or_lacks_a_file_says_so(tmp_path, space):
    with pytest.raises(ReplicationError, match="no mirror is set"):
        obtain(source(kind="mirror", folder="toy"), ["a"], space)
    with pytest.raises(ReplicationError, match="toy/a does not exist"):
        obtain(source(kind="mirror", folder="toy"), ["a"], space._replace(mirror=tmp_path))


@pytest.mark.parametrize("relaxed", [False, True])
def test_pip_downloads_the_pinned_wheel_and_nothing_runs(tmp_path, space, fake_client, monkeypatch, relaxed):
    wheel = make_zip(tmp_path / "toy-1.0-py3-none-any.whl", {"toy/a": TEXT})
    log = fake_client("python", f"shutil.copy({str(wheel)!r}, '.')")
    monkeypatch.setattr(sys, "executable", str(log.parent / "bin/python"))
    pin = {"requirement": "toy==1.0", "sha256": sha256_of(wheel), "members": {"toy/a": "a"}}
    obtain(source(kind="pip", wheels=[pin | {"ignore_requires_python": relaxed}]), ["a"], space)
    assert (space.raw / "a").read_bytes() == TEXT
    option = "--ignore-requires-python " if relaxed else ""
    expected = f"-m pip download --quiet --no-deps --only-binary=:all: {option}toy==1.0\n"
    assert log.read_text() == expected


def test_pip_takes_several_wheels_each_with_its_own_pin(tmp_path, space, fake_client, monkeypatch):
    wheels = {name: make_zip(tmp_path / f"{name}-1.0.whl", {"data/x": name.encode()}) for name in ("a", "b")}
    log = fake_client("python", f"shutil.copy({str(tmp_path)!r} + '/' + sys.argv[-1][0] + '-1.0.whl', '.')")
    monkeypatch.setattr(sys, "executable", str(log.parent / "bin/python"))
    pins = [
        {"requirement": f"{name}==1.0", "sha256": sha256_of(wheel), "members": {"data/x": name}}
        for name, wheel in wheels.items()
    ]
    obtain(source(kind="pip", wheels=pins), ["a", "b"], space)
    assert [(space.raw / name).read_text() for name in wheels] == ["a", "b"]
    pins[1]["sha256"] = pins[0]["sha256"]
    shutil.rmtree(space.raw), space.raw.mkdir()
    with pytest.raises(ReplicationError, match=r"b-1\.0\.whl has another sha256"):
        obtain(source(kind="pip", wheels=pins), ["a", "b"], space)


BACKEND = """
import pathlib
pathlib.Path({marker!r}).touch()
def prepare_metadata_for_build_wheel(folder, settings=None):
    info = pathlib.Path(folder, "toy-1.0.dist-info")
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\\nName: toy\\nVersion: 1.0\\n")
    return info.name
def build_wheel(folder, settings=None, metadata=None):
    raise NotImplementedError
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "toy"
version = "1.0"
"""


@pytest.mark.parametrize("right", [True, False])
def test_a_source_archive_runs_no_code_before_its_hash_was_compared(tmp_path, space, monkeypatch, right):
    marker = tmp_path / "it ran"
    contents = {
        "toy-1.0/pyproject.toml": PROJECT.encode(),
        "toy-1.0/backend.py": BACKEND.format(marker=str(marker)).encode(),
        "toy-1.0/PKG-INFO": b"Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n",
        "toy-1.0/data/a.gz": gzip.compress(TEXT),
    }
    (tmp_path / "index").mkdir()
    archive = make_tar(tmp_path / "index/toy-1.0.tar.gz", contents, "w:gz")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    pin = sha256_of(archive) if right else "0" * 64
    members = {"toy-1.0/data/a.gz": "a"}
    pip = source(kind="pip", sdists=[{"requirement": "toy==1.0", "sha256": pin, "members": members}])
    if right:
        obtain(pip, ["a"], space)
        assert (space.raw / "a").read_bytes() == TEXT
    else:
        with pytest.raises(ReplicationError, match="pip failed"):
            obtain(pip, ["a"], space)
    assert marker.exists() == right


def test_npm_packs_the_pinned_package_without_scripts(tmp_path, space, fake_client):
    package = make_tar(tmp_path / "toy-1.0.0.tgz", {"package/a": TEXT}, "w:gz")
    log = fake_client("npm", f"shutil.copy({str(package)!r}, '.')")
    npm = source(kind="npm", package="toy@1.0.0", sha256=sha256_of(package), members={"package/a": "a"})
    obtain(npm, ["a"], space)
    assert (space.raw / "a").read_bytes() == TEXT
    assert log.read_text() == "pack --loglevel=error --ignore-scripts toy@1.0.0\n"


def test_a_package_with_another_hash_is_not_opened(tmp_path, space, fake_client):
    package = make_tar(tmp_path / "toy-1.0.0.tgz", {"package/a": TEXT}, "w:gz")
    fake_client("npm", f"shutil.copy({str(package)!r}, '.')")
    npm = source(kind="npm", package="toy@1.0.0", sha256="0" * 64, members={"package/a": "a"})
    with pytest.raises(ReplicationError, match="another sha256"):
        obtain(npm, ["a"], space)
    assert not list(space.raw.iterdir())


def deb_clients(tmp_path, fake_client, first):
    """A stand-in for apt-get whose download does ``first`` until the lists are updated, and for dpkg-deb."""
    tar = make_tar(tmp_path / "content.tar", {"./usr/t/a": TEXT, "./usr/t/b": b"b"})
    log = fake_client(
        "apt-get",
        f"""
updated = pathlib.Path({str(tmp_path / "updated")!r})
if sys.argv[2] == "update":
    updated.touch()
elif not updated.exists():
    {first}
else:
    for name in sys.argv[3:]:
        shutil.copy({str(tar)!r}, name + "_4%3a1-2_all.deb")
""",
    )
    fake_client("dpkg-deb", "sys.stdout.buffer.write(open(sys.argv[2], 'rb').read())")
    return log


def test_apt_updates_its_lists_if_the_package_is_not_found(tmp_path, space, fake_client):
    log = deb_clients(tmp_path, fake_client, "sys.exit('E: Unable to locate package toy-en')")
    obtain(
        source(kind="apt", packages={"toy-en": {"usr/t/": "en/"}, "toy": {"usr/t/a": "a"}}),
        ["en/", "a"],
        space,
    )
    assert (space.raw / "en/a").read_bytes() == (space.raw / "a").read_bytes() == TEXT
    assert log.read_text().splitlines() == [
        "-qq download toy-en toy",
        "-qq update",
        "-qq download toy-en toy",
    ]


def test_apt_says_why_if_even_the_lists_cannot_be_updated(space, fake_client):
    fake_client("apt-get", "sys.exit('E: Permission denied' if 'update' in sys.argv else 'E: no package toy')")
    with pytest.raises(ReplicationError, match=r"E: no package toy; updating the lists: .*E: Permission denied"):
        obtain(source(kind="apt", packages={"toy": {"usr/a": "a"}}), ["a"], space)


@pytest.mark.parametrize(
    ("client", "shown", "said"),
    [
        ("python", "pip", "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('x')\\n"
         "ERROR: No matching distribution found for toy==1.0"),
        ("npm", "npm", "npm error code ENOTFOUND\\nnpm error A complete log of this run can be found in: x"),
        ("apt-get", "apt-get", "E: Failed to fetch http://deb/toy  Temporary failure resolving 'deb'"),
    ],
)  # fmt: skip
def test_a_client_without_a_network_says_what_to_do(space, fake_client, monkeypatch, client, shown, said):
    sources = {
        "python": source(kind="pip", wheels=[{"requirement": "toy==1.0", "sha256": "0" * 64, "members": {"a": "a"}}]),
        "npm": source(kind="npm", package="toy@1.0.0", sha256="0" * 64, members={"a": "a"}),
        "apt-get": source(kind="apt", packages={"toy": {"usr/a": "a"}}),
    }
    log = fake_client(client, f'sys.exit("""{said}""")')
    monkeypatch.setattr(sys, "executable", str(log.parent / "bin" / client) if client == "python" else sys.executable)
    with pytest.raises(ReplicationError, match=f"{shown} reached no package registry; connect this machine") as error:
        obtain(sources[client], ["a"], space)
    assert "log of this run" not in str(error.value)


@pytest.mark.parametrize("client", ["npm", "apt-get"])
def test_a_missing_client_is_named(space, fake_client, client):
    fake_client("something-else", "")
    missing = {
        "npm": source(kind="npm", package="toy@1.0.0", sha256="0" * 64, members={"a": "a"}),
        "apt-get": source(kind="apt", packages={"toy": {"usr/a": "a"}}),
    }
    with pytest.raises(ReplicationError, match=f"{client} is not installed"):
        obtain(missing[client], ["a"], space)


def web_source(web, path="a.gz", **values):
    return source(kind="web", downloads=[{"url": web.url(path), **values}])


def test_the_web_gives_packed_and_plain_files_and_members_of_archives(tmp_path, web, space):
    archive = make_tar(tmp_path / "c.tgz", {"d/c": TEXT}, "w:gz").read_bytes()
    web.files = {"a.gz": gzip.compress(TEXT), "b": b"plain", "c.tgz": archive}
    downloads = [
        {"url": web.url("a.gz")},
        {"url": web.url("b"), "sha256": sha256(b"plain"), "bytes": 5},
        {"url": web.url("c.tgz"), "members": {"d/c": "c"}},
    ]
    obtain(source(kind="web", downloads=downloads), ["a", "b", "c"], space)
    assert (space.raw / "a").read_bytes() == (space.raw / "c").read_bytes() == TEXT
    assert (space.raw / "b").read_bytes() == b"plain"


@pytest.mark.parametrize("ranges", [True, False])
def test_a_transfer_that_breaks_off_is_continued(web, space, ranges):
    web.files, web.cut_after, web.cuts, web.ranges = {"a": TEXT}, CUT, 2, ranges
    obtain(web_source(web, "a", sha256=sha256(TEXT)), ["a"], space)
    assert (space.raw / "a").read_bytes() == TEXT
    assert [asked for _, asked in web.requests] == [
        None,
        f"bytes={CUT}-",
        f"bytes={2 * CUT if ranges else CUT}-",
    ]


def test_what_is_left_of_a_failed_download_is_used_by_the_next_one(web, space):
    web.files, web.cut_after, web.cuts = {"a": TEXT}, CUT, 3
    with pytest.raises(ReplicationError, match="the transfer broke off"):
        obtain(web_source(web, "a"), ["a"], space)
    assert (space.downloads / "a.part").stat().st_size == 3 * CUT
    obtain(web_source(web, "a"), ["a"], space)
    assert web.requests[-1] == ("/a", f"bytes={3 * CUT}-")
    assert (space.raw / "a").read_bytes() == TEXT


def test_leftovers_larger_than_the_file_are_thrown_away(web, space):
    web.files = {"a": TEXT}
    (space.downloads / "a.part").write_bytes(TEXT + b"more")
    obtain(web_source(web, "a"), ["a"], space)
    assert (space.raw / "a").read_bytes() == TEXT


def test_a_wrong_hash_is_refused_and_not_continued(web, space):
    web.files = {"a": TEXT}
    with pytest.raises(ReplicationError, match="another sha256 than the card says"):
        obtain(web_source(web, "a", sha256="0" * 64), ["a"], space)
    assert not list(space.downloads.iterdir())
    assert not list(space.raw.iterdir())


def test_wrong_leftovers_are_found_by_the_hash_and_the_next_try_starts_anew(web, space):
    web.files = {"a": TEXT}
    (space.downloads / "a.part").write_bytes(b"garbage")
    with pytest.raises(ReplicationError, match="another sha256"):
        obtain(web_source(web, "a", sha256=sha256(TEXT)), ["a"], space)
    obtain(web_source(web, "a", sha256=sha256(TEXT)), ["a"], space)
    assert (space.raw / "a").read_bytes() == TEXT


def test_a_wrong_size_and_a_flood_are_refused(web, space):
    web.files = {"a": TEXT}
    with pytest.raises(ReplicationError, match="360,000 bytes instead of 17"):
        obtain(web_source(web, "a", bytes=17), ["a"], space)
    with pytest.raises(ReplicationError, match="sends more than 100 bytes"):
        obtain(web_source(web, "a"), ["a"], space._replace(limit=100, downloads=space.scratch))


@pytest.mark.parametrize("name", ["a.gz", "a.tgz"])
def test_a_damaged_file_is_fetched_anew_once_the_server_is_repaired(tmp_path, web, space, name):
    members = {"d/a": "a"} if name == "a.tgz" else {}
    whole = make_tar(tmp_path / name, {"d/a": TEXT}, "w:gz").read_bytes() if members else gzip.compress(TEXT)
    web.files = {name: whole[: len(whole) // 2]}
    with pytest.raises(ReplicationError, match=f"{name} is damaged"):
        obtain(web_source(web, name, members=members), ["a"], space)
    assert not list(space.downloads.iterdir())
    (space.raw / "a").unlink(missing_ok=True)  # as fetch does after a failure
    web.files[name] = whole
    obtain(web_source(web, name, members=members), ["a"], space)
    assert (space.raw / "a").read_bytes() == TEXT


def test_a_missing_page_is_not_tried_again(web, space):
    with pytest.raises(ReplicationError, match="/a: the server says 404"):
        obtain(web_source(web, "a"), ["a"], space)
    assert len(web.requests) == 1


def test_a_folder_is_hashed_by_its_sorted_listing(tmp_path):
    tree = tmp_path / "tree"
    (tree / "b").mkdir(parents=True)
    (tree / "b/x").write_bytes(b"1")
    (tree / "a").write_bytes(b"2")
    listing = f"{sha256(b'2')}  a\n{sha256(b'1')}  b/x\n"
    assert sha256_of(tree) == sha256(listing.encode())
    shutil.move(tree / "a", tree / "c")
    assert sha256_of(tree) != sha256(listing.encode())


def test_an_address_where_nobody_answers_is_said_in_a_few_words(web, space):
    url = web.url("a")
    web.server_close()
    with pytest.raises(ReplicationError, match=r"/a: no connection \(ConnectionError\)$"):
        obtain(source(kind="web", downloads=[{"url": url}]), ["a"], space)
