import shutil
import subprocess
import tarfile

import pytest

from shared.data import archives
from shared.data.archives import extract
from tests.data.odd import archive
from tests.refused import assert_refused


@pytest.fixture
def into(tmp_path):
    (tmp_path / "into").mkdir()
    return tmp_path / "into"


def test_a_member_larger_than_declared_is_refused(tmp_path, into):
    path = archive(tmp_path / "a.zip", [("a", bytes(5000))])
    content = bytearray(path.read_bytes())
    directory = content.rindex(b"PK\x01\x02")
    content[directory + 24 : directory + 28] = (10).to_bytes(4, "little")
    path.write_bytes(content)
    assert_refused("damaged|has more than", extract, path, {"a": "a"}, into, limit=10_000)


def hungry(*_):
    raise MemoryError


@pytest.mark.parametrize(("change", "wanted", "said"), [
    ((archives, "_MOST_FILES", 1), {"t/": "t/"}, "holds more than 1 files"),
    ((tarfile.TarFile, "next", hungry), {"t/a": "a"}, "is damaged or cannot be unpacked"),  # a head of gigabytes
    ((archives, "_MOST_FILES", 9), {"t/": ""}, "would leave the folder"),
])  # fmt: skip
def test_a_tar_that_asks_for_too_much_is_refused(tmp_path, into, monkeypatch, change, wanted, said):
    monkeypatch.setattr(*change)
    path = archive(tmp_path / "a.tar", [("t/a", b""), (f"t/{tmp_path}/escaped", b"1")])
    assert_refused(said, extract, path, wanted, into, limit=10)
    assert not (tmp_path / "escaped").exists()


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="needs Debian's dpkg-deb")
def test_a_real_deb_is_read_without_installing_it_and_a_bomb_is_refused(tmp_path, into, monkeypatch):
    (tmp_path / "pkg/DEBIAN").mkdir(parents=True)
    (tmp_path / "pkg/usr/share").mkdir(parents=True)
    (tmp_path / "pkg/usr/share/text").write_text("hello")
    control = "Package: tiny\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: tiny\n"
    (tmp_path / "pkg/DEBIAN/control").write_text(control)
    deb = tmp_path / "tiny_1_all.deb"
    subprocess.run(["dpkg-deb", "--build", tmp_path / "pkg", deb], check=True, capture_output=True)
    extract(deb, {"usr/share/text": "text"}, into, limit=100)
    assert (into / "text").read_text() == "hello"
    monkeypatch.setattr(archives, "_DEB_RATIO", 1)
    monkeypatch.setattr(archives, "_DEB_SPARE", 0)
    assert_refused("has more than", extract, deb, {"usr/share/text": "text"}, into, limit=100)
    deb.write_bytes(deb.read_bytes()[:100])
    assert_refused("is damaged", extract, deb, {"usr/share/text": "text"}, into, limit=100)
