"""Columns of maps: their content, and that a browser gets each of them once."""

import json

import numpy as np
import pytest

from musicsim.explorer.snapshot.map_columns import COLOR_BY
from musicsim.explorer.snapshot.map_encoding import from_unit
from musicsim.explorer.snapshot.snapshot import take_snapshot


def column(client, model: str, name: str) -> tuple[dict, bytes]:
    """Return the header of a column, and its arrays."""
    answer = client.get(f"/maps/{model}/{name}")
    assert answer.status_code == 200
    said, _, arrays = answer.content.partition(b"\n")
    assert (len(said) + 1) % 4 == 0, "arrays begin where browsers can read numbers of four bytes"
    return json.loads(said), arrays


def test_positions_match_map(client, tiny_library):
    now = take_snapshot(tiny_library)
    said, arrays = column(client, now.record.id, "places")
    n = said["n"]
    assert (n, len(arrays)) == (12, 8 * 12)
    ids = np.frombuffer(arrays, "<u4", n)
    x, y = (np.frombuffer(arrays, "<u2", n, offset) / 65_535 for offset in (4 * n, 6 * n))
    true = now.map[now.rows_of(ids.astype(np.int64))]
    step = (true.max(axis=0) - true.min(axis=0)) / 60_000  # of 65,535 for the map and the margin around it
    found = np.column_stack(from_unit(now.map_view.home, x, y))
    assert (np.abs(found - true) <= step).all()
    assert sorted(ids.tolist()) == [song.id for song in tiny_library.songs()]


@pytest.mark.parametrize("by", COLOR_BY)
def test_colors_follow_order_of_positions(client, tiny_library, by):
    now = take_snapshot(tiny_library)
    places, arrays = column(client, now.record.id, "places")
    ids = np.frombuffer(arrays, "<u4", 12).tolist()
    said, codes = column(client, now.record.id, by)
    assert said["order"] == places["order"]
    assert np.bincount(list(codes), minlength=len(said["entries"])).tolist() == [
        entry["n_songs"] for entry in said["entries"]
    ]
    if by in ("genre", "artist"):
        songs = {song.id: song for song in tiny_library.songs()}
        for song_id, code in zip(ids, codes, strict=True):
            assert said["entries"][code]["name"] == getattr(songs[song_id], by)


def test_unchanged_column_returns_304(client, tiny_library):
    model = tiny_library.models.active().id
    first = client.get(f"/maps/{model}/genre")
    tag = first.headers["etag"]
    again = client.get(f"/maps/{model}/genre", headers={"If-None-Match": f'"other", W/{tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    tiny_library.edits.edit([tiny_library.songs()[0].id], {"genre": "Tango"})
    changed = client.get(f"/maps/{model}/genre", headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


def test_columns_are_gzipped_when_client_accepts_it(client, tiny_library):
    address = f"/maps/{tiny_library.models.active().id}/places"
    packed = client.get(address, headers={"Accept-Encoding": "gzip"})
    plain = client.get(address, headers={"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.content == plain.content
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize("path", ["/maps/none/places", "/maps/{model}/none", "/maps/{model}/places?library=../x"])
def test_unknown_column_returns_404_with_reason(client, tiny_library, path):
    answer = client.get(path.format(model=tiny_library.models.active().id))
    assert answer.status_code == 404
    assert answer.json()["error"]


def test_song_label_has_title_and_artist(client, tiny_library):
    song = tiny_library.songs()[3]
    assert client.get(f"/songs/{song.id}/label").json() == {"title": song.title, "by": song.by}
    assert client.get("/songs/999/label").status_code == 404
    assert client.get(f"/songs/{10**30}/label").status_code == 404


def test_contents_follow_order_of_positions(client, tiny_library):
    now = take_snapshot(tiny_library)
    places, _ = column(client, now.record.id, "places")
    said, codes = column(client, now.record.id, "contents")
    assert said["order"] == places["order"]
    sizes = [group["n_songs"] for one in said["regions"] for group in one["groups"]]
    assert np.bincount(np.frombuffer(codes, "<u2"), minlength=len(sizes)).tolist() == sizes
    assert sum(sizes) == 12
