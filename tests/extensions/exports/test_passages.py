"""Exported passages: labels for Audacity, regions for Sonic Visualiser, and tables agree with the explanation."""

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
from musicsim.extensions.exports.passages import ExportedPassage, write_label_tracks
from musicsim.extensions.exports.request import ExportRequest


def read_tracks(path):
    """Read label tracks as Audacity does: start, end and text, separated by tabs. The regions have the same content."""
    columns = ["start", "end", "label"]
    with zipfile.ZipFile(path) as archive:
        tracks = {
            int(name.removesuffix(".txt")): pd.read_csv(io.BytesIO(archive.read(name)), sep="\t", names=columns)
            for name in archive.namelist()
            if name.endswith(".txt")
        }
        assert len(archive.namelist()) == 2 * len(tracks)
        for song_id, track in tracks.items():
            regions = pd.read_csv(io.BytesIO(archive.read(f"{song_id}.csv")))
            assert list(regions.columns) == ["TIME", "ENDTIME", "LABEL"]
            pd.testing.assert_frame_equal(regions.set_axis(columns, axis=1), track)
    return tracks


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
    expected = {}
    for result in results:
        _, _, why = explain_result(snapshot, song.id, result.song.id)
        for song_id, partner, passages in zip(
            (song.id, result.song.id), (result.song, song), why.passages, strict=True
        ):
            of_pair = table[(table.id == song_id) & table.label.str.endswith(f": like {partner.title}")]
            assert sorted(of_pair.start_s) == pytest.approx(sorted(p.start_s for p in passages), abs=1e-5)
            assert sorted(of_pair.end_s) == pytest.approx(sorted(p.end_s for p in passages), abs=1e-5)
            for p in passages:
                expected.setdefault((song_id, p.start_s, p.end_s, why.shared[p.slot]), []).append(partner.title)
    assert len(table) == sum(map(len, expected.values())) > 0
    labels = [(song_id, *row) for song_id in sorted(tracks) for row in tracks[song_id].itertuples(index=False)]
    assert len(labels) == len(expected)
    for (song_id, start, end, label), (key, titles) in zip(labels, sorted(expected.items()), strict=True):
        assert (song_id, start, end) == pytest.approx(key[:3], abs=1e-5)
        assert label == f"{key[3]}: like {', '.join(sorted(titles))}"


def test_label_names_three_songs_and_counts_the_others(tmp_path):
    passages = [ExportedPassage(1, 0.5, 2.0, "dark", title) for title in ("A", 'B "x"', "C", "D", "E")]
    assert write_label_tracks(tmp_path / "p.zip", [*passages, ExportedPassage(1, 0.5, 2.5, "dark", "A")]) == 1
    track = read_tracks(tmp_path / "p.zip")[1]
    assert track.label.tolist() == ['dark: like A, B "x", C and 2 more', "dark: like A"]


def test_passages_of_no_neighbor_are_refused(tiny_library, tmp_path):
    with pytest.raises(OptionError, match="k=0 must be at least 1"):
        export(tiny_library, "passages", tmp_path / "p.zip", ExportRequest(like=tiny_library.songs()[0].id, k=0))
    assert not (tmp_path / "p.zip").exists()
