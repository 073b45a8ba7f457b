"""Tests that backups and small copies do not contain the links of listening tests."""

import shutil
from pathlib import Path

import pytest

from musicsim.errors import NotFoundError
from musicsim.extensions.listening_tests.store import ListeningTestStore
from musicsim.library import Library
from musicsim.library.archive.backups import back_up
from musicsim.progress import no_progress
from tests.archives import parts_of
from tests.command import run


def test_links_are_restored_only_from_own_small_copy(tiny_library, tmp_path):
    tests = ListeningTestStore(tiny_library)
    (ann,) = tests.invite(tests.add("test", "digest", "{}"), ["Ann"])
    own = tiny_library.copies.keep_now()
    tiny_library.copies.bring_back(own)
    assert tests.listener_of(ann.token).name == "Ann"
    tiny_library.copies.bring_back(Path(shutil.copy(own, tmp_path)))
    with pytest.raises(NotFoundError):  # the sender of the file knows this token
        tests.listener_of(ann.token)


@pytest.fixture
def theirs(tiny_library):
    """Return the tokens of two listeners."""
    tests = ListeningTestStore(tiny_library)
    return {one.token for one in tests.invite(tests.add("test", "digest", "{}"), ["Ann", "Ben"])}


def tokens(folder):
    with Library.open(folder) as library:
        tests = ListeningTestStore(library)
        return {one.token for test in tests.all() for one in tests.listeners(test.id)}


def test_backup_contains_links_only_on_request(tiny_library, theirs, tmp_path):
    run("backup", tmp_path / "b", library=tiny_library.folder)
    assert not [token for token in theirs if token.encode() in b"".join(parts_of(tmp_path / "b").values())]
    run("backup", tmp_path / "b", "--with-passwords", "--yes", library=tiny_library.folder)
    assert all(token.encode() in b"".join(parts_of(tmp_path / "b").values()) for token in theirs)


def test_restore_keeps_backup_links_only_on_request(tiny_library, theirs, tmp_path):
    back_up(tiny_library, tmp_path / "private", no_progress, with_passwords=True)
    run("restore", tmp_path / "private", "--yes", library=tmp_path / "mine")
    assert len(tokens(tmp_path / "mine")) == 2
    assert not tokens(tmp_path / "mine") & theirs
    run("restore", tmp_path / "private", "--with-passwords", "--yes", library=tmp_path / "mine")
    assert tokens(tmp_path / "mine") == theirs
