"""Tests of crafted archives: errors are found before anything is unpacked."""

import io
import struct
import zipfile

import pytest

from musicsim.library.disk.archives import DAMAGED, open_archive, shorten_message, unpack

NAMES = ("a.json", "b.npz")


def archive(path, *, method=zipfile.ZIP_DEFLATED, names=NAMES, data=b"x" * 1000):
    with zipfile.ZipFile(path, "w", method) as written:
        for name in names:
            written.writestr(name, data)
    return path


def edited(path, old, new):
    """Return the file with some of its bytes replaced."""
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))
    return path


def directory(path):
    """Return the offset of the central directory."""
    return path.read_bytes().index(b"PK\x01\x02")


def with_bytes(path, at, value):
    data = bytearray(path.read_bytes())
    data[at : at + len(value)] = value
    path.write_bytes(bytes(data))
    return path


def test_valid_archive_is_opened_and_unpacked(tmp_path):
    with open_archive(archive(tmp_path / "good.zip"), 2) as opened:
        assert opened.namelist() == list(NAMES)
        unpack(opened, "a.json", tmp_path / "a.json", 1000)
    assert (tmp_path / "a.json").read_bytes() == b"x" * 1000


def with_comment(path):
    with zipfile.ZipFile(path, "a") as opened:
        opened.comment = b"hello"


def with_large_end(path):
    data = path.read_bytes()
    path.write_bytes(data[:-22] + b"PK\x06\x07" + bytes(16) + data[-22:])


WRONG = {
    "many": (lambda path: archive(path, names="abc"), "more than 2 parts"),
    "another way": (lambda path: archive(path, method=zipfile.ZIP_LZMA), "uses a compression method that"),
    "an unknown way": (lambda path: with_bytes(path, directory(path) + 10, b"\x63"), "uses a compression method that"),
    "a password": (lambda path: with_bytes(path, directory(path) + 8, b"\x01"), "password"),
    "a comment": (with_comment, "not an archive"),
    # as if the central directory never ended; zipfile would read all of it
    "a long list": (
        lambda path: with_bytes(path, path.stat().st_size - 10, struct.pack("<L", 2**31)), "more than 2 parts"
    ),
    "a large end": (with_large_end, "too large for"),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:-1]), "not an archive"),
    "empty": (lambda path: path.write_bytes(b""), "not an archive"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_invalid_archive_gives_clear_error(tmp_path, kind):
    change, why = WRONG[kind]
    change(archive(tmp_path / "wrong.zip"))
    with pytest.raises(ValueError, match=why), open_archive(tmp_path / "wrong.zip", 2):
        pass


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_repeated_names_are_refused(tmp_path):
    archive(tmp_path / "twice.zip", names="aa")
    with pytest.raises(ValueError, match="same name"), open_archive(tmp_path / "twice.zip", 2):
        pass


def test_offset_before_file_start_is_reported_as_damage(tmp_path):
    path = archive(tmp_path / "wrong.zip")
    with_bytes(path, path.stat().st_size - 6, struct.pack("<L", 2**31))
    with pytest.raises(ValueError, match="list of parts is damaged"), open_archive(path, 2) as opened:
        opened.read("a.json")


def test_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not a file"), open_archive(tmp_path, 2):
        pass


def test_oversized_part_is_refused_before_unpacking(tmp_path):
    path = archive(tmp_path / "large.zip", data=bytes(3 << 20))
    with open_archive(path, 2) as opened:
        with pytest.raises(ValueError, match=r"a.json is larger than 2 MB"):
            unpack(opened, "a.json", tmp_path / "out", 2 << 20)
        assert not (tmp_path / "out").exists()


def test_understated_size_limits_unpacked_bytes(tmp_path):
    path = archive(tmp_path / "lies.zip", data=bytes(3 << 20))
    edited(path, struct.pack("<L", 3 << 20), struct.pack("<L", 5))
    with open_archive(path, 2) as opened, pytest.raises(DAMAGED):
        unpack(opened, "a.json", tmp_path / "out", 2 << 20)
    assert (tmp_path / "out").stat().st_size <= 5


def test_unpacked_bytes_are_counted(tmp_path):
    class Lies(zipfile.ZipFile):
        def getinfo(self, name):
            return zipfile.ZipInfo(name)  # empty

        def open(self, name, mode="r", *_, **__):
            return io.BytesIO(bytes(3 << 20))

    with Lies(archive(tmp_path / "lies.zip")) as opened, pytest.raises(ValueError, match="larger than 2 MB"):
        unpack(opened, "a.json", tmp_path / "out", 2 << 20)
    assert (tmp_path / "out").stat().st_size <= 2 << 20


def test_long_error_message_is_shortened(tmp_path):
    """zipfile quotes the whole name, up to 64 kB."""
    path = archive(tmp_path / "x.zip", method=zipfile.ZIP_STORED, data=b"\n" * 5000)
    data = bytearray(path.read_bytes())
    data[26:28] = (4000).to_bytes(2, "little")  # the length of the first member's name in its header
    path.write_bytes(data)
    with zipfile.ZipFile(path) as damaged, pytest.raises(zipfile.BadZipFile) as caught:
        damaged.read(NAMES[0])
    assert len(str(caught.value)) > 4000
    assert len(shorten_message(caught.value)) < 250
    assert shorten_message("two\nlines.") == "two lines"
