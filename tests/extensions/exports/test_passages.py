"""Exported passages: label tracks for Audacity and tables agree with the songs and with the explanation."""

import io
import zipfile

import pandas as pd
import pytest

from musicsim.explorer.requests.options import OptionError
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.requested import find_requested
from musicsim.explorer.search.why_sides import explain_result
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.exports.export import export
from musicsim.extensions.exports.request import ExportRequest


def read_tracks(path):
    """Read label tracks as Audacity does: start, end and text, separated by tabs."""
    with zipfile.ZipFile(path) as archive:
        return {
            int(name.removesuffix(".txt")): pd.read_csv(
                io.BytesIO(archive.read(name)), sep="\t", names=["start", "end", "label"]
            )
            for name in archive.namelist()
        }


def test_each_song_has_its_typical_part(tiny_library, tmp_path):
    done = export(tiny_library, "passages", tmp_path / "p.zip", ExportRequest())
    tracks = read_tracks(tmp_path / "p.zip")
    songs = {song.id: song for song in tiny_library.songs()}
    assert done.n_rows == len(tracks) == len(songs)
    for song_id, track in tracks.items():
        (row,) = track.itertuples()
        assert row.start == pytest.approx(songs[song_id].typical_s, abs=1e-6)
        assert row.end == pytest.approx(min(row.start + 30, songs[song_id].duration_s), abs=1e-6)


def test_shared_passages_are_those_of_explanation(tiny_library, tmp_path):
    snapshot = take_snapshot(tiny_library)
    song = tiny_library.songs()[0]
    export(tiny_library, "passages", tmp_path / "p.zip", ExportRequest(like=song.id, k=3))
    export(tiny_library, "passages", tmp_path / "p.csv", ExportRequest(like=song.id, k=3))
    tracks, table = read_tracks(tmp_path / "p.zip"), pd.read_csv(tmp_path / "p.csv")
    results = find_requested(snapshot, song.id, SearchRequest(k=3))
    n_passages = 0
    for result in results:
        _, _, why = explain_result(snapshot, song.id, result.song.id)
        for song_id, partner, passages in zip(
            (song.id, result.song.id), (result.song, song), why.passages, strict=True
        ):
            n_passages += len(passages)
            track = tracks[song_id]
            found = track[track.label.str.endswith(f": like {partner.title}")]
            assert sorted(found.start) == pytest.approx(sorted(p.start_s for p in passages), abs=1e-5)
            assert sorted(found.end) == pytest.approx(sorted(p.end_s for p in passages), abs=1e-5)
    assert len(table) == sum(map(len, tracks.values())) == n_passages > 0


def test_passages_of_no_neighbor_are_refused(tiny_library, tmp_path):
    with pytest.raises(OptionError, match="k=0 must be at least 1"):
        export(tiny_library, "passages", tmp_path / "p.zip", ExportRequest(like=tiny_library.songs()[0].id, k=0))
    assert not (tmp_path / "p.zip").exists()
