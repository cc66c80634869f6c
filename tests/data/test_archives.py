import gzip
import io
import shutil
import subprocess
import tarfile
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.data import archives
from shared.data.archives import extract, gunzip
from shared.errors import ReplicationError


def make_tar(path, members, mode="w"):
    with tarfile.open(path, mode) as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
            else:
                info.type, info.linkname = content
                tar.addfile(info)
    return path


def make_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def make(kind, folder, members):
    if kind == "zip":
        return make_zip(folder / "a.zip", members)
    return make_tar(folder / f"a.{kind}", members, {"tar": "w", "tgz": "w:gz", "txz": "w:xz"}[kind])


KINDS = ["zip", "tar", "tgz", "txz"]


@pytest.fixture
def into(tmp_path):
    (tmp_path / "into").mkdir()
    return tmp_path / "into"


@pytest.mark.parametrize("kind", KINDS)
def test_wanted_members_and_trees_arrive_and_nothing_else(tmp_path, into, kind):
    packed = gzip.compress(b"packed text")
    archive = make(kind, tmp_path, {"d/a": b"1", "d/t/x": b"2", "d/t/u/y": b"3", "d/z.gz": packed, "other": b"4"})
    extract(archive, {"d/a": "first", "d/t/": "tree/", "d/z.gz": "z"}, into, limit=1000)
    found = {p.relative_to(into).as_posix(): p.read_bytes() for p in into.rglob("*") if p.is_file()}
    assert found == {"first": b"1", "tree/x": b"2", "tree/u/y": b"3", "z": b"packed text"}


def test_names_with_a_leading_dot_are_the_same_names(tmp_path, into):
    extract(make("tar", tmp_path, {"./usr/a": b"1"}), {"usr/a": "a"}, into, limit=10)
    assert (into / "a").read_bytes() == b"1"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["../evil", "t/../../evil", "/evil", "t\\..\\evil", "t/x/../../../evil"])
def test_an_archive_with_a_path_out_of_the_folder_is_refused(tmp_path, into, kind, name):
    archive = make(kind, tmp_path, {name: b"x", "t/a": b"1"})
    with pytest.raises(ReplicationError, match="unsafe path"):
        extract(archive, {"t/": "t/"}, into, limit=1000)
    assert not any(p.name == "evil" for p in tmp_path.rglob("*"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_refused_when_wanted_and_ignored_otherwise(tmp_path, into, kind):
    archive = make("tar", tmp_path, {"t/a": (kind, "/etc/passwd"), "good": b"1"})
    extract(archive, {"good": "good"}, into, limit=10)
    with pytest.raises(ReplicationError, match="t/a is a link or a device"):
        extract(archive, {"t/": "t/"}, into, limit=10)
    assert [p.name for p in into.iterdir()] == ["good"]


def test_a_symbolic_link_in_a_zip_is_refused(tmp_path, into):
    info = zipfile.ZipInfo("a")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr(info, "/etc/passwd")
    with pytest.raises(ReplicationError, match="is a link"):
        extract(tmp_path / "a.zip", {"a": "a"}, into, limit=1000)


@pytest.mark.parametrize("kind", KINDS)
def test_bombs_are_refused_by_their_declared_size(tmp_path, into, kind):
    archive = make(kind, tmp_path, {"t/a": bytes(600), "t/b": bytes(600)})
    with pytest.raises(ReplicationError, match="unpacks to more than 1,000 bytes"):
        extract(archive, {"t/": "t/"}, into, limit=1000)
    assert not (into / "t/b").exists()


def test_a_member_larger_than_declared_is_refused(tmp_path, into):
    archive = make_zip(tmp_path / "a.zip", {"a": bytes(5000)})
    content = bytearray(archive.read_bytes())
    directory = content.rindex(b"PK\x01\x02")
    content[directory + 24 : directory + 28] = (10).to_bytes(4, "little")
    archive.write_bytes(content)
    with pytest.raises(ReplicationError, match=r"damaged|has more than"):
        extract(archive, {"a": "a"}, into, limit=10_000)


def test_a_packed_member_that_unpacks_to_too_much_is_refused(tmp_path, into):
    archive = make("tar", tmp_path, {"a.gz": gzip.compress(bytes(100_000))})
    with pytest.raises(ReplicationError, match="has more than 5,000 bytes"):
        extract(archive, {"a.gz": "a"}, into, limit=5000)
    with pytest.raises(ReplicationError, match="has more than 5,000 bytes"):
        gunzip(_gz(tmp_path / "b.gz", bytes(100_000)), into / "b", limit=5000)


@pytest.mark.parametrize(
    "names",
    [["t/a", "t/a"], ["t/a", "t/a/b"], ["t/a/b", "t/a"], ["t/" + 300 * "a"]],
    ids=["twice", "a folder where a file is", "a file where a folder is", "a long name"],
)
def test_members_that_no_folder_can_hold_are_damage(tmp_path, into, names):
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        for name in names:
            tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(ReplicationError, match=r"a\.tar is damaged"):
        extract(tmp_path / "a.tar", {"t/": "t/"}, into, limit=10)


def test_too_many_files_are_refused(tmp_path, into, monkeypatch):
    monkeypatch.setattr(archives, "_MOST_FILES", 10)
    archive = make("tgz", tmp_path, {f"t/{number}": b"" for number in range(11)})
    with pytest.raises(ReplicationError, match="holds more than 10 files"):
        extract(archive, {"t/": "t/"}, into, limit=10)


def test_a_target_outside_of_the_folder_is_refused(tmp_path, into):
    archive = make("tar", tmp_path, {f"t/{tmp_path}/escaped": b"1"})
    with pytest.raises(ReplicationError, match="would leave the folder"):
        extract(archive, {"t/": ""}, into, limit=10)
    assert not (tmp_path / "escaped").exists()


def test_a_head_of_gigabytes_is_refused(tmp_path, into, monkeypatch):
    def hungry(*_):
        raise MemoryError

    monkeypatch.setattr(tarfile.TarFile, "next", hungry)
    with pytest.raises(ReplicationError, match="declares more than memory can hold"):
        extract(make("tar", tmp_path, {"a": b"1"}), {"a": "a"}, into, limit=10)


def _gz(path, content):
    path.write_bytes(gzip.compress(content))
    return path


def test_a_missing_member_is_named(tmp_path, into):
    with pytest.raises(ReplicationError, match=r"a\.tgz has no member t/b"):
        extract(make("tgz", tmp_path, {"t/a": b"1"}), {"t/a": "a", "t/b": "b"}, into, limit=10)


@pytest.mark.parametrize("kind", KINDS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(data=st.data())
def test_a_damaged_archive_gives_our_error_or_the_right_content(tmp_path_factory, kind, data):
    folder = tmp_path_factory.mktemp("damaged")
    text = b"some text to pack " * 50
    archive = make(kind, folder, {"t/a": text})
    content = bytearray(archive.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    archive.write_bytes(content)
    (folder / "into").mkdir()
    try:
        extract(archive, {"t/a": "a"}, folder / "into", limit=10_000)
    except ReplicationError:
        return
    # A plain tar has no checksum over contents; the sha256 of the extracted file is what finds this.
    assert kind == "tar" or (folder / "into" / "a").read_bytes() == text


def test_a_damaged_gz_is_said_to_be_damaged(tmp_path, into):
    packed = _gz(tmp_path / "a.gz", b"x" * 1000)
    packed.write_bytes(packed.read_bytes()[:-4])
    with pytest.raises(ReplicationError, match=r"a\.gz is damaged"):
        gunzip(packed, into / "a", limit=10_000)


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="needs Debian's dpkg-deb")
def test_a_real_deb_is_read_without_installing_it_and_a_bomb_is_refused(tmp_path, into, monkeypatch):
    (tmp_path / "pkg/DEBIAN").mkdir(parents=True)
    (tmp_path / "pkg/usr/share").mkdir(parents=True)
    (tmp_path / "pkg/usr/share/text").write_text("hello")
    (tmp_path / "pkg/DEBIAN/control").write_text(
        "Package: tiny\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: tiny\n"
    )
    deb = tmp_path / "tiny_1_all.deb"
    subprocess.run(["dpkg-deb", "--build", tmp_path / "pkg", deb], check=True, capture_output=True)
    extract(deb, {"usr/share/text": "text"}, into, limit=100)
    assert (into / "text").read_text() == "hello"
    monkeypatch.setattr(archives, "_DEB_RATIO", 1)
    monkeypatch.setattr(archives, "_DEB_SPARE", 0)
    with pytest.raises(ReplicationError, match="has more than"):
        extract(deb, {"usr/share/text": "text"}, into, limit=100)
    deb.write_bytes(deb.read_bytes()[:100])
    with pytest.raises(ReplicationError, match="is damaged"):
        extract(deb, {"usr/share/text": "text"}, into, limit=100)
