"""Codewords and edges as sound: the pieces against brute force, and the written sound by its own frames."""

import json

import numpy as np
import pytest
import soundfile

from musicsim import audio
from musicsim.errors import AudioDecodeError, NotFoundError
from musicsim.explorer.playlists.edges import build_hypergraph
from musicsim.explorer.playlists.song_labels import load_sources
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.sonification.grains import Grain, find_codeword_grains, find_edge_grains, load_codebook
from musicsim.extensions.sonification.rendering import render_grains
from tests.command import run

SECONDS = 0.25


def distances_to(library, codeword) -> dict[int, np.ndarray]:
    """Return the distance of each frame of each song to a codeword, keyed by song id."""
    _, codebook = load_codebook(library)
    scaled = {
        song.id: (np.concatenate(list(library.frame_files.frames(song.content_hash).blocks())) - codebook.mean_)
        / codebook.scale_
        for song in library.songs()
    }
    return {song: np.linalg.norm(X - codebook.codewords_[codeword], axis=1) for song, X in scaled.items()}


def usual_codewords(library) -> list[int]:
    record, _ = load_codebook(library)
    return np.argsort(-library.models.features(record.id).X.mean(axis=0))[:3].tolist()


def test_codeword_grains_surround_the_nearest_frames(tiny_library):
    codeword = usual_codewords(tiny_library)[0]
    apart = distances_to(tiny_library, codeword)
    grains = find_codeword_grains(tiny_library, codeword, n=4, seconds=SECONDS)
    assert len({grain.song.id for grain in grains}) == 4
    for grain in grains:
        frame = int(apart[grain.song.id].argmin())
        middle_s = frame * audio.HOP / audio.SAMPLE_RATE
        assert grain.start_s == pytest.approx(max(0.0, middle_s - SECONDS / 2))
    nearest = [apart[grain.song.id].min() for grain in grains]
    assert nearest == sorted(nearest)


def test_sound_of_codeword_contains_it_more_often_than_songs_do(tiny_library, tmp_path):
    record, codebook = load_codebook(tiny_library)
    shares = tiny_library.models.features(record.id).X
    for codeword in usual_codewords(tiny_library):
        target = tmp_path / f"{codeword}.wav"
        render_grains(find_codeword_grains(tiny_library, codeword, n=6, seconds=SECONDS), target)
        (written,) = codebook.transform([audio.delta_mfcc(soundfile.read(target)[0])])
        assert written[codeword] > 2 * shares[:, codeword].mean()


def test_edge_grains_are_the_central_songs(tiny_library):
    snapshot = take_snapshot(tiny_library)
    graph = build_hypergraph(snapshot, load_sources(snapshot), own=True)
    place = int(np.argmax([name.startswith("artist:") for name in graph.names]))
    rows = np.flatnonzero(graph.incidence.toarray()[:, place])
    apart = np.linalg.norm(snapshot.X[rows] - snapshot.X[rows].mean(axis=0), axis=1)
    grains = find_edge_grains(snapshot, graph.names[place], n=2, seconds=1.0)
    assert [grain.song.id for grain in grains] == snapshot.row_ids[rows[np.argsort(apart)]][:2].tolist()
    for grain in grains:
        assert grain.song.typical_s <= grain.start_s <= grain.song.duration_s - 1.0


def test_edge_grains_start_with_different_artists(tiny_library):
    grains = find_edge_grains(take_snapshot(tiny_library), "uniform:all", n=4, seconds=1.0)
    assert len({grain.song.artist for grain in grains[:3]}) == 3


def test_pieces_are_equally_loud_and_in_order(tiny_library, tmp_path):
    songs = tiny_library.songs()[:3]
    grains = [Grain(song, 0.5, 0.5) for song in songs]
    assert render_grains(grains, tmp_path / "out.flac") == grains
    written, rate = soundfile.read(tmp_path / "out.flac")
    assert (rate, len(written)) == (audio.SAMPLE_RATE, 3 * round(0.5 * audio.SAMPLE_RATE))
    for part, song in zip(np.split(written, 3), songs, strict=True):
        source = audio.decode(song.path, offset=0.5, duration=0.5).samples
        middle = slice(len(part) // 4, -len(part) // 4)
        assert np.corrcoef(part[middle], source[middle])[0, 1] > 0.999
        assert np.sqrt(np.mean(part[middle] ** 2)) == pytest.approx(0.1, rel=0.3)
        assert abs(part[[0, -1]]).max() < 0.01


def test_unreadable_songs_are_left_out(tiny_library, own_music, tmp_path):
    songs = tiny_library.songs()[:2]
    songs[0].path.unlink()
    grains = [Grain(song, 0.0, 0.5) for song in songs]
    assert render_grains(grains, tmp_path / "out.wav") == grains[1:]
    with pytest.raises(AudioDecodeError, match="none of the 1 songs can be read"):
        render_grains(grains[:1], tmp_path / "none.wav")
    assert not (tmp_path / "none.wav").exists()


def test_unknown_names_are_explained(tiny_library):
    with pytest.raises(NotFoundError, match=r"codeword 9999 does not exist: choose 0 to \d+"):
        find_codeword_grains(tiny_library, 9999, n=1, seconds=1.0)
    with pytest.raises(NotFoundError, match=r"not contain the edge “uniform:al”\. Similar names: “uniform:all”"):
        find_edge_grains(take_snapshot(tiny_library), "uniform:al", n=1, seconds=1.0)


def test_command_writes_the_file_and_lists_the_pieces(tiny_library, tmp_path):
    target = tmp_path / "sound.wav"
    codeword = usual_codewords(tiny_library)[0]
    out, _ = run("sonify", "codeword", codeword, target, "--pieces", 3, "--json", library=tiny_library.folder)
    said = json.loads(out)
    assert soundfile.info(target).duration == pytest.approx(0.75, abs=1e-3)
    assert len(said["pieces"]) == 3
    out, _ = run("sonify", "edge", "uniform:all", target, "--piece-seconds", 1, library=tiny_library.folder)
    assert "uniform:all: 10 pieces written" in " ".join(out.split())
    assert soundfile.info(target).duration == pytest.approx(10, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("codeword", "loud", "a.wav"), "must be the number of a codeword"),
        (("song", "1", "a.wav"), "must be one of codeword, edge"),
        (("edge", "uniform:all", "a.mp3"), "must end in .wav or .flac"),
    ],
)
def test_bad_arguments_write_nothing(tiny_library, tmp_path, arguments, reason):
    *first, name = arguments
    _, err = run("sonify", *first, tmp_path / name, library=tiny_library.folder, expect=2)
    assert reason in " ".join(err.split())
    assert not (tmp_path / name).exists()
