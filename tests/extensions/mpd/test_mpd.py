"""Tests with a real MPD: it takes queues and playlists, and is kept filled after it was killed."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from queue import Queue

import pytest
import sqlalchemy as sa

from musicsim.errors import ServerError
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.extensions.mpd.client import Mpd, MpdAddress, MpdAwayError, is_mpd_set, mpd_address, save_address
from musicsim.extensions.mpd.keep_filled import QueueFiller
from musicsim.library import Library
from tests.command import run
from tests.extensions.mpd.real_mpd import real_mpd
from tests.waiting import PATIENCE_S, until


@pytest.fixture
def mpd(collection):
    with real_mpd(collection) as running:
        yield running


@pytest.fixture
def connected(mpd, tiny_library):
    with Mpd(tiny_library, MpdAddress(str(mpd.socket))) as connection:
        yield connection


@pytest.fixture
def many(styles_library, tmp_path):
    """Build a library of thirty songs, and an MPD with the same music."""
    shutil.copytree(styles_library, tmp_path / "many")
    with Library.open(tmp_path / "many") as library, real_mpd(styles_library.parent / "music") as running:
        yield library, running


def files_of(entries):
    return [entry["file"] for entry in entries]


def names_of(songs):
    """Return the names of songs of the collection in MPD."""
    return [f"{song.path.parent.name}/{song.path.name}" for song in songs]


def cross_to_next(client, *, is_first):
    """Make the next song current, and pause it in the same command: songs of the tests last only two seconds."""
    client.command_list_ok_begin()
    client.play(0) if is_first else client.next()
    client.pause(1)
    client.command_list_end()


def stay_on_song(running):
    """Repeat the song that is played, because songs of the tests last only two seconds."""
    with running.client() as client:
        client.repeat(1)
        client.single(1)


def test_songs_are_appended_or_replace_queue(mpd, connected, tiny_library):
    songs = tiny_library.songs()
    stay_on_song(mpd)
    assert connected.queue(songs[:3]) == []
    assert connected.queue([songs[5], songs[0], songs[5]], play=True) == []
    with mpd.client() as client:
        assert files_of(client.playlistinfo()) == names_of([*songs[:3], songs[5], songs[0], songs[5]])
        assert (client.status()["state"], client.status()["song"]) == ("play", "3")
        connected.queue(songs[6:8], replace=True)
        assert files_of(client.playlistinfo()) == names_of(songs[6:8])
        assert client.status()["state"] == "stop"


def test_playlist_is_replaced_only_on_request(mpd, connected, tiny_library):
    songs = tiny_library.songs()
    connected.save("Late / night", songs[:4])
    with mpd.client() as client:
        assert list(client.listplaylist("Late night")) == names_of(songs[:4])
        with pytest.raises(ServerError, match="already has a playlist “Late night”"):
            connected.save("Late night", songs[4:6])
        assert len(list(client.listplaylist("Late night"))) == 4
        connected.save("Late night", songs[4:6], replace=True)
        assert list(client.listplaylist("Late night")) == names_of(songs[4:6])
    with pytest.raises(ServerError, match="contains only slashes and spaces"):
        connected.save("/", songs)


def test_unknown_songs_are_named_and_others_queued(tiny_library, collection, tmp_path, monkeypatch):
    music = tmp_path / "elsewhere"
    shutil.copytree(collection, music)
    songs = tiny_library.songs()
    gone = songs[2]
    (music / gone.path.relative_to(collection)).unlink()
    with real_mpd(music) as running, running.client() as client:
        address = MpdAddress(str(running.socket))
        with Mpd(tiny_library, address) as mpd, pytest.raises(ServerError, match="MUSICSIM_MPD_MUSIC"):
            mpd.queue(songs)  # MPD reports another music folder
        assert client.playlistinfo() == []
        monkeypatch.setenv("MUSICSIM_MPD_MUSIC", str(collection))
        with Mpd(tiny_library, address) as mpd:
            assert mpd.queue(songs[:5]) == [gone]
            assert mpd.save("five", songs[:5]) == [gone]
        kept = names_of(song for song in songs[:5] if song != gone)
        assert files_of(client.playlistinfo()) == list(client.listplaylist("five")) == kept


def test_update_in_progress_is_named(tiny_library, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    with real_mpd(tmp_path / "empty") as running, Mpd(tiny_library, MpdAddress(str(running.socket))) as connection:
        assert not connection.is_updating()
        with pytest.raises(ServerError, match="Update MPD's database"):
            connection.queue(tiny_library.songs())
        monkeypatch.setattr(Mpd, "is_updating", lambda _: True)
        with pytest.raises(ServerError, match="MPD is updating its database"):
            connection.queue(tiny_library.songs())


def test_network_connection_maps_library_folders(mpd, tiny_library, monkeypatch):
    monkeypatch.setenv("MPD_HOST", "secret@127.0.0.1")
    monkeypatch.setenv("MPD_PORT", str(mpd.port))
    songs = tiny_library.songs()[:2]
    with Mpd(tiny_library, mpd_address(tiny_library)) as connection:
        assert connection.queue(songs) == []
        names, n_coming = connection.read_queue()
        assert (names, n_coming) == (names_of(songs), 2)
        asked = []
        sa.event.listen(tiny_library.engine, "before_cursor_execute", lambda *args: asked.append(args[2]))
        assert connection.song_ids(["nobody/knows.flac", *names, names[0]]) == [
            None,
            songs[0].id,
            songs[1].id,
            songs[0].id,
        ]
        assert len([said for said in asked if said.startswith("SELECT")]) == 1, (
            "the database is asked once for a whole queue"
        )


def test_unencodable_names_are_unknown(connected, tiny_library):
    song = tiny_library.songs()[0]
    folder = song.path.parents[1]
    assert connected.names_of([folder / "a\nclear\nb.flac", folder / "\udcff.flac", song.path]) == names_of([song])


def test_address_is_parsed_like_mpc(tiny_library, monkeypatch):
    for name in ("MPD_HOST", "MPD_PORT"):
        monkeypatch.delenv(name, raising=False)
    library = tiny_library
    assert (is_mpd_set(library), mpd_address(library)) == (False, MpdAddress("localhost", 6600))
    for host, address in {
        "/run/mpd/socket": MpdAddress("/run/mpd/socket"),
        "@mpd": MpdAddress("@mpd"),
        "player": MpdAddress("player"),
        "pass@word@player": MpdAddress("word@player", 6600, "pass"),
    }.items():
        monkeypatch.setenv("MPD_HOST", host)
        assert (is_mpd_set(library), mpd_address(library)) == (True, address)
    assert "pass" not in f"{mpd_address(library)} {mpd_address(library)!r}"
    monkeypatch.setenv("MPD_PORT", "x")
    with pytest.raises(ServerError, match="MPD_PORT is 'x'"):
        mpd_address(library)


def test_saved_address_is_private_and_environment_overrides(tiny_library, monkeypatch):
    for name in ("MPD_HOST", "MPD_PORT"):
        monkeypatch.delenv(name, raising=False)
    kept = MpdAddress("player", 6601, "secret", "/music")
    save_address(tiny_library, kept)
    file = tiny_library.folder / "mpd.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (is_mpd_set(tiny_library), mpd_address(tiny_library)) == (True, kept)
    monkeypatch.setenv("MPD_HOST", "other")
    assert mpd_address(tiny_library) == MpdAddress("other")
    monkeypatch.delenv("MPD_HOST")
    file.write_text('{"password": "secret", "oops')
    with pytest.raises(ServerError, match="cannot be read") as problem:
        mpd_address(tiny_library)
    assert "secret" not in str(problem.value)
    save_address(tiny_library, None)
    assert (is_mpd_set(tiny_library), mpd_address(tiny_library)) == (False, MpdAddress())


def test_connection_problems_give_clear_errors(mpd, tiny_library, tmp_path):
    with pytest.raises(MpdAwayError, match="does not respond"):
        Mpd(tiny_library, MpdAddress(str(tmp_path / "none"))).__enter__()
    with pytest.raises(ServerError, match="incorrect password") as problem:
        Mpd(tiny_library, MpdAddress("127.0.0.1", mpd.port, "wr0ng")).__enter__()
    assert "wr0ng" not in str(problem.value)


def test_queue_is_filled_without_early_repeats(many):
    library, running = many
    n_apart, n_ahead = 12, 3
    filler = QueueFiller(library, PlaylistRequest(seed=4), n_ahead=n_ahead, n_apart=n_apart)
    with Mpd(library, MpdAddress(str(running.socket))) as mpd, running.client() as client:
        client.consume(1)  # MPD drops songs after playing them
        played = []
        for _ in range(40):
            filler.fill(mpd)
            _, n_coming = mpd.read_queue()
            assert n_coming == n_ahead
            cross_to_next(client, is_first=not played)
            played.append(client.currentsong()["file"])
            assert filler.fill(mpd).unknown == ()
    assert all(name not in played[max(0, i - n_apart) : i] for i, name in enumerate(played))
    assert len(set(played)) > n_apart


def test_queue_continues_from_listener_songs(many):
    library, running = many
    with Mpd(library, MpdAddress(str(running.socket))) as mpd, running.client() as client:
        own = library.songs()[7]
        mpd.queue([own])
        cross_to_next(client, is_first=True)
        filler = QueueFiller(library, PlaylistRequest(spacing=2), n_ahead=6)
        appended = filler.fill(mpd)
        songs = [own, *(song for song, _ in appended.songs)]
        assert len(songs) == 7
        assert all(reason for _, reason in appended.songs)
        assert all(song.artist not in [s.artist for s in songs[max(0, i - 2) : i]] for i, song in enumerate(songs))
        assert filler.fill(mpd).songs == ()


def test_cli_queues_and_saves(mpd, tiny_library, monkeypatch):
    monkeypatch.setenv("MPD_HOST", str(mpd.socket))
    library, songs = tiny_library.folder, tiny_library.songs()
    tiny_library.add_playlists([("Evening", None, [song.id for song in songs[:3]])], source="saved")
    stay_on_song(mpd)
    out, _ = run("mpd", "queue", "--length", 4, "--first", songs[2].id, "--play", library=library)
    assert "4 songs queued in MPD" in out
    run("mpd", "save", "Mine", "--saved", "Evening", library=library)
    _, problem = run("mpd", "save", "Mine", "--saved", "Evening", library=library, expect=1)
    assert "already" in problem
    _, problem = run("mpd", "save", "Mine", "--saved", "Nothing", library=library, expect=1)
    assert "such as “Evening” (1)" in problem
    with mpd.client() as client:
        assert client.currentsong()["file"] == names_of([songs[2]])[0]
        assert list(client.listplaylist("Mine")) == names_of(songs[:3])
    with tiny_library.write() as connection:
        connection.exec_driver_sql("UPDATE files SET missing_since = 1 WHERE song_id = ?", (songs[1].id,))
    out, problem = run("mpd", "queue", "--saved", "Evening", "--replace", "--json", library=library, expect=3)
    said = json.loads(out)
    assert ([s["id"] for s in said["songs"]], [s["id"] for s in said["unknown"]]) == (
        [songs[0].id, songs[2].id],
        [songs[1].id],
    )


@pytest.mark.long
def test_keep_filled_survives_killed_mpd(many):
    library, running = many
    n_apart, n_ahead = 10, 2
    program = subprocess.Popen(
        [sys.executable, "-m", "musicsim", "mpd", "keep-filled", "--json", "--ahead", str(n_ahead), "--apart",
         str(n_apart), "--library", str(library.folder)],
        env=os.environ | {"MPD_HOST": str(running.socket)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    said: Queue[str] = Queue()
    reader = threading.Thread(target=lambda: [said.put(line) for line in program.stderr], daemon=True)
    reader.start()
    played = []

    def cross(n_songs):
        """Play n songs, each after its successors have been added."""
        with running.client() as client:
            for n in range(n_songs):
                until(lambda: n_coming(client) >= n_ahead)
                cross_to_next(client, is_first=n == 0)
                played.append(client.currentsong()["file"])

    def n_coming(client):
        assert program.poll() is None, "the program has ended"
        status = client.status()
        return int(status["playlistlength"]) - 1 - int(status.get("song", -1))

    try:
        cross(10)
        running.kill()
        assert "does not respond" in said.get(timeout=PATIENCE_S)
        running.start()  # with an empty queue, because it was killed before it saved its state
        assert "is back" in said.get(timeout=PATIENCE_S)
        cross(11)
    finally:
        program.send_signal(signal.SIGTERM)
        program.wait(timeout=PATIENCE_S)
    reader.join(timeout=PATIENCE_S)
    assert said.empty(), "it ends without a word"
    assert len(played) == 21
    n_apart -= n_ahead  # songs that the killed MPD had not played count as played
    assert all(name not in played[max(0, i - n_apart) : i] for i, name in enumerate(played))
    appended = [json.loads(line) for line in program.stdout]
    program.stdout.close()
    assert {name.split("/")[-1] for name in played} <= {entry["song"]["path"].split("/")[-1] for entry in appended}
