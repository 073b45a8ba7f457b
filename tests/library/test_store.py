"""Tests of the store: data survives a round trip, and readers never wait for the writer."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from musicsim.errors import FeatureVersionError, LibraryError, NotFoundError, StoreLockedError
from musicsim.library import Library
from musicsim.library.db import schema
from musicsim.library.disk.arrays import RowFile, atomic_folder, atomic_path, release_pages
from tests.sounds import write_song
from tests.waiting import PATIENCE_S


def test_reopened_library_has_same_songs(tiny_library):
    with Library.open(tiny_library.folder) as again:
        assert [s.title for s in again.songs()] == [s.title for s in tiny_library.songs()]


def test_opening_without_create_requires_library(tmp_path):
    with pytest.raises(NotFoundError, match="no library found"):
        Library.open(tmp_path / "nothing", create=False)
    assert not (tmp_path / "nothing").exists()


def test_newer_library_is_refused_and_unchanged(store):
    with store.write() as connection:
        connection.execute(schema.meta.update().where(schema.meta.c.key == "schema_version").values(value="999"))
    before = (store.folder / "library.sqlite").read_bytes()
    with pytest.raises(LibraryError, match="newer version of musicsim"):
        Library.open(store.folder)
    assert (store.folder / "library.sqlite").read_bytes() == before


def test_opening_file_as_library_gives_clear_error(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(LibraryError, match="cannot be opened"):
        Library.open(tmp_path / "file")


def test_song_fields_come_from_file_tags(tiny_library):
    song = next(s for s in tiny_library.songs() if s.path.name == "01 Song clicks 0.flac")
    assert (song.title, song.artist, song.year, song.genre, song.track) == (
        "Song clicks 0", "Artist clicks", 1990, "Genre clicks", 1,
    )  # fmt: skip
    assert song.duration_s == pytest.approx(4.0, abs=0.01)


def test_unknown_song_raises_not_found(tiny_library):
    with pytest.raises(NotFoundError, match="song 999 does not exist"):
        tiny_library.song(999)


def test_non_utf8_file_name_round_trips(store, tmp_path):
    name = os.fsdecode(b"caf\xe9 \xff.wav")
    path = write_song(tmp_path / "music" / "x.wav")
    path = path.rename(path.with_name(name))
    store.add(tmp_path / "music")
    assert [os.fsencode(s.path.name) for s in store.songs()] == [b"caf\xe9 \xff.wav"]


def test_changes_increase_revision_but_thumbs_do_not(tiny_library):
    song, before = tiny_library.songs()[0].id, tiny_library.revision
    tiny_library.set_feedback(song, 1)
    assert tiny_library.revision == before
    tiny_library.add_tags([{"song_id": song, "tag": "calm", "weight": 2.0}])
    assert tiny_library.revision == before + 1


def test_thumbs_are_saved_and_removed(tiny_library):
    first, second = (s.id for s in tiny_library.songs()[:2])
    tiny_library.set_feedback(first, 1)
    tiny_library.set_feedback(second, -1)
    assert tiny_library.feedback() == {first: 1, second: -1}
    tiny_library.set_feedback(first, 0)
    assert tiny_library.feedback() == {second: -1}


def test_tags_are_sorted_by_weight(tiny_library):
    song = tiny_library.songs()[0].id
    tiny_library.add_tags([{"song_id": song, "tag": t, "weight": w} for t, w in (("calm", 1), ("loud", 5), ("odd", 3))])
    assert tiny_library.tags()[song] == [("loud", 5.0), ("odd", 3.0), ("calm", 1.0)]


def test_playlist_of_same_name_is_replaced_in_order(tiny_library):
    a, b, c = (s.id for s in tiny_library.songs()[:3])
    tiny_library.add_playlists([("mine", None, [a, b, c])], source="saved")
    tiny_library.add_playlists([("mine", None, [c, a])], source="saved")
    assert [(p.name, p.song_ids) for p in tiny_library.playlists()] == [("mine", (c, a))]
    tiny_library.add_playlists([("other", "calm", [b])], source="lists.csv")
    assert [(p.name, p.song_ids) for p in tiny_library.playlists(source="lists.csv")] == [("other", (b,))]
    for playlist in tiny_library.playlists():
        tiny_library.saved_playlists.delete(playlist.id)
    assert tiny_library.playlists() == []


def test_settings_are_saved(store):
    assert store.settings["keep_frames"] is True
    store.set_setting("keep_frames", False)
    with Library.open(store.folder) as again:
        assert again.settings["keep_frames"] is False


def test_frames_round_trip_within_half_precision(tiny_library):
    from musicsim.audio import delta_mfcc, load

    song = tiny_library.songs()[0]
    kept, fresh = tiny_library.frames(song), delta_mfcc(load(song.path))
    # MFCC are below 1024, where half precision has steps of 0.5. Rounding is off by at most 0.25, for deltas by less.
    np.testing.assert_allclose(kept, fresh, atol=0.26)


@pytest.mark.parametrize(
    ("name", "value"), [("n_workers", -1), ("shortest_s", float("nan")), ("file_seconds", True), ("color", 1)]
)
def test_rejects_invalid_settings(store, name, value):
    before = store.settings
    with pytest.raises(ValueError, match=name):
        store.set_setting(name, value)
    assert store.settings == before


def test_dropped_frames_give_clear_error(tiny_library):
    song = tiny_library.songs()[0]
    tiny_library.frame_files.drop(song.content_hash)
    with pytest.raises(FeatureVersionError, match="were not stored"):
        tiny_library.frames(song)


def test_vectors_are_aligned_with_songs(tiny_library):
    rows = tiny_library.vectors()
    assert sorted(rows.song_ids.tolist()) == [s.id for s in tiny_library.songs()]
    assert rows.X.shape == (12, tiny_library.models.active().n_dimensions)


def test_vectors_stay_aligned_after_song_deletion(tiny_library):
    before = tiny_library.vectors()
    gone = int(before.song_ids[3])
    with tiny_library.write() as connection:
        connection.execute(schema.songs.delete().where(schema.songs.c.id == gone))
    after = tiny_library.vectors()
    keep = before.song_ids != gone
    np.testing.assert_array_equal(after.song_ids, before.song_ids[keep])
    np.testing.assert_array_equal(after.X, before.X[keep])


def test_readers_do_not_wait_for_writer(tiny_library):
    seen = []
    with tiny_library.write() as connection:
        connection.execute(schema.songs.update().values(title="changed"))
        reader = threading.Thread(target=lambda: seen.append({s.title for s in tiny_library.songs()}))
        reader.start()
        reader.join(timeout=PATIENCE_S)
    assert seen, "the reader waited for the writer"
    assert "changed" not in seen[0]
    assert {s.title for s in tiny_library.songs()} == {"changed"}


def test_only_one_process_may_add_songs(store):
    code = (
        "import sys; from musicsim.library import Library\n"
        "with Library.open(sys.argv[1]).exclusive():\n"
        "    print('locked', flush=True); sys.stdin.read()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(store.folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(StoreLockedError, match="another musicsim process is adding"), store.exclusive():
            pass
    finally:
        other.communicate(b"")
    with store.exclusive():
        pass


def test_uncounted_rows_are_overwritten(tmp_path):
    file = RowFile(tmp_path / "rows.f32", width=3)
    file.append(np.ones((2, 3)), at=0)
    file.append(np.full((2, 3), 9.0), at=2)  # not counted, because its transaction was interrupted
    file.append(np.full((1, 3), 5.0), at=2)
    np.testing.assert_array_equal(file.read(3), [[1] * 3, [1] * 3, [5] * 3])
    assert file.path.stat().st_size == 3 * 3 * 4


def test_rejects_rows_of_wrong_width(tmp_path):
    with pytest.raises(ValueError, match="it must have 3 columns"):
        RowFile(tmp_path / "rows.f32", width=3).append(np.ones((2, 4)), at=0)


def test_failed_write_leaves_only_old_file(tmp_path):
    target = tmp_path / "value.json"
    target.write_text("old")

    def write_half() -> None:
        with atomic_path(target) as temporary:
            temporary.write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_half()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_folder_is_written_atomically(tmp_path):
    def write(fails: bool) -> None:
        with atomic_folder(tmp_path / "models" / "a.model") as written:
            (written / "value").write_text("all")
            if fails:
                raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write(fails=True)
    assert list((tmp_path / "models").iterdir()) == []
    write(fails=False)
    assert [p.name for p in (tmp_path / "models").iterdir()] == ["a.model"]
    assert (tmp_path / "models" / "a.model" / "value").read_text() == "all"


def test_atomic_writes_use_default_permissions(tmp_path):
    made = tmp_path / "by hand", tmp_path / "by hand.txt"
    made[0].mkdir()
    made[1].touch()
    with atomic_folder(tmp_path / "folder"), atomic_path(tmp_path / "file"):
        pass
    modes = [(tmp_path / name).stat().st_mode for name in ("folder", "file")]
    assert modes == [path.stat().st_mode for path in made]


def test_unfinished_model_folder_is_deleted(tiny_library):
    stray = tiny_library.models.path("native-stray")
    stray.mkdir()
    (stray / "model.json").write_text(json.dumps({}))
    tiny_library.models.discard_unfinished()
    assert not stray.exists()
    assert Path(tiny_library.models.path(tiny_library.models.active().id)).exists()


def test_released_memory_pages_are_loaded_again(tmp_path):
    rows = np.arange(4 << 20, dtype=np.float32).reshape(-1, 64)
    file = RowFile(tmp_path / "rows.f32", 64)
    file.append(rows, at=0)
    read = file.read(len(rows))

    def resident() -> int:
        lines = Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines()
        (at,) = [n for n, line in enumerate(lines) if line.endswith("rows.f32")]
        return next(int(line.split()[1]) for line in lines[at:] if line.startswith("Rss:"))

    assert float(read.sum()) > 0
    assert resident() > 10_000, "kB"
    release_pages()
    assert resident() == 0
    np.testing.assert_array_equal(read, rows)
