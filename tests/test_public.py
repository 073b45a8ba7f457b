"""A public demonstration: permissions for actions, and the refusal of all others."""

import asyncio
import inspect
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import product
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
import typer
from PIL import Image
from soundfile import write as write_sound
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket
from streamlit.proto.BackMsg_pb2 import BackMsg

import musicsim
from musicsim import logs, public, search
from musicsim.api import Visitors, filter_routes, http, routes
from musicsim.api.budgets import Budgets
from musicsim.api.streams import MessageDialect
from musicsim.api.visitors import MAX_HELD
from musicsim.cli import program
from musicsim.cli.lazy import LazyCommand
from musicsim.cli.options import take_request
from musicsim.errors import AudioError, LibraryError, NotFoundError, OwnerOnlyError, StorageError
from musicsim.explorer import jobs
from musicsim.explorer.libraries import create_library, library_folders, open_library
from musicsim.explorer.playlists.fit import refit_walks
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.refresh.add_music import bring_up_to_date, build_demo, keep_upload, scan_again
from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.learned_model import learn
from musicsim.explorer.refresh.model_catalogue import add_representation
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.requests.options import options_of
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.requests.training import LearningSettings
from musicsim.explorer.search.uploads import decode_upload
from musicsim.explorer.snapshot import neighbors
from musicsim.explorer.snapshot.filtering import filter_choices
from musicsim.explorer.snapshot.map_encoding import map_column
from musicsim.explorer.snapshot.neighbors import update_index
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from musicsim.library.archive.backups import back_up
from musicsim.library.disk.arrays import RowFile, atomic_folder, atomic_path
from musicsim.library.disk.scratch import scratch_of
from musicsim.library.media.playlist_files import PLAYLIST_FORMATS
from musicsim.library.stores.judgments import opinions_in_memory
from musicsim.progress import no_progress
from musicsim.public import safe_message, visitor_may
from musicsim.ui.app import app_options
from musicsim.ui.base.page_messages import is_of_a_page
from tests.command import run_to_end
from tests.intact import Watch, content
from tests.sounds import write_song
from tests.waiting import PATIENCE_S, settled

SECRET = "the neighbor's secret"
PLACEHOLDER = re.compile(r"{(\w+)(:\w+)?}")


@pytest.fixture
def strangers(tiny_library: Library, monkeypatch: pytest.MonkeyPatch) -> Library:
    """The tiny library as visitors see it."""
    tiny_library.close()
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tiny_library.folder))
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    return open_library()


def test_visitors_get_only_files_in_the_folders_of_the_library(tiny_library, own_music, tmp_path, monkeypatch):
    """A backup from somebody else can name any file."""
    served, stolen, missing, *_ = tiny_library.songs()
    private = tmp_path / "private"
    private.mkdir()
    Image.new("RGB", (40, 40)).save(private / "cover.png")
    for song in (stolen, missing):
        shutil.copyfile(song.path, private / f"{song.id}.flac")
    with closing(sqlite3.connect(tiny_library.folder / "library.sqlite")) as database, database:
        aim = f"{own_music}/../private/{stolen.id}.flac"
        database.execute("UPDATE files SET path = ? WHERE song_id = ?", (aim, stolen.id))
        database.execute("DELETE FROM files WHERE song_id = ?", (missing.id,))
        last = str(private / f"{missing.id}.flac")
        database.execute("UPDATE songs SET last_path = ? WHERE id = ?", (last, missing.id))
    tiny_library.close()
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tiny_library.folder))

    def ask(part, *songs):
        with TestClient(Starlette(routes=routes()), base_url="http://localhost") as client:
            return [client.get(f"/songs/{song.id}/{part}") for song in songs]

    assert [answer.status_code for answer in ask("audio", served, stolen, missing)] == [200, 200, 200]
    assert ask("cover", stolen)[0].headers["content-type"] == "image/jpeg"
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    assert [answer.status_code for answer in ask("audio", served, stolen, missing)] == [200, 410, 410]
    assert ask("cover", stolen)[0].headers["content-type"] == "image/svg+xml"


# --- all requests of visitors --------------------------------------------------------------------


@pytest.fixture
def watch(strangers: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Watch the folder around the library, with a home, while visitors use this process."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "secret.m3u").write_text(f"{SECRET}\n")
    monkeypatch.setenv("HOME", str(home))
    return Watch(tmp_path, monkeypatch)


def paths_of(routes: Iterable[BaseRoute], prefix: str = "") -> set[str]:
    """Return paths of routes, including those of mounted applications."""
    found = set()
    for route in routes:
        path = prefix + getattr(route, "path", "")
        if isinstance(route, Mount):
            inside = [one for router in http.routers() for one in router.routes] if path == "/api" else route.routes
            found |= paths_of(inside, path)
        else:
            found.add(path)
    return found


def ask_every_route(library: Library, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> int:
    """Send requests of all methods to all routes as a visitor; return the number of responses with data."""
    with monkeypatch.context() as owner:
        owner.delenv("MUSICSIM_PUBLIC")
        owner.setattr(logs, "keep_log", lambda _: None)
        paths = paths_of(app_options()["routes"])
    song, model = library.songs()[0], library.models.active()
    fillings = [{"song_id": str(song.id), "model": str(model.id), "column": "genre"}, {}]
    private = [str(watch.folder), str(song.path.parent), SECRET, "Traceback"]
    queries = ["", f"?supervision=genre&name=x&song={song.id}&like={song.id}&words=slow", "?library=other&folder=/"]
    objects = (b'{"place": 0, "grades": [1]}', f'{{"song": {song.id}}}'.encode())
    bodies = [(b"", "text/plain"), *((body, "application/json") for body in objects), (b"x=1", "audio/wav")]
    n_answered = 0
    with TestClient(Starlette(routes=app_options()["routes"]), raise_server_exceptions=False) as client:
        for path, filling, query in product(sorted(paths), fillings, queries):
            address = PLACEHOLDER.sub(lambda name, filling=filling: filling.get(name[1], "1"), path) + query
            for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
                for body, kind in bodies if method in ("POST", "PUT", "PATCH") else bodies[:1]:
                    answer = client.request(method, address, content=body, headers={"content-type": kind})
                    assert answer.status_code < 500, (method, address, answer.text)
                    assert [word for word in private if word in answer.text] == [], (method, address)
                    n_answered += answer.status_code == 200
    watch.check()
    return n_answered


def test_routes_change_nothing_for_visitors(strangers, watch, monkeypatch):
    assert ask_every_route(strangers, watch, monkeypatch) > 40


def write_beside(folder: Path) -> str:
    (folder.parent / "written").write_text("x")
    return "written"


def write_database(folder: Path) -> str:
    with closing(sqlite3.connect(folder / musicsim.LIBRARY_FILE)) as connection, connection:
        connection.execute("UPDATE songs SET title = 'x'")
    return "written"


@pytest.mark.long
@pytest.mark.parametrize(
    ("answer", "noticed"),
    [(write_beside, "written"), (write_database, "/added"), (str, "/added"), (lambda _: SECRET, "/added")],
)
def test_detects_route_that_writes_or_leaks_secrets(answer, noticed, strangers, watch, monkeypatch):
    added = Route("/added", visitor_may(lambda _: PlainTextResponse(answer(strangers.folder))))
    monkeypatch.setattr("musicsim.ui.app.script_routes", lambda _: [added])
    with pytest.raises(AssertionError, match=noticed):
        ask_every_route(strangers, watch, monkeypatch)


@pytest.mark.long
def test_unmarked_route_is_owner_only(strangers, watch, monkeypatch):
    added = Route("/added", lambda _: PlainTextResponse(write_beside(strangers.folder)))
    monkeypatch.setattr("musicsim.ui.app.script_routes", lambda _: [added])
    ask_every_route(strangers, watch, monkeypatch)


def write_file(folder: Path) -> None:
    (folder / "models" / "x").write_text("x")


def connect(_: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()


@pytest.mark.parametrize(
    "action",
    [
        write_file,
        write_database,
        lambda folder: sqlite3.connect(f"{(folder / musicsim.LIBRARY_FILE).as_uri()}?mode=rw", uri=True),
        connect,
        lambda folder: os.open(bytes(folder / "x"), os.O_WRONLY | os.O_CREAT),
        lambda folder: os.replace(folder / "models", folder.parent / "models"),
        lambda folder: os.replace(folder.parent / "x", folder / "models"),
        lambda folder: (folder / musicsim.LIBRARY_FILE).unlink(),
        lambda folder: (folder / "new").mkdir(),
        lambda folder: (folder / "new").symlink_to("/"),
        lambda folder: shutil.rmtree(folder / "models"),
        lambda _: subprocess.run([sys.executable, "-c", ""], check=True),
        lambda _: os.system("true"),
        lambda _: os.execv(sys.executable, [sys.executable, "-c", ""]),
        lambda _: os.posix_spawn(sys.executable, [sys.executable, "-c", ""], {}),
    ],
)
def test_public_process_blocks_writes_and_connections(action, strangers, watch):
    with pytest.raises(OwnerOnlyError, match="only its owner"):
        action(strangers.folder)
    watch.check()


def test_symlinks_do_not_bypass_protection(strangers, tmp_path, monkeypatch):
    monkeypatch.delenv("MUSICSIM_PUBLIC")
    (tmp_path / "link").symlink_to(strangers.folder)
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    with pytest.raises(OwnerOnlyError):
        (tmp_path / "link" / "x").write_text("x")


def test_owner_is_allowed(strangers, monkeypatch):
    monkeypatch.delenv("MUSICSIM_PUBLIC")
    write_file(strangers.folder)
    connect(strangers.folder)
    assert subprocess.run([sys.executable, "-c", ""], check=True).returncode == 0


def test_visitor_answers_can_be_stored_inside_library(strangers, monkeypatch):
    monkeypatch.setenv("MUSICSIM_KEEP_ANSWERS", str(strangers.folder / "models"))
    write_file(strangers.folder)
    with pytest.raises(OwnerOnlyError):
        (strangers.folder / "x").write_text("x")


@pytest.mark.parametrize(
    "action",
    [
        lambda library, _: refresh(library, force=True),
        lambda library, _: bring_up_to_date(library, progress=no_progress),
        lambda library, _: scan_again(library, progress=no_progress),
        lambda library, _: build_demo(library, progress=no_progress),
        lambda library, _: refit_walks(library, no_progress),
        lambda library, _: learn(library, LearningSettings(), "x", None),
        lambda library, _: add_representation(library, RepresentationSettings(), "x", no_progress),
        lambda library, _: keep_upload(library, "a.flac", b"x"),
        lambda library, home: back_up(library, home / "x.backup", no_progress),
        lambda library, _: update_index(library.models.path(library.models.active().id), take_snapshot(library).X),
    ],
)
def test_services_that_write_or_train_are_rejected_early(action, strangers, watch, monkeypatch):
    monkeypatch.setattr(neighbors, "INDEXED_FROM", 5)
    monkeypatch.setattr(search.PartitionIndex, "fit", lambda *_: pytest.fail("was fitted"))
    with pytest.raises(StorageError):
        action(strangers, watch.folder / "home")
    watch.check()


def start_every_job(library: Library) -> None:
    for kind in jobs.job_kinds():
        with pytest.raises(StorageError):
            jobs.start(library, kind, {})


def test_visitors_cannot_start_jobs(strangers, watch):
    assert len(jobs.job_kinds()) >= 10
    start_every_job(strangers)
    assert strangers.jobs.recent() == []
    watch.check()


def test_detects_jobs_started_for_visitors(strangers, monkeypatch):
    monkeypatch.setattr(jobs, "start", lambda library, kind, arguments: 1)
    with pytest.raises(pytest.fail.Exception):
        start_every_job(strangers)


def test_job_process_changes_nothing(strangers, watch, monkeypatch):
    monkeypatch.delenv("MUSICSIM_PUBLIC")
    with Library.open(strangers.folder) as owners:
        numbers = [owners.jobs.create(kind, {}) for kind in jobs.job_kinds()]
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    watch = Watch(watch.folder, monkeypatch)
    for number in numbers:
        assert run_to_end("run-job", strangers.folder, number, library=strangers.folder)[2] != 0
    watch.check()


def commands() -> dict[tuple[str, ...], list[str]]:
    """Return all commands by their names, with a value for each required argument."""

    def leaves(command: Any, *names: str) -> Iterator[tuple[tuple[str, ...], list[str]]]:
        command = command.load() if isinstance(command, LazyCommand) else command
        for name, inner in getattr(command, "commands", {}).items():
            yield from leaves(inner, *names, name)
        if not getattr(command, "commands", {}):
            needed = [p for p in command.params if p.required]
            yield names, [w for p in needed for w in ([] if p.param_type_name == "argument" else [p.opts[0]]) + ["1"]]

    return dict(leaves(typer.main.get_command(program)))


WRITING = {
    "add": ["{music}"], "scan": [], "demo": [], "edit": ["1", "--title", "x"], "forget": ["{music}", "--yes"],
    "import": ["{file}"], "train": [], "models use": ["{model}"], "models rename": ["{model}", "x"],
    "models delete": ["{model}"], "models export": ["{model}", "{new}"], "models add": ["{file}"],
    "models import": ["{file}"], "answers export": ["{new}"], "answers import": ["{file}"],
    "splits import": ["{file}"], "splits delete": ["x"], "settings": ["hub_reduction", "false"],
    "report": ["{new}"], "backup": ["{new}"], "restore": ["{file}"], "run-job": ["{library}", "1"],
}  # fmt: skip
"""Commands of the core that write, with arguments."""


def test_commands_change_nothing_for_visitors(strangers, watch):
    """Commands of extensions get a value for each required argument; if they do not fail, they have only read."""
    places = {
        "music": strangers.songs()[0].path.parent,
        "file": watch.folder / "home" / "secret.m3u",
        "new": watch.folder / "home" / "new.zip",
        "model": strangers.models.active().name,
        "library": strangers.folder,
    }
    for names, needed in commands().items():
        arguments = WRITING.get(" ".join(names))
        if names == ("app",):
            continue  # it does not end
        filled = needed if arguments is None else [argument.format(**places) for argument in arguments]
        code = run_to_end(*names, *filled, library=strangers.folder)[2]
        assert arguments is None or code != 0, names
        watch.check()
    assert {tuple(name.split()) for name in WRITING} <= set(commands())


# --- nothing can be written -----------------------------------------------------------------------


def test_public_library_is_read_only(strangers):
    before = content(strangers.folder)
    song = strangers.songs()[0]
    for change in (
        lambda: strangers.set_setting("hub_reduction", False),
        lambda: strangers.add_tags([{"song_id": song.id, "tag": "x", "weight": 1.0}]),
        lambda: strangers.add_playlists([("x", None, [song.id])], source="saved"),
        lambda: strangers.set_feedback(song.id, 1),
        lambda: strangers.judgments.add("me", "odd", [1, 2, 3], 0),
        lambda: strangers.edits.edit([song.id], {"title": "x"}),
        lambda: strangers.models.delete(strangers.models.active().id),
        lambda: strangers.jobs.create("add", {}),
        strangers.note_change,
        strangers.exclusive().__enter__,
        lambda: strangers.add(song.path),
    ):
        with pytest.raises(LibraryError):
            change()
    with strangers.engine.connect() as connection, pytest.raises(StorageError):
        connection.execute(sa.text("DELETE FROM songs"))
    assert content(strangers.folder) == before
    assert len(strangers) == 12


def test_visitors_see_changes_by_owner(strangers, monkeypatch):
    songs = strangers.songs()
    before = strangers.revision
    monkeypatch.delenv("MUSICSIM_PUBLIC")
    with Library.open(strangers.folder) as owners:
        owners.edits.edit([songs[0].id], {"title": "Another title"})
    assert strangers.song(songs[0].id).title == "Another title"
    assert strangers.revision > before


def test_files_are_written_to_temporary_folder_only(strangers, tmp_path):
    for writing in (
        atomic_path(tmp_path / "a").__enter__,
        atomic_folder(tmp_path / "b").__enter__,
        atomic_path(strangers.folder / "cache" / "c").__enter__,
        lambda: RowFile(tmp_path / "d", 1).append([[1.0]], 0),
    ):
        with pytest.raises(OwnerOnlyError):
            writing()
    with scratch_of(strangers.folder).folder() as scratch:
        with atomic_path(scratch / "e") as path:
            path.write_text("e")
        with pytest.raises(OwnerOnlyError), atomic_path(scratch / "../../../../../f"):
            pass
    assert not (strangers.folder / "scratch").exists()


def test_visitors_cannot_open_or_create_other_libraries(strangers):
    assert library_folders() == [strangers.folder]
    (strangers.folder.parent / "other").mkdir()
    (strangers.folder.parent / "other" / musicsim.LIBRARY_FILE).touch()
    assert library_folders() == [strangers.folder]
    with pytest.raises(NotFoundError):
        open_library("other")
    with pytest.raises(NotFoundError):
        create_library("third")
    with pytest.raises(NotFoundError):
        Library.open(strangers.folder.parent / "fourth")
    assert not (strangers.folder.parent / "fourth").exists()


# --- nothing reveals this machine -----------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "/srv/music/a.flac: cannot be read.",
        "there is no library in “/srv/x”.",
        "C:\\music\\a.flac is damaged.",
        "look into ~/secret.",
        "the file is at file=/etc/passwd.",
    ],
)
def test_messages_with_path_are_hidden_from_visitors(words, monkeypatch, caplog):
    assert safe_message(LibraryError(words)) == words
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    assert safe_message(LibraryError(words)) == "This cannot be done now."
    assert "it contains a path" in caplog.text
    assert words not in caplog.text


def test_messages_without_path_are_shown(monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    for words in ("library: there is no song 4.", "Take AC/DC and/or 1 / 2 of it: 3.5 MB/s."):
        assert safe_message(LibraryError(words)) == words


def test_folders_are_hidden_from_visitors(strangers):
    now = take_snapshot(strangers)
    assert "folders" not in filter_choices(now).names
    with pytest.raises(NotFoundError):
        map_column(now, "folder")
    with pytest.raises(OwnerOnlyError):
        Walk(now).generate(PlaylistRequest(folders=frozenset({"/"})), 1)
    songs = strangers.songs()
    assert not len(strangers.ids_matching([songs[0].path.parts[1].casefold()]))


@pytest.mark.parametrize("kind", PLAYLIST_FORMATS)
def test_playlists_contain_file_names_without_folders(kind, strangers):
    songs = strangers.songs()
    written = PLAYLIST_FORMATS[kind]("list", songs, relative_to=None).decode()
    assert songs[0].path.name in written or songs[0].path.name.replace(" ", "%20") in written
    assert str(songs[0].path.parent) not in written
    assert PurePath(songs[0].path).parts[1] not in written


def test_api_allows_read_requests_only(own_music, strangers):
    with TestClient(Starlette(routes=filter_routes(routes()))) as client:
        song = strangers.songs()[0]
        for path in ("/api/libraries", "/api/songs", f"/api/songs/{song.id}/similar", "/api/playlist", "/api/models"):
            answer = client.get(path)
            assert answer.status_code == 200, path
            assert str(strangers.folder.parent) not in answer.text
        assert "settings" not in client.get("/api/models").json()[0]
        for method, path in (
            ("POST", "/api/models?supervision=genre"),
            ("GET", "/api/jobs/1"),
            ("GET", "/rest/ping.view"),
            ("GET", "/api/similar_tracks?item_id=1"),
            ("GET", "/players/x/api/health"),
            ("GET", "/api/songs?library=other"),
            ("GET", f"/songs/{song.id}/audio?library=other"),
            ("GET", "/maps/x/folder"),
        ):
            assert client.request(method, path).status_code in (403, 404, 405), path
        assert client.get("/api/playlist?folder=/").status_code == 403
        song.path.unlink()
        gone = client.get(f"/songs/{song.id}/audio")
        assert gone.status_code == 410
        assert str(song.path.parent) not in gone.text


# --- limits ---------------------------------------------------------------------------------------


def test_limits_of_visitors_do_not_apply_to_commands(strangers):
    @take_request(PlaylistRequest)
    def ask(request: PlaylistRequest) -> None: ...

    assert options_of(PlaylistRequest)["length"].limits[1] == 100
    assert inspect.signature(ask).parameters["length"].default.max == 500


def test_visitor_uploads_are_limited(strangers, tmp_path):
    now = take_snapshot(strangers)
    with pytest.raises(AudioError, match="larger than 20 MB"):
        decode_upload(now, bytes((20 << 20) + 1), "large.wav")
    song = write_song(tmp_path / "a.flac").read_bytes()
    decoding = decode_upload(now, song, "a.flac", 600.0)
    assert decoding.limits.seconds == 60.0
    assert decoding.future.result(timeout=PATIENCE_S).duration_s > 0
    write_sound(tmp_path / "b.flac", np.zeros(90 * 8000, np.int16), 8000)
    long = decode_upload(now, tmp_path / "b.flac", "b.flac")
    assert long.future.result(timeout=PATIENCE_S).duration_s == 90
    assert long.is_long
    assert not decoding.is_long
    with TestClient(Starlette(routes=routes())) as client:
        kind = {"content-type": "application/octet-stream"}
        assert client.post("/api/similar", content=bytes((20 << 20) + 1), headers=kind).status_code == 413


def test_visitor_answers_and_thumbs_are_private(strangers):
    one, other = opinions_in_memory(), opinions_in_memory()
    one.set_feedback(3, -5)
    number = one.judgments.add("visitor", "odd", [1, 2, 3], 2)
    one.judgments.rate_results(1, {2: 1})
    one.judgments.add("", "playlists", (), None, options=["a", "b"])
    assert one.feedback() == {3: -1}
    assert other.feedback() == {} == strangers.feedback()
    assert [answer.song_ids for answer in one.judgments.answers()] == [(1, 2, 3)]
    assert [*other.judgments.answers(), *strangers.judgments.answers()] == []
    one.judgments.forget(number)
    assert not one.judgments.count()


def test_rate_limit_per_address_recovers(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("musicsim.api.budgets.time.monotonic", lambda: now[0])
    budgets = Budgets(60)
    assert [budgets.get("a").spend(20) for _ in range(4)] == [0, 0, 0, 20]
    assert budgets.get("b").spend(20) == 0
    now[0] = 19.0
    assert budgets.get("a").spend(20) == 1
    now[0] = 20.0
    assert budgets.get("a").spend(20) == 0
    now[0] = 1000.0
    assert [budgets.get("a").spend(30) for _ in range(3)] == [0, 0, 30]


@pytest.fixture
def held() -> dict[str, tuple[int, int]]:
    """The number of files of each session, and the bytes of all sessions."""
    return {}


@pytest.fixture
def limited(held, monkeypatch):
    monkeypatch.setenv("MUSICSIM_REQUESTS_A_MINUTE", "30")
    monkeypatch.setattr("musicsim.api.budgets.time", SimpleNamespace(monotonic=lambda: 0.0))  # budgets are not refilled
    answer = Route("/{path:path}", lambda _: PlainTextResponse("yes"), methods=["GET", "PUT", "POST"])

    limits = Visitors(
        Starlette(routes=[answer]), MessageDialect(lambda _: True), uploads_of=lambda session: held.get(session, (0, 0))
    )
    return lambda address: TestClient(limits, client=(address, 1))


def test_rate_limit_does_not_affect_other_visitors(limited):
    one, other = limited("192.0.2.1"), limited("192.0.2.2")
    assert [one.get("/").status_code for _ in range(31)] == [200] * 30 + [429]
    assert int(one.get("/").headers["Retry-After"]) >= 1
    for script in ("/static/js/index.js", "/scripts/0123/ui/assets/map.js"):
        assert one.get(script).status_code == 200
    forged = {"X-Forwarded-For": "198.51.100.7"}
    assert one.get("/", headers=forged).status_code == 429
    assert other.get("/").status_code == 200
    assert limited("::ffff:192.0.2.1").get("/").status_code == 429
    assert limited("2001:db8::1").post("/").status_code == 200
    assert limited("2001:db8::2").post("/").status_code == 429
    assert limited("2001:db8:0:1::2").post("/").status_code == 200


def test_session_file_count_is_limited(limited, held):
    held["a"], held["b"] = (MAX_HELD, 0), (MAX_HELD - 1, 0)
    assert limited("192.0.2.3").put("/_stcore/upload_file/a/1").status_code == 429
    assert limited("192.0.2.4").put("/_stcore/upload_file/b/1").status_code == 200
    held["c"] = (0, 1 << 30)
    assert limited("192.0.2.5").put("/base/_stcore/upload_file/c/1").status_code == 503


def test_concurrent_uploads_are_queued():
    at_work, most = 0, 0

    async def receiving(scope, receive, send):
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await settled()  # all who may come have come
        at_work -= 1
        await PlainTextResponse("received")(scope, receive, send)

    limits = Visitors(receiving, MessageDialect(lambda _: True), uploads_of=lambda _: (0, 0))

    async def put(number: int) -> int:
        sent = []

        async def send(message):
            sent.append(message)

        async def receive():
            return {"type": "http.request"}

        path, client = f"/_stcore/upload_file/{number}/1", (f"192.0.2.{number}", 1)
        await limits({"type": "http", "method": "PUT", "path": path, "client": client}, receive, send)
        return sent[0]["status"]

    async def hall() -> list[int]:
        return await asyncio.gather(*(put(number) for number in range(50)))

    assert asyncio.run(hall()) == [200] * 50
    assert most == 8


def test_memory_is_freed_after_last_page_closes(monkeypatch):
    monkeypatch.setattr("musicsim.api.visitors.FORGOTTEN_S", 0.01)
    left = []

    async def page(scope, receive, send):
        await scope["closed"].wait()

    async def lecture() -> None:
        tidied = asyncio.Event()

        def tidy() -> None:
            left.append("tidy")
            tidied.set()

        limits = Visitors(page, MessageDialect(lambda _: True), lambda _: (0, 0), when_left=tidy)
        closed = [asyncio.Event(), asyncio.Event()]
        first, second = (
            asyncio.create_task(
                limits({"type": "websocket", "path": "/", "client": ("192.0.2.1", 1), "closed": event}, None, None)
            )
            for event in closed
        )
        await settled()
        closed[0].set()
        await first
        await asyncio.sleep(0.05)
        assert left == [], "the second page is open"
        closed[1].set()
        await second
        await asyncio.wait_for(tidied.wait(), PATIENCE_S)

    asyncio.run(lecture())
    assert left == ["tidy"]


def test_server_metrics_are_hidden_from_visitors(limited):
    assert limited("192.0.2.6").get("/_stcore/metrics").status_code == 404


def test_each_library_has_one_temporary_folder(strangers):
    one, other = (public.working_folder(strangers.folder / name) for name in "ab")
    assert one != other
    assert one.parent == other.parent
    assert not one.is_relative_to(strangers.folder)


def test_forged_messages_are_dropped():
    refused = [BackMsg(**{name: True}) for name in ("clear_cache", "set_run_on_save", "load_git_info")]
    skills, table = BackMsg(), BackMsg(stop_script=True)
    skills.backend_operation_request.install_skills.SetInParent()
    table.backend_operation_request.dataframe_chunk.SetInParent()
    assert not any(is_of_a_page(message.SerializeToString()) for message in [*refused, skills])
    assert not is_of_a_page(b"\xff\xff")
    assert is_of_a_page(table.SerializeToString())
    assert is_of_a_page(BackMsg(app_heartbeat=True).SerializeToString())

    async def echo(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_bytes(await socket.receive_bytes())

    app = Visitors(
        Starlette(routes=[WebSocketRoute("/", echo)]), MessageDialect(is_of_a_page), uploads_of=lambda _: (0, 0)
    )
    with TestClient(app).websocket_connect("/") as socket:
        for message in (*refused, BackMsg(app_heartbeat=True)):
            socket.send_bytes(message.SerializeToString())
        assert BackMsg.FromString(socket.receive_bytes()).app_heartbeat
