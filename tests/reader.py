"""A reader of the documents: a machine with music, a library and servers, where blocks run as they are printed.

The music is that of MUSICSIM_REAL_MUSIC, a folder of recordings, else composed. Of ten files, seven get the tags that
the documents mention. The others keep their own, which most recordings lack, or get none.
"""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import mutagen

from musicsim.demo import SongPlan, plan_collection, write_listening, write_song
from musicsim.library import Library
from tests.extensions.embeddings.checkpoint_files import write_wheel
from tests.extensions.embeddings.test_musicnn import weights
from tests.extensions.embeddings.text_files import write_audio, write_text, write_tokenizer
from tests.extensions.listenbrainz.test_listenbrainz import TOKEN
from tests.extensions.mpd.real_mpd import real_mpd
from tests.extensions.music_servers.serving import supysonic
from tests.extensions.music_servers.supysonic_process import PASSWORDS
from tests.waiting import PATIENCE_S, until

CHECKOUT = Path(__file__).parents[1]
RECORDINGS = os.environ.get("MUSICSIM_REAL_MUSIC")
_BINARIES = Path(sys.executable).parent
_N_SONGS = 40
_LOOK_S = 20.0  # at a program that runs until Ctrl+C
_BYTES = range(250_000, 1_500_000)  # of a recording: neither a jingle nor ten minutes
_ISOLATED = ("unshare", "--user", "--map-root-user", "--net", "--")
_SESSION = """
import contextlib, io, json, sys, traceback
names = {"__name__": "__main__"}
for line in sys.stdin:
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(json.loads(line), "block", "exec"), names)
        problem = ""
    except BaseException:
        problem = traceback.format_exc()
    print(json.dumps([printed.getvalue(), problem]), flush=True)
"""
_LISTENBRAINZ = """
from http.server import ThreadingHTTPServer
from tests.extensions.listenbrainz.test_listenbrainz import Checking
server = ThreadingHTTPServer(("127.0.0.1", 8900), Checking)
server.taken, server.answer = [], None
server.serve_forever()
"""
_SUBSONIC = "http://localhost:5722/rest/{call}?v=1.12.0&c=player&f=json&u=anna&p=" + quote(PASSWORDS["anna"])
_PLAY = f"""
curl '{_SUBSONIC.format(call="getRandomSongs")}&size=5' | grep --only-matching '"id":"[^"]*"' | cut -d '"' -f 4 > ids
for id in $(cat ids); do curl '{_SUBSONIC.format(call="stream")}&id='$id -o played; done
"""
_PLAYS = """
import numpy as np
from scipy.sparse import random
plays = random(30, 20, density=0.4, random_state=0, format="csr")
artists = np.repeat(np.arange(20), 2)
"""


@dataclass(frozen=True)
class Ended:
    """The end of a block: its output, and its problem or an empty text."""

    printed: str
    problem: str


def plan_songs() -> list[SongPlan]:
    """Return two songs each of twenty artists in four genres, with the names that the documents mention."""
    plans = plan_collection(
        n_artists_per_style=5, n_songs_per_artist=2, styles=("Ambient", "House", "Jazz", "Solo Piano")
    )
    genres = {"House": "Dub", "Solo Piano": "Piano"}
    plans = [replace(plan, genre=genres.get(plan.genre, plan.genre)) for plan in plans]
    named = {
        0: {"title": "Tides"},
        1: {"title": "Ostinato"},
        2: {"artist": "Miles Davis", "album": "Kind of Blue", "year": 1959},
        3: {"artist": "Frédéric Chopin", "album": "Piano", "year": 1965, "title": "Sonata in B minor: I. Allegro"},
        4: {"title": "Nocturne in E-flat", "year": 1974},
        22: {"artist": "Miles Davis", "album": "Kind of Blue", "year": 1959},
        23: {"artist": "Frédéric Chopin", "album": "Piano", "year": 1965, "title": "Sonata in B minor: II. Scherzo"},
    }
    return [replace(plan, **named.get(number, {})) for number, plan in enumerate(plans)]


def write_music(folder: Path) -> None:
    """Write forty songs, of ten, seven with full tags."""
    recordings: list[Path] = []
    if RECORDINGS:
        found = (path for path in sorted(Path(RECORDINGS).rglob("*")) if path.suffix in (".ogg", ".opus", ".mp3"))
        recordings = [path for path in found if path.stat().st_size in _BYTES]
        recordings = sorted(random.Random(0).sample(recordings, _N_SONGS))
        # a genre is music of the same packages, so that there is something to learn; every fourth plan has the same one
        recordings = [recordings[n % 4 * (_N_SONGS // 4) + n // 4] for n in range(_N_SONGS)]
    for n, plan in enumerate(plan_songs()):
        if recordings:
            path = folder / recordings[n].relative_to(RECORDINGS)
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(recordings[n], path)
        else:
            path = write_song(plan, folder)
        audio = mutagen.File(path, easy=True)
        if not is_tagged(n) and not recordings:
            audio.delete()
        if is_tagged(n):
            audio["title"], audio["artist"], audio["album"] = plan.title, plan.artist, plan.album
            audio["albumartist"] = plan.artist
            audio["genre"], audio["date"], audio["tracknumber"] = plan.genre, str(plan.year), str(plan.track)
            audio["musicbrainz_trackid"] = f"12345678-1234-4234-8234-{n:012d}"
            audio.save()
    (folder / "Christmas").mkdir()


def is_tagged(number: int) -> bool:
    """Return whether a planned song has tags: those of eight artists, and the first of each of the others."""
    return number < 28


class Machine:
    """A network of its own, if the system allows that: its ports are free, and nothing else can be reached."""

    def __init__(self, held: ExitStack) -> None:
        self.enter: tuple[str, ...] = ()
        if None in map(shutil.which, ("unshare", "nsenter", "ip")):
            return
        up = ["sh", "-c", "ip link set lo up && echo up && exec sleep infinity"]
        holder = subprocess.Popen([*_ISOLATED, *up], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        held.callback(holder.wait)
        held.callback(holder.kill)
        if holder.stdout.readline() == "up\n":
            self.enter = ("nsenter", "--preserve-credentials", "--user", "--net", "--target", str(holder.pid), "--")


class Reader:
    """A person in a checkout, with the programs of its environment and music in the home folder."""

    def __init__(self, home: Path, enter: Sequence[str], held: ExitStack) -> None:
        self.home, self.checkout = home, home / "musicsim-checkout"
        self.checkout.mkdir(parents=True, exist_ok=True)
        self.library = self.checkout / "data" / "My music"
        self._enter, self._held = enter, held
        self._state, self._python = home / ".exported", None
        self.environment = {
            "BROWSER": "true", "COLUMNS": "160", "HOME": str(home), "LANG": "C.UTF-8", "MUSICSIM_EAR": "0",
            "MUSICSIM_LIBRARY": str(self.library), "MUSICSIM_LISTENBRAINZ_URL": "http://127.0.0.1:8900/",
            "MUSICSIM_NICE": "0", "OMP_NUM_THREADS": "1", "PATH": f"{_BINARIES}:{os.environ['PATH']}",
            "PYTHONPATH": str(CHECKOUT),
        }  # fmt: skip
        if not (self.checkout / ".venv").exists():
            (self.checkout / ".venv").symlink_to(_BINARIES.parent)

    def start(self, *command: str, **more) -> subprocess.Popen:
        """Start a program on this machine."""
        return subprocess.Popen(
            [*self._enter, *command], cwd=self.checkout, env=self.environment, text=True, start_new_session=True, **more
        )

    def run(self, block: str, *, told: str = "", until_interrupted: bool = False) -> Ended:
        """Run a block of commands in a shell; variables that it exports stay for the next one."""
        script = f"[ ! -e {self._state} ] || . {self._state}\ntrap 'export -p > {self._state}' EXIT\n{block}"
        with (self.home / "out").open("w+") as out, (self.home / "err").open("w+") as err:
            shell = self.start(
                *("bash", "-e", "-o", "pipefail", "-c", script), stdin=subprocess.PIPE, stdout=out, stderr=err
            )
            if until_interrupted:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    shell.wait(timeout=_LOOK_S)
                is_running = shell.poll() is None
                if is_running:
                    os.killpg(shell.pid, signal.SIGINT)
                shell.communicate(timeout=PATIENCE_S)
                code = 0 if is_running else 1
            else:
                shell.communicate(told, timeout=PATIENCE_S)
                code = shell.returncode
            printed, warned = (self.home / "out").read_text(), (self.home / "err").read_text()
        is_fine = code == 0 and "Traceback" not in warned
        return Ended(printed, "" if is_fine else f"exit code {code}\n{printed}\n{warned}")

    def run_python(self, block: str) -> Ended:
        """Run a block in the reader's session of Python, which the first one starts."""
        if self._python is None:
            self._python = self.start(
                "python", "-c", _SESSION, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            self._held.callback(self._python.wait)
            self._held.callback(self._python.kill)
        self._python.stdin.write(json.dumps(block) + "\n")
        self._python.stdin.flush()
        return Ended(*json.loads(self._python.stdout.readline()))

    def serve(self, *command: str, answers: str) -> None:
        """Run a server until the end, and wait until it answers at this address."""
        server = self.start(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._held.callback(server.wait)
        self._held.callback(lambda: os.killpg(server.pid, signal.SIGTERM))

        def is_up() -> bool:
            assert server.poll() is None, f"{command} has ended"
            return subprocess.run(
                [*self._enter, "curl", "--silent", "--output", os.devnull, answers], check=False
            ).returncode == 0  # fmt: skip

        until(is_up)


def build_home(home: Path) -> None:
    """Write the music, and analyze it with a command of the README; add plays, playlists and answers."""
    with ExitStack() as held:
        reader = Reader(home, Machine(held).enter, held)
        write_music(home / "Music")
        tagged = [plan for n, plan in enumerate(plan_songs()) if is_tagged(n)]
        write_listening(tagged, reader.checkout / "listening", n_listeners=100, n_playlists=400)
        for command in (
            'musicsim add ~/Music --library "data/My music"',
            "for kind in plays tags playlists; do musicsim import listening/$kind.csv; done",
            "musicsim playlist -n 10 --save Evening",
        ):
            ended = reader.run(command)
            assert not ended.problem, ended.problem
        write_files(reader, tagged)
        with Library.open(reader.library) as library:
            rng, ids = random.Random(0), [song.id for song in library.songs()]
            for _ in range(40):
                library.judgments.add("Anna", "odd", rng.sample(ids, 3), rng.randrange(3), is_random=True)


def write_files(reader: Reader, plans: Sequence[SongPlan]) -> None:
    """Write the files that the documents name."""
    folder, music = reader.checkout, sorted(reader.home.glob("Music/**/*.*"))
    shutil.copy(music[0], folder / "song.mp3")  # musicsim reads the content, not the ending
    shutil.copy(music[1], folder / "some.flac")
    heard = [
        {"endTime": f"2026-01-{day:02d} 20:00", "artistName": plan.artist, "trackName": plan.title, "msPlayed": 60_000}
        for day in range(1, 20) for plan in plans[::3]
    ]  # fmt: skip
    with zipfile.ZipFile(folder / "spotify.zip", "w") as archive:
        archive.writestr("MyData/StreamingHistory0.json", json.dumps(heard))
    with zipfile.ZipFile(folder / "playlists.zip", "w") as archive:
        archive.write(folder / "listening" / "playlists.csv", "playlists.csv")
    write_wheel(folder / "musicnn-0.1.0-py3-none-any.whl", weights())
    write_audio(folder / "audio_model.onnx")
    write_text(folder / "text_model.onnx")
    write_tokenizer(folder / "tokenizer.json")
    (reader.home / ".curlrc").write_text("silent\nshow-error\nfail-with-body\n")
    (reader.home / "musicsim").symlink_to(reader.library)
    beets = reader.home / ".config" / "beets"
    beets.mkdir(parents=True)
    (beets / "config.yaml").write_text(
        "directory: ~/Music\nlibrary: ~/.config/beets/library.db\nimport: {copy: no, write: no, autotag: no}\n"
    )


def copy_home(built: Path, home: Path) -> None:
    """Copy a home folder, with the paths in its library."""
    shutil.copytree(built, home, symlinks=True)
    (home / ".exported").unlink(missing_ok=True)
    link = home / "musicsim"
    link.unlink()
    link.symlink_to(home / "musicsim-checkout" / "data" / "My music")
    with closing(sqlite3.connect(link / "library.sqlite")) as database, database:
        for table, column in (("files", "path"), ("files", "folder"), ("roots", "path")):
            database.execute(f"UPDATE {table} SET {column} = replace({column}, ?, ?)", (str(built), str(home)))


@contextmanager
def reading(page: str, built: Path, home: Path) -> Iterator[Reader]:
    """Prepare what a page takes for granted: its servers, and what its text asks for first."""
    copy_home(built, home)
    with ExitStack() as held:
        machine = Machine(held)
        reader = Reader(home, machine.enter, held)
        connect = "musicsim server add home http://localhost:5722 --user anna --send-password && musicsim server sync"
        if page in ("docs/connect/servers.md", "docs/listen/rules.md"):
            held.enter_context(supysonic(home / "supysonic", home / "Music", port=5722, enter=machine.enter))
        if page == "docs/listen/rules.md":
            ended = reader.run(connect, told=f"{PASSWORDS['anna']}\n")
            assert not ended.problem, ended.problem
        if page == "docs/connect/servers.md":
            ended = reader.run(_PLAY)
            assert not ended.problem, ended.problem
        if page in ("docs/listen/search.md", "docs/connect/http.md"):
            app = ("musicsim", "app", "--no-browser", "--port", "8501")
            reader.serve(*app, answers="http://localhost:8501/_stcore/health")
        if page == "docs/connect/mpd.md":
            held.enter_context(real_mpd(home / "Music", port=6600, enter=machine.enter))
        if page == "docs/connect/beets.md":
            reader.serve("python", "-c", _LISTENBRAINZ, answers="http://localhost:8900/")
            ended = reader.run("beet import --quiet ~/Music")
            assert not ended.problem, ended.problem
        if page == "docs/research/start_here.md":
            reader.run_python(_PLAYS)
        yield reader


ANSWERS = {
    "musicsim server add": f"{PASSWORDS['anna']}\n",
    "musicsim listenbrainz token": f"{TOKEN}\n",
    "beet simtags": "y\n",
    "musicsim tags write": "y\n",
}
"""What the reader types when a block asks."""


def find_answer(block: str) -> str:
    """Return what the reader types during a block."""
    return next((told for start, told in ANSWERS.items() if re.search(f"^{re.escape(start)}", block, re.M)), "")
