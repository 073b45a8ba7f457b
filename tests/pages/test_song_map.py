"""Data exchanged between page and map: ids of marked songs, never the songs, and the events of the map."""

import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from benchmarks.large_library import write_library
from musicsim.explorer.search.query import read_example
from musicsim.explorer.snapshot.map_columns import to_unit
from musicsim.explorer.snapshot.map_view import MAX_UNFOLDED
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.ui.base.frame import SHELL
from musicsim.ui.base.keys import read_event
from musicsim.ui.components import song_map
from tests.pages.actions import maps, open_page
from tests.sounds import write_song
from tests.waiting import PATIENCE_S


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Snapshot:
    """A library on whose map new songs are placed by their neighbors; never changed by a test."""
    folder = tmp_path_factory.mktemp("large") / "library"
    return take_snapshot(write_library(folder, MAX_UNFOLDED + 1_000))


def test_page_sends_only_ids_of_marked_songs(full):
    song = full.songs()[2]
    app = AppTest.from_file(SHELL, default_timeout=PATIENCE_S)
    app.session_state["chosen"] = song.id
    (sent,) = maps(app.run())
    assert sent["chosen"] == song.id
    assert song.id not in sent["found"]
    assert len(sent["found"]) == 6
    assert sent["map"]["model"] == full.models.active().id
    assert song.title not in json.dumps(sent)
    assert sent["alt"].startswith("Map of 12 songs")


def test_colors_follow_choice(full):
    app = open_page("listen")
    app.session_state["search_more"] = True
    app.run()
    box = next(b for b in app.selectbox if b.label == "Color by")
    (sent,) = maps(box.set_value("tempo").run())
    assert sent["colour_by"] == "tempo"


@pytest.mark.long
def test_uploaded_file_is_placed_among_its_results(large, tmp_path, monkeypatch):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(large.library.folder))
    app = AppTest.from_file(SHELL, default_timeout=PATIENCE_S).run()
    data = write_song(tmp_path / "q.wav", "noise", seed=9).read_bytes()
    app.get("file_uploader")[0].set_value(("q.wav", data, "audio/wav")).run()
    assert not app.exception
    (sent,) = maps(app)
    _, rows = large.index.query(read_example(large, data, "q.wav").vector[None, :], 10)
    place = np.median(large.map[rows[0]], axis=0)
    assert sent["query"] == pytest.approx(to_unit(large.map_view.home, place[None, :])[0].tolist())


@pytest.mark.parametrize(
    "sent",
    [None, 3, {}, {"x": [0, 1], "y": [0, 1]}, {"x": [0, 1, 1], "y": [0, 1]}, {"x": [0, 1, "2"], "y": [0, 0, 1]},
     {"x": [0, 1, float("nan")], "y": [0, 0, 1]}, {"x": [0.0] * 5_001, "y": [0.0] * 5_001}],
)  # fmt: skip
def test_invalid_outline_is_ignored(sent):
    assert song_map.parse_corners(sent) is None


def test_outline_contains_only_visible_legend_entries(snapshot):
    rows = np.arange(snapshot.n_indexed)
    of_entry = song_map.filter_by_legend(snapshot, rows, "genre", [0, "1", None])
    assert len(of_entry) == 4
    assert len({snapshot.songs_at([row])[0].genre for row in of_entry.tolist()}) == 1
    assert song_map.filter_by_legend(snapshot, rows, "genre", None) is rows


def test_event_of_component_that_has_left_page_is_none():
    assert read_event("no_such_component", "picked") is None
