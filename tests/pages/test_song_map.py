"""What the map sends to the browser: of a small library every song, of a large one a sample before its density."""

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from benchmarks.large_library import write_library
from musicsim.audio import Descriptors
from musicsim.explorer.search.query import read_example
from musicsim.explorer.snapshot.map_view import MAX_DRAWN, SAMPLE, Window, map_view
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.library.db import schema
from musicsim.ui.base.frame import PAGES, SHELL
from musicsim.ui.components.song_map import (
    COLOUR_BY,
    MAX_MARKED,
    UNKNOWN_COLOUR,
    colours_of,
    label_colours,
    map_figure,
    map_spec,
)
from tests.pages.actions import maps
from tests.sounds import write_song

N_LARGE = MAX_DRAWN + 1_000


def unpacked(values: dict) -> np.ndarray:
    return np.frombuffer(base64.b64decode(values["bdata"]), dtype=f"<{values['dtype']}")


def traces(spec: dict) -> dict[str, dict]:
    return {trace["name"]: trace for trace in spec["data"] if trace["type"] == "scattergl"}


def ids_on(spec: dict, *, marks: bool = False) -> list[int]:
    """Song ids of the points, or of the rings around some."""
    found = [
        t for name, t in traces(spec).items() if (name in ("found", "chosen")) == marks and "customdata" in t
    ]
    return [song_id for trace in found for song_id in unpacked(trace["customdata"]).tolist()]


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Snapshot:
    """A library of which not every song is a point; never changed by a test."""
    folder = tmp_path_factory.mktemp("large") / "library"
    return take_snapshot(write_library(folder, N_LARGE))


@pytest.mark.parametrize("by", COLOUR_BY)
def test_every_song_of_a_small_library_is_a_point(snapshot, by):
    spec = map_spec(snapshot, by)
    assert sorted(ids_on(spec)) == [song.id for song in snapshot.library.songs()]
    assert spec["layout"]["images"] == []
    for trace in traces(spec).values():
        rows = snapshot.rows_of(unpacked(trace["customdata"]).tolist())
        np.testing.assert_array_equal(unpacked(trace["x"]), snapshot.map[rows, 0])
        np.testing.assert_array_equal(unpacked(trace["y"]), snapshot.map[rows, 1])
        songs = snapshot.songs_at(rows)
        assert trace["hovertext"] == [f"<b>{song.title}</b><br>{song.by}" for song in songs]
    assert map_figure(snapshot, by).data, "plotly takes it for a figure"


def test_points_stand_under_the_name_of_what_they_are(snapshot):
    by_genre = traces(map_spec(snapshot, "genre"))
    assert sorted(by_genre) == ["Genre clicks", "Genre noise", "Genre tones"]
    for name, trace in by_genre.items():
        songs = snapshot.songs_by_id(unpacked(trace["customdata"]).tolist())
        assert {song.genre for song in songs} == {name}
    by_folder = traces(map_spec(snapshot, "folder"))
    assert sorted(by_folder) == ["Artist clicks", "Artist noise", "Artist tones"], "the last part of the path"


def test_a_genre_has_the_same_colour_on_every_page(tiny_library):
    ids = [song.id for song in tiny_library.songs()]
    tiny_library.edits.edit(ids[:6], {"genre": "Tango"})
    tiny_library.edits.edit(ids[6:7], {"genre": ""})
    now = take_snapshot(tiny_library)
    assert label_colours(now.columns.genre) == colours_of([song.genre or None for song in now.songs_at()])
    for name, (colour, symbol) in label_colours(now.columns.genre).items():
        marker = traces(map_spec(now))[name]["marker"]
        assert (marker["color"], marker["symbol"]) == (colour, symbol)
    assert len(ids_on({"data": [traces(map_spec(now))["unknown"]]})) == 1


def test_labels_beyond_the_colours_are_others(large):
    artists = label_colours(large.columns.artist)
    assert artists == colours_of([song.artist or None for song in large.songs_at()])
    assert len(artists) == 60
    spec = map_spec(large, "artist")
    assert set(traces(spec)) <= {*artists, "others", "unknown"}
    assert len(ids_on(spec)) == SAMPLE
    assert not spec["layout"]["showlegend"]


def test_a_label_stands_in_the_legend_as_it_is(tiny_library):
    genre = """Rock 'n' "Roll" & <b>R&amp;B</b>"""
    tiny_library.edits.edit([song.id for song in tiny_library.songs()], {"genre": genre})
    (name,) = traces(map_spec(take_snapshot(tiny_library)))
    assert "<" not in name
    # what plotly takes back; it leaves quotes as they are, spelled out or not
    assert name.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == genre


def test_titles_are_no_markup(tiny_library):
    with tiny_library.write() as connection:
        connection.execute(schema.songs.update().values(title="<i>1</i> & " + "x" * 200))
    texts = next(iter(traces(map_spec(take_snapshot(tiny_library))).values()))["hovertext"]
    assert texts[0].startswith("<b>&lt;i&gt;1&lt;/i&gt; &amp; xxx")
    assert "x" * 100 not in texts[0], "and no longer than the plot is wide"


@pytest.mark.slow
def test_of_a_large_library_a_sample_goes_to_the_browser(large):
    spec = map_spec(large)
    assert len(ids_on(spec)) == len(set(ids_on(spec))) == SAMPLE
    assert len(json.dumps(spec)) < 1_500_000
    assert ids_on(map_spec(large)) == ids_on(spec), "the same ones each time"


@pytest.mark.slow
def test_what_is_marked_is_drawn_though_it_is_not_in_the_sample(large):
    unseen = sorted(set(large.row_ids.tolist()) - set(ids_on(map_spec(large))))
    spec = map_spec(large, chosen=unseen[0], found=unseen[1:], path=unseen[5:8])
    assert ids_on(spec, marks=True) == [*unseen[1 : MAX_MARKED + 1], *unseen[5:8], unseen[0]]
    (line,) = [trace for trace in spec["data"] if trace["type"] == "scatter"]
    np.testing.assert_array_equal(unpacked(line["x"]), large.map[large.rows_of(unseen[5:8]), 0])


@pytest.mark.slow
def test_a_small_window_shows_all_of_its_songs_and_keeps_the_legend(large):
    home = map_view(large.map).home
    window = Window(home.left, (home.left + home.right) / 2, home.bottom, (home.bottom + home.top) / 2)
    whole, part = map_spec(large), map_spec(large, window=window)
    x, y = large.map.T
    inside = (x >= window.left) & (x <= window.right) & (y >= window.bottom) & (y <= window.top)
    assert 0 < inside.sum() < SAMPLE
    assert sorted(ids_on(part)) == sorted(large.row_ids[inside].tolist())
    assert part["layout"]["images"] == []
    assert list(traces(part)) == list(traces(whole))
    assert part["layout"]["xaxis"] == whole["layout"]["xaxis"], "the browser keeps its zoom"


@pytest.mark.slow
def test_the_picture_is_more_opaque_where_more_songs_are(large):
    shown = map_view(large.map).shown()
    (image,) = map_spec(large)["layout"]["images"]
    data = base64.b64decode(image["source"].removeprefix("data:image/png;base64,"))
    assert len(data) < 200_000
    alpha = np.asarray(Image.open(io.BytesIO(data)).convert("RGBA"))[..., 3].astype(int)
    assert alpha.shape == shown.density.shape
    assert alpha[shown.density < 4].max() == 0
    order = np.argsort(shown.density.ravel(), kind="stable")
    assert (np.diff(alpha.ravel()[order]) >= 0).all()
    assert alpha.max() > 80
    assert (image["x"], image["y"]) == (shown.behind.left, shown.behind.top)
    assert image["sizex"] == shown.behind.right - shown.behind.left


def test_a_query_outside_of_the_map_is_in_view(snapshot):
    far = np.array([1_000.0, 0.0], dtype=np.float32)
    spec = map_spec(snapshot, query=far)
    assert spec["layout"]["xaxis"]["range"][1] > 1_000
    assert traces(spec)["your query"]["x"] == [1_000.0]
    assert "your query" not in traces(map_spec(snapshot, query=np.full(2, np.nan, dtype=np.float32)))


def test_songs_without_a_tempo_are_grey_among_those_with_one(tiny_library):
    ids = [song.id for song in tiny_library.songs()]
    beats = {song_id: Descriptors(tempo=100.0 + n) for n, song_id in enumerate(ids[:8])}
    tiny_library.descriptors.save(beats | {song_id: Descriptors() for song_id in ids[8:]})
    drawn = traces(map_spec(take_snapshot(tiny_library), "tempo"))
    assert sorted(unpacked(drawn["unknown"]["customdata"]).tolist()) == ids[8:]
    assert drawn["unknown"]["marker"]["color"] == UNKNOWN_COLOUR
    marker = drawn["tempo"]["marker"]
    found = zip(unpacked(drawn["tempo"]["customdata"]), unpacked(marker["color"]), strict=True)
    assert dict(found) == {song_id: of.tempo for song_id, of in beats.items()}
    assert 100 <= marker["cmin"] < marker["cmax"] <= 107


def test_years_keep_their_colours_in_every_window(large):
    home = map_view(large.map).home
    corner = Window(home.left, home.left + 1, home.bottom, home.bottom + 1)
    whole, part = map_spec(large, "year"), map_spec(large, "year", window=corner)
    scale = [traces(spec)["year"]["marker"][end] for spec in (whole, part) for end in ("cmin", "cmax")]
    years = [song.year for song in large.songs_at() if song.year]
    assert scale == [min(years), max(years)] * 2


@pytest.mark.slow
def test_a_file_stands_among_what_is_like_it_on_a_large_map(large, tmp_path, monkeypatch):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(large.library.folder))
    app = AppTest.from_file(SHELL, default_timeout=60).run().switch_page(PAGES["search"]).run()
    data = write_song(tmp_path / "q.wav", "noise", seed=9).read_bytes()
    app.get("file_uploader")[0].set_value(("q.wav", data, "audio/wav")).run()
    assert not app.exception
    (spec,) = maps(app)
    star = traces(spec)["your query"]
    model_query = read_example(large, data, "q.wav")
    _, rows = large.index.query(model_query.vector[None, :], 10)
    assert (star["x"], star["y"]) == tuple([v] for v in np.median(large.map[rows[0]], axis=0).tolist())
