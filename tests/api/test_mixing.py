"""Mixing over HTTP: transitions between decoded loops with known beats, and the order of songs."""

import pytest
import soundfile

from musicsim.api import mixing
from musicsim.explorer import order_for_mixing
from musicsim.explorer.mixing.song_ends import EndsOfSongs
from musicsim.library.processes.decoding import Decoder
from tests.extensions.mixtape.loops import LEFT, RATE, loop


@pytest.fixture
def decoder(monkeypatch):
    decoder = Decoder(1)
    monkeypatch.setattr(mixing, "_ends", EndsOfSongs(decoder, max_kept=2))
    yield decoder
    decoder.close()


@pytest.fixture
def loops(tiny_library, tmp_path):
    """Replace the first songs of the library by loops; return their ids and tempos."""
    tempos = (120.0, 126.0, 150.0)
    songs = tiny_library.songs()[: len(tempos)]
    for i, (song, tempo) in enumerate(zip(songs, tempos, strict=True)):
        path = tmp_path / f"{i}.flac"
        soundfile.write(path, loop(tempo, 20, channel=LEFT, seed=i), RATE)
        with tiny_library.write() as connection:
            connection.exec_driver_sql("UPDATE files SET path = ? WHERE song_id = ?", (str(path), song.id))
            connection.exec_driver_sql("UPDATE songs SET tempo = ? WHERE id = ?", (tempo, song.id))
    return [song.id for song in songs]


def ask(client, song, other):
    return client.get(f"/api/songs/{song}/transition", params={"next_id": other})


def test_transition_is_on_the_beats_of_both_files(client, loops, decoder):
    first, second, third = loops
    plan = ask(client, first, second).json()
    assert plan["reason"] == ""
    assert plan["tempos"] == pytest.approx([120, 126], rel=2e-3)
    assert plan["rates"] == pytest.approx([1.05, 1], abs=2e-3)
    for at_s, tempo in ((plan["leave_s"], 120), (plan["enter_s"], 126)):
        beats = (at_s - 0.3) * tempo / 60
        assert -0.01 < (beats - round(beats)) * 60 / tempo < 0.03
    assert "150 beats/min are too different" in ask(client, second, third).json()["reason"]
    assert ask(client, first, second).json() == plan  # its first song was dropped, and is decoded again


def test_file_that_cannot_be_decoded_has_a_reason(client, tiny_library, loops, decoder):
    first, second, third = loops
    tiny_library.song(second).path.write_bytes(b"RIFF")
    tiny_library.song(third).path.unlink()
    for other in (second, third):
        answer = ask(client, first, other)
        assert answer.status_code == 200
        assert answer.json()["reason"] == "a file is missing or cannot be decoded"


@pytest.mark.parametrize(("song", "other"), [(999, 1), (1, 999)])
def test_unknown_song_is_not_found(client, song, other):
    assert ask(client, song, other).status_code == 404


def test_order_keeps_first_song_and_leaves_out_unknown_ids(client, tiny_library):
    ids = [5, 2, 999, 9, 7, 1]
    found = client.post("/api/songs/order", json={"songs": ids}).json()["songs"]
    expected = order_for_mixing([tiny_library.song(i) for i in ids if i != 999])
    assert found == [song.id for song in expected]
    assert found[0] == 5
