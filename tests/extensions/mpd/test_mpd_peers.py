"""Tests with peers that are not MPD or send false data: a sentence, with bounded memory and time."""

import contextlib
import socketserver
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from musicsim.errors import ServerError
from musicsim.extensions.mpd import client as module
from musicsim.extensions.mpd import keep_filled
from musicsim.extensions.mpd.client import Mpd, MpdAddress
from tests.command import run
from tests.waiting import PATIENCE_S

HELLO = b"OK MPD 0.24.0\n"


class _Peer(socketserver.StreamRequestHandler):
    """Respond with `server.answers`: bytes or functions by command, and for all others the key None."""

    def handle(self):
        with contextlib.suppress(OSError):
            self.wfile.write(self.server.hello)
            while line := self.rfile.readline():
                command = line.split()[0].decode()
                self.server.asked.append(line)
                if self.server.in_list(command):
                    continue
                answer = self.server.answers.get(command, self.server.answers.get(None, b"OK\n"))
                if answer is None:
                    return
                if callable(answer):
                    answer(self.wfile)
                else:
                    self.wfile.write(answer)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads, block_on_close = True, False
    is_list = False

    def in_list(self, command):
        if command == "command_list_ok_begin":
            self.is_list = True
        elif command == "command_list_end":
            self.is_list = False
        return self.is_list


@pytest.fixture
def peer():
    """Start a peer with a greeting and responses to commands, and return its address."""
    started = []

    def start(answers, hello=HELLO):
        server = _Server(("127.0.0.1", 0), _Peer)
        server.answers, server.hello, server.asked = answers, hello, []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        started.append((server, thread))
        return MpdAddress("127.0.0.1", server.server_address[1])

    yield start
    for server, thread in started:
        server.shutdown()
        thread.join()
        server.server_close()


def endless(data):
    def send(stream):
        while True:
            stream.write(data)

    return send


def drip(stream):
    while True:
        stream.write(b"x")
        time.sleep(0.05)


KNOWN = {"config": b"ACK [4@0] {config} no\n"}
FALSE = {
    "no newline": {"lsinfo": endless(b"file: " + b"x" * 65536)},
    "endless lines": {"lsinfo": endless(b"file: x\n" * 4096)},
    "binary": {"lsinfo": bytes(range(256)) * 16 + b"\nOK\n"},
    "no pair": {"lsinfo": b"nonsense\nOK\n"},
    "unknown ACK": {"lsinfo": b"ACK [999@0] {lsinfo} hm\n"},
    "huge ACK": {"lsinfo": b"ACK [" + b"9" * 6000 + b"@0] {lsinfo} hm\n"},
    "ACK of nothing": {"lsinfo": b"ACK \x1b[31m[[[\n"},
    "closed": {"lsinfo": None},
    "closed in the middle": {"lsinfo": lambda stream: (stream.write(b"file: a"), stream.flush(), stream.close())},
    "other songs": {"lsinfo": b"file: ../../etc/passwd\nfile: /etc/passwd\nOK\n"},
    "no config": {"config": b"music_directory: \0\nmusic_directory: ..\nOK\n"},
    "config of binary": {"config": b"\xff\xfe\nOK\n"},
    "drip": {"lsinfo": drip},
}


@pytest.mark.long
@pytest.mark.parametrize("case", FALSE)
def test_false_responses_give_clear_error(peer, tiny_library, monkeypatch, case):
    monkeypatch.setattr(module, "MAX_ANSWER_S", 3.0 if case == "drip" else PATIENCE_S)
    address = peer(KNOWN | FALSE[case])
    with pytest.raises(ServerError) as refused, Mpd(tiny_library, address) as mpd:
        mpd.queue(tiny_library.songs()[:2])
    said = str(refused.value)
    assert str(address) in said
    assert len(said) < 500
    assert "\n" not in said


@pytest.mark.long
@pytest.mark.parametrize("hello", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff" * 1000 + b"\n", b"x" * (1 << 20)])
def test_non_mpd_server_gives_clear_error(peer, tiny_library, hello, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT_S", 1.0)
    with pytest.raises(ServerError, match="Is MPD running at this address"), Mpd(tiny_library, peer({}, hello)):
        pass


STATUS = {
    "huge length": b"playlistlength: " + b"9" * 5000 + b"\nsong: 0\nOK\n",
    "no number": b"playlistlength: many\nsong: first\nOK\n",
    "nothing": b"OK\n",
    "twice": b"playlistlength: 1\nplaylistlength: 2\nsong: 1\nsong: 2\nOK\n",
}


@pytest.mark.long
@pytest.mark.parametrize("case", STATUS)
def test_false_queue_counts_give_clear_error(peer, tiny_library, case):
    listed = "".join(f"file: {song.path.parent.name}/{song.path.name}\n" for song in tiny_library.songs())
    address = peer(KNOWN | {"status": STATUS[case], "lsinfo": f"{listed}OK\n".encode()})
    with pytest.raises(ServerError, match="invalid response"), Mpd(tiny_library, address) as mpd:
        mpd.queue(tiny_library.songs()[:2])


@pytest.mark.long
@pytest.mark.parametrize(
    ("song", "n_coming"), [(b"-7", 2), (b"-1", 2), (b"0", 1), (b"1", 0), (b"2", 0), (b"9" * 30, 0)]
)
def test_position_outside_queue_requests_no_songs(peer, tiny_library, song, n_coming):
    queue = b"file: ../x.flac\nfile: /etc/passwd\nOK\n"
    address = peer(KNOWN | {"status": b"song: " + song + b"\nOK\n", "playlistinfo": queue})
    with Mpd(tiny_library, address) as mpd:
        names, n = mpd.read_queue()
        assert n == n_coming
        assert mpd.song_ids(names) == [None, None]


@pytest.mark.long
@pytest.mark.parametrize("entries", [b"file: a\nfile: b\nPos: x\nOK\n", b"Pos: 0\nOK\n", b"Title: a\nTitle: b\nOK\n"])
def test_entries_without_file_do_not_crash(peer, tiny_library, entries):
    address = peer(KNOWN | {"status": b"song: 0\nOK\n", "playlistinfo": entries, "listplaylists": entries})
    with contextlib.suppress(ServerError), Mpd(tiny_library, address) as mpd:
        assert all(isinstance(name, str) for name in mpd.read_queue()[0])
    with pytest.raises(ServerError), Mpd(tiny_library, address) as mpd:
        mpd.save("mine", tiny_library.songs()[:1])


@pytest.mark.long
def test_constant_changes_do_not_cause_busy_loop(peer, tiny_library, monkeypatch):
    pauses = []
    monkeypatch.setattr(keep_filled, "time", SimpleNamespace(sleep=pauses.append))

    class ThreeRounds:
        n_rounds = 0

        def fill(self, _mpd):
            self.n_rounds += 1
            if self.n_rounds > 3:
                raise KeyboardInterrupt
            return keep_filled.Appended(())

    address = peer({"idle": b"changed: playlist\nOK\n"})
    with pytest.raises(KeyboardInterrupt):
        next(keep_filled.keep_filled(ThreeRounds(), tiny_library, address, print))
    assert len(pauses) == 3
    assert min(pauses) >= 0.1


@pytest.mark.long
def test_command_fails_with_clear_error(peer, tiny_library, monkeypatch):
    address = peer(KNOWN | FALSE["huge ACK"])
    monkeypatch.setenv("MPD_HOST", address.host)
    monkeypatch.setenv("MPD_PORT", str(address.port))
    _, err = run("mpd", "queue", library=tiny_library.folder, expect=1)
    assert "invalid response" in err
    assert "Traceback" not in err


_PEAK = """
import resource, sys
from musicsim.errors import MusicsimError
from musicsim.library import Library
from musicsim.extensions.mpd.client import Mpd, MpdAddress
with Library.open(sys.argv[1]) as library:
    songs = library.songs()[:1]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with Mpd(library, MpdAddress("127.0.0.1", int(sys.argv[2]))) as mpd:
            mpd.queue(songs)
    except MusicsimError as error:
        print(error, file=sys.stderr)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before >> 10)
"""


@pytest.mark.long
@pytest.mark.parametrize("case", ["no newline", "endless lines"])
def test_endless_response_takes_little_memory(peer, tiny_library, case):
    address = peer(KNOWN | FALSE[case])
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, tiny_library.folder, str(address.port)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "more than" in done.stderr
    assert int(done.stdout) < 400
