"""Tests of odd zip archives as model files, and of full disks: a sentence, and no files left behind."""

import shutil
import stat
import zipfile

import numpy as np
import pytest

from musicsim.explorer.models.files import save_model_file
from tests.command import run, run_process
from tests.crafted_models import parts_of
from tests.disks import fill, small_disk


@pytest.fixture
def honest(tiny_library, tmp_path):
    """Write a valid model file of the tiny library."""
    target = tmp_path / "honest.musicsim"
    save_model_file(tiny_library, tiny_library.models.native().id, target)
    return target


def write(path, members):
    """Write a model file from members, each a name or a ZipInfo with its bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def typed(name, kind):
    """Mark a member as something other than a plain file."""
    member = zipfile.ZipInfo(name)
    member.create_system = 3  # Unix
    member.external_attr = (kind | 0o777) << 16
    return member


def with_other(name, data=b"{}"):
    return lambda path, parts: write(path, [*parts.items(), (name, data)])


def as_link(name, data=None):
    """Turn one member into a symbolic link, to another file or with its own bytes."""

    def change(path, parts):
        found = data or parts[name]
        return write(path, [(typed(name, stat.S_IFLNK), found), *((n, p) for n, p in parts.items() if n != name)])

    return change


def encrypted(path, parts):
    """Mark every member as encrypted, in both of its headers."""
    data = bytearray(write(path, parts.items()).read_bytes())
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(signature)
        while at >= 0:
            data[at + place] |= 1
            at = data.find(signature, at + 4)
    path.write_bytes(data)


def other_name_inside(path, parts):
    """Make the local header of a member name a different file than the list of members does."""
    data = write(path, parts.items()).read_bytes()
    path.write_bytes(data.replace(b"model.json", b"../../ab.x", 1))


ODD = {
    "a link to a file": as_link("model.json", b"/etc/passwd"),
    "a link to a device": as_link("about.json", b"/dev/zero"),
    "a link that holds the model": as_link("model.json"),
    "one more link": lambda path, parts: write(path, [*parts.items(), (typed("x", stat.S_IFLNK), b"/etc")]),
    "a device": lambda path, parts: write(path, [(typed("report.json", stat.S_IFCHR), b""), *parts.items()]),
    "a folder": lambda path, parts: write(path, [*parts.items(), ("models/", b"")]),
    "encrypted": encrypted,
    "an absolute name": with_other("/tmp/musicsim-was-here.json"),
    "a name above": with_other("../../musicsim-was-here.json"),
    "a name of Windows": with_other("..\\..\\musicsim-was-here.json"),
    "a name of NUL": with_other("model.json\0.txt"),
    "the names in a folder": lambda path, parts: write(path, [(f"a/{n}", p) for n, p in parts.items()]),
    "another name inside": other_name_inside,
    "60,000 members": lambda path, parts: write(path, [*parts.items(), *((f"{n}.json", b"") for n in range(60_000))]),
    "60,000 members of one name": lambda path, parts: write(
        path, [*parts.items(), *(("model.json", b"{}") for _ in range(60_000))]
    ),
}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("what", ODD)
def test_odd_archives_are_rejected_without_leftovers(tiny_library, honest, tmp_path, what):
    ODD[what](tmp_path / "odd.musicsim", parts_of(honest))
    folder = tiny_library.folder
    before = sorted((folder / "models").rglob("*"))
    n_models = len(tiny_library.models.all(retired=True))
    _, said = run("models", "import", tmp_path / "odd.musicsim", library=folder, expect=1)
    lines = said.strip().splitlines()
    assert len(lines) == 1, said
    assert lines[0].startswith("error: odd.musicsim: no musicsim model can be read from this file (")
    assert len(lines[0]) < 400
    assert sorted((folder / "models").rglob("*")) == before
    assert not [path for path in (folder / "scratch").glob("*/*") if list(path.rglob("*"))]
    assert len(tiny_library.models.all(retired=True)) == n_models
    assert not list(tmp_path.rglob("musicsim-was-here*"))


def test_plain_archive_with_same_parts_is_accepted(tiny_library, honest, tmp_path):
    """Check that the test above refuses the packing, not the content."""
    write(tmp_path / "good.musicsim", parts_of(honest).items())
    run("models", "import", tmp_path / "good.musicsim", library=tiny_library.folder)


@pytest.mark.long
def test_full_disk_gives_clear_error(built_library, honest, tmp_path):
    parts = parts_of(honest)
    with small_disk(tmp_path / "disk", size_mb=40) as disk:
        folder = shutil.copytree(built_library, disk / "library")
        noise = np.random.default_rng(0).bytes(8 << 20)
        large = write(tmp_path / "large.musicsim", (parts | {"model.npz": parts["model.npz"] + noise}).items())
        stuffing = fill(disk, left_kb=3000)
        _, said = run_process("models", "import", large, library=folder, expect=4)
        assert said.strip().splitlines()[-1].startswith(f"error: There is no room left in {folder}.")
        assert "Traceback" not in said
        scratch = folder / "scratch"
        assert not scratch.exists() or not list(scratch.iterdir())
        stuffing.unlink()
        run_process("models", "import", honest, library=folder)
