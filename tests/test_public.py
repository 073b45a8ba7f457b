"""A public demonstration: what says who may take which action, and what refuses the rest."""

import asyncio
import dataclasses
import hashlib
import importlib
import inspect
import pkgutil
import re
from functools import partial
from pathlib import Path, PurePath
from types import ModuleType

import pytest
import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket
from streamlit.proto.BackMsg_pb2 import BackMsg

import musicsim
from musicsim import public, ui
from musicsim.api import Visitors, http, offered, routes
from musicsim.api.budgets import Budgets
from musicsim.api.visitors import MAX_HELD
from musicsim.errors import AudioError, LibraryError, NotFoundError, OwnerOnlyError, StorageError
from musicsim.explorer import jobs
from musicsim.explorer.libraries import create_library, library_folders, open_library
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.search.uploads import hear
from musicsim.explorer.snapshot.filtering import filter_choices
from musicsim.explorer.snapshot.map_columns import map_column
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from musicsim.library.disk.arrays import RowFile, atomic_folder, atomic_path
from musicsim.library.disk.scratch import scratch_of
from musicsim.library.media.playlist_files import FORMATS
from musicsim.library.stores.all_opinions import opinions_in_memory
from musicsim.public import owner_only, safe_message, visitors_may
from musicsim.ui.app import app_options
from musicsim.ui.base.frame import PAGES
from musicsim.ui.base.page_messages import is_of_a_page
from tests.sounds import write_song

SERVICES = ("musicsim.explorer", "musicsim.servers")
# whoever names one of these may write: such a module says of each of its actions who may take it
WRITES = re.compile(
    r"\b(atomic_path|atomic_folder|private_path|writing_to|rmtree|Popen|write_text|write_bytes|savez?|unlink)\b"
    r"|\.write\(\)|\.(set_setting|note_change|note_refreshed|add_playlists|add_tags|add_plays|exclusive)\("
)


@pytest.fixture
def strangers(tiny_library: Library, monkeypatch: pytest.MonkeyPatch) -> Library:
    """The tiny library as visitors have it."""
    tiny_library.close()
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tiny_library.folder))
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    return open_library()


# --- everything says who may take it --------------------------------------------------------------


def modules() -> list[ModuleType]:
    """Every module of the services."""
    found = []
    for name in SERVICES:
        package = importlib.import_module(name)
        found += [package]
        found += [importlib.import_module(info.name) for info in pkgutil.walk_packages(package.__path__, f"{name}.")]
    return found


def actions(module: ModuleType) -> list[object]:
    """Public functions of a module, and classes that are no mere records."""
    return [
        value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", None) == module.__name__
        and (inspect.isfunction(value) or (inspect.isclass(value) and not is_record(value)))
    ]


def is_record(of: type) -> bool:
    return dataclasses.is_dataclass(of) or issubclass(of, BaseException | tuple)


def speaks_for_all(module: ModuleType) -> bool:
    """Whether a module or its package says that its actions only read."""
    package = importlib.import_module(module.__name__.rpartition(".")[0])
    said = getattr(module, "VISITORS_MAY", None) or getattr(package, "VISITORS_MAY", None)
    return said is True and not WRITES.search(inspect.getsource(module))


def undeclared() -> list[str]:
    return [
        f"{module.__name__}.{action.__name__}"
        for module in modules()
        if not speaks_for_all(module)
        for action in actions(module)
        if visitors_may(action) is None
    ]


def test_every_action_of_the_services_says_whether_visitors_may_take_it():
    assert undeclared() == []


def test_an_action_that_says_nothing_is_found(monkeypatch):
    def export_all() -> None:
        """An action that somebody adds."""

    export_all.__module__ = jobs.__name__
    monkeypatch.setattr(jobs, "export_all", export_all, raising=False)
    assert undeclared() == ["musicsim.explorer.jobs.export_all"]


def our_routes() -> list[Route]:
    """Every route that is not Streamlit's or FastAPI's own."""
    beside = [route for route in app_options()["routes"] if isinstance(route, Route)]
    inside = [route for route in http.router.routes if isinstance(route, Route)]
    assert len(beside) > 10
    assert len(inside) > 6
    return beside + inside


def test_every_route_says_whether_visitors_may_ask_it():
    mounts = [route.app for route in app_options()["routes"] if isinstance(route, Mount)]
    answers = [route.endpoint for route in our_routes()] + mounts
    assert [answer for answer in answers if visitors_may(answer) is None] == []


def test_every_page_says_whether_visitors_may_see_it():
    pages = {name: importlib.import_module(f"{ui.__name__}.{name}.page").draw for name in PAGES}
    assert {name: visitors_may(draw) for name, draw in pages.items()} == {name: name != "train" for name in PAGES}


def test_what_is_for_the_owner_refuses_visitors_whoever_calls_it(monkeypatch):
    found = [action for module in modules() for action in actions(module)]
    found += [route.endpoint for route in our_routes()]
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    refused = [action for action in found if visitors_may(action) is False]
    assert len(refused) > 60
    for action in refused:
        call = partial(action().send, None) if inspect.iscoroutinefunction(action) else action
        with pytest.raises(OwnerOnlyError, match="only its owner"):
            call()


def test_the_owner_does_not_notice(monkeypatch):
    monkeypatch.delenv("MUSICSIM_PUBLIC", raising=False)

    @owner_only
    def double(x: int) -> int:
        return 2 * x

    @owner_only
    class Held:
        def __init__(self, x: int) -> None:
            self.x = x

    assert (double(4), Held(5).x) == (8, 5)
    assert visitors_may(double) is visitors_may(Held) is False


# --- nothing can be written -----------------------------------------------------------------------


def content(folder: Path) -> dict[str, str]:
    """Digests of all files, but for those by which SQLite's readers and writers agree."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not (path.name.endswith("-shm") or (path.name.endswith("-wal") and not path.stat().st_size))
    }


def test_a_library_of_strangers_takes_no_change(strangers):
    before = content(strangers.folder)
    song = strangers.songs()[0]
    for change in (
        lambda: strangers.set_setting("hub_reduction", False),
        lambda: strangers.add_tags([{"song_id": song.id, "tag": "x", "weight": 1.0}]),
        lambda: strangers.add_playlists([("x", None, [song.id])], source="saved"),
        lambda: strangers.set_feedback(song.id, 1),
        lambda: strangers.answers.add("me", "odd", [1, 2, 3], 0),
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


def test_visitors_see_what_the_owner_changes_meanwhile(strangers, monkeypatch):
    songs = strangers.songs()
    before = strangers.revision
    monkeypatch.delenv("MUSICSIM_PUBLIC")
    with Library.open(strangers.folder) as owners:
        owners.edits.edit([songs[0].id], {"title": "Another title"})
    assert strangers.song(songs[0].id).title == "Another title"
    assert strangers.revision > before


def test_files_are_written_in_the_temporary_folder_only(strangers, tmp_path):
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


def test_there_is_one_library_and_none_is_made(strangers):
    assert library_folders() == [strangers.folder]
    (strangers.folder.parent / "other").mkdir()
    (strangers.folder.parent / "other" / musicsim.LIBRARY_FILE).touch()
    assert library_folders() == [strangers.folder]
    with pytest.raises(NotFoundError):
        open_library("other")
    with pytest.raises(OwnerOnlyError):
        create_library("third")
    with pytest.raises(NotFoundError):
        Library.open(strangers.folder.parent / "fourth")
    assert not (strangers.folder.parent / "fourth").exists()


# --- nothing is said of this machine --------------------------------------------------------------


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
def test_words_with_a_path_are_not_shown_to_visitors(words, monkeypatch, caplog):
    assert safe_message(LibraryError(words)) == words
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    assert safe_message(LibraryError(words)) == "This cannot be done now."
    assert "it names a path" in caplog.text
    assert words not in caplog.text


def test_words_without_a_path_are_said(monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    for words in ("library: there is no song 4.", "Take AC/DC and/or 1 / 2 of it: 3.5 MB/s."):
        assert safe_message(LibraryError(words)) == words


def test_folders_are_no_filter_colour_or_choice_of_strangers(strangers):
    now = take_snapshot(strangers)
    assert "folders" not in filter_choices(now).names
    with pytest.raises(NotFoundError):
        map_column(now, "folder")
    with pytest.raises(OwnerOnlyError):
        Walk(now).draw(PlaylistRequest(folders=frozenset({"/"})), 1)
    songs = strangers.songs()
    assert not len(strangers.ids_matching([songs[0].path.parts[1].casefold()]))


@pytest.mark.parametrize("kind", FORMATS)
def test_playlists_name_files_without_their_folders(kind, strangers):
    songs = strangers.songs()
    written = FORMATS[kind]("list", songs, relative_to=None).decode()
    assert songs[0].path.name in written or songs[0].path.name.replace(" ", "%20") in written
    assert str(songs[0].path.parent) not in written
    assert PurePath(songs[0].path).parts[1] not in written


def test_the_interface_answers_what_reads_and_nothing_else(strangers):
    with TestClient(Starlette(routes=offered(routes()))) as client:
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
        song.path.rename(song.path.with_name("gone"))
        try:
            gone = client.get(f"/songs/{song.id}/audio")
        finally:
            song.path.with_name("gone").rename(song.path)
        assert gone.status_code == 410
        assert str(song.path.parent) not in gone.text


# --- limits ---------------------------------------------------------------------------------------


def test_uploads_of_strangers_are_small_and_short(strangers, tmp_path):
    now = take_snapshot(strangers)
    with pytest.raises(AudioError, match="larger than 20 MB"):
        hear(now, bytes((20 << 20) + 1), "large.wav")
    song = write_song(tmp_path / "a.flac").read_bytes()
    decoding = hear(now, song, "a.flac", 600.0)
    assert decoding.limits.seconds == 60.0
    assert decoding.future.result(timeout=120).name == "a.flac"
    with TestClient(Starlette(routes=routes())) as client:
        kind = {"content-type": "application/octet-stream"}
        assert client.post("/api/similar", content=bytes((20 << 20) + 1), headers=kind).status_code == 413


def test_what_a_visitor_says_is_nobody_elses(strangers):
    one, other = opinions_in_memory(), opinions_in_memory()
    one.set_feedback(3, -5)
    number = one.answers.add("visitor", "odd", [1, 2, 3], 2)
    one.judgements.keep(1, {2: 1})
    one.preferences.add("playlists", "a", "b", "same")
    assert one.feedback() == {3: -1}
    assert other.feedback() == {} == strangers.feedback()
    assert [answer.song_ids for answer in one.answers.all()] == [(1, 2, 3)]
    assert [*other.answers.all(), *strangers.answers.all()] == []
    one.answers.forget(number)
    assert not one.answers.count()


def test_an_address_has_its_allowance_and_gets_it_back(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("musicsim.api.budgets.time.monotonic", lambda: now[0])
    budgets = Budgets(60)
    assert [budgets.spend("a", 20) for _ in range(4)] == [0, 0, 0, 20]
    assert budgets.spend("b", 20) == 0
    now[0] = 19.0
    assert budgets.spend("a", 20) == 1
    now[0] = 20.0
    assert budgets.spend("a", 20) == 0
    now[0] = 1000.0
    assert [budgets.spend("a", 30) for _ in range(3)] == [0, 0, 30]


@pytest.fixture
def held() -> dict[str, tuple[int, int]]:
    """How many files each session holds, and how many bytes all do."""
    return {}


@pytest.fixture
def limited(held, monkeypatch):
    monkeypatch.setenv("MUSICSIM_REQUESTS_A_MINUTE", "30")
    answer = Route("/{path:path}", lambda _: PlainTextResponse("yes"), methods=["GET", "PUT", "POST"])

    limits = Visitors(
        Starlette(routes=[answer]), is_of_a_page=lambda _: True, uploads_of=lambda session: held.get(session, (0, 0))
    )
    return lambda address: TestClient(limits, client=(address, 1))


def test_who_asks_too_much_waits_and_others_do_not(limited):
    one, other = limited("192.0.2.1"), limited("192.0.2.2")
    assert [one.get("/").status_code for _ in range(31)] == [200] * 30 + [429]
    assert int(one.get("/").headers["Retry-After"]) >= 1
    assert one.get("/static/js/index.js").status_code == 200
    forged = {"X-Forwarded-For": "198.51.100.7"}
    assert one.get("/", headers=forged).status_code == 429
    assert other.get("/").status_code == 200
    assert limited("::ffff:192.0.2.1").get("/").status_code == 429
    assert limited("2001:db8::1").post("/").status_code == 200
    assert limited("2001:db8::2").post("/").status_code == 429
    assert limited("2001:db8:0:1::2").post("/").status_code == 200


def test_a_session_holds_few_files(limited, held):
    held["a"], held["b"] = (MAX_HELD, 0), (MAX_HELD - 1, 0)
    assert limited("192.0.2.3").put("/_stcore/upload_file/a/1").status_code == 429
    assert limited("192.0.2.4").put("/_stcore/upload_file/b/1").status_code == 200
    held["c"] = (0, 1 << 30)
    assert limited("192.0.2.5").put("/base/_stcore/upload_file/c/1").status_code == 503


def test_files_of_a_full_hall_wait_their_turn():
    at_work, most = 0, 0

    async def receiving(scope, receive, send):
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0.001)
        at_work -= 1
        await PlainTextResponse("received")(scope, receive, send)

    limits = Visitors(receiving, is_of_a_page=lambda _: True, uploads_of=lambda _: (0, 0))

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


def test_memory_is_given_back_once_after_the_last_page_was_closed(monkeypatch):
    monkeypatch.setattr("musicsim.api.visitors._FORGOTTEN_S", 0.01)
    left = []

    async def page(scope, receive, send):
        await asyncio.sleep(scope["open_s"])

    limits = Visitors(page, lambda _: True, lambda _: (0, 0), when_left=lambda: left.append("tidy"))

    async def lecture() -> None:
        pages = [{"type": "websocket", "path": "/", "client": ("192.0.2.1", 1), "open_s": s} for s in (0, 0.03)]
        await asyncio.gather(*(limits(scope, None, None) for scope in pages))
        assert left == []
        await asyncio.sleep(0.05)

    asyncio.run(lecture())
    assert left == ["tidy"]


def test_figures_of_the_server_are_not_for_visitors(limited):
    assert limited("192.0.2.6").get("/_stcore/metrics").status_code == 404


def test_the_temporary_folder_is_one_for_each_library(strangers):
    one, other = (public.working_folder(strangers.folder / name) for name in "ab")
    assert one != other
    assert one.parent == other.parent
    assert not one.is_relative_to(strangers.folder)


def test_messages_that_no_page_sends_are_dropped():
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
        Starlette(routes=[WebSocketRoute("/", echo)]), is_of_a_page=is_of_a_page, uploads_of=lambda _: (0, 0)
    )
    with TestClient(app).websocket_connect("/") as socket:
        for message in (*refused, BackMsg(app_heartbeat=True)):
            socket.send_bytes(message.SerializeToString())
        assert BackMsg.FromString(socket.receive_bytes()).app_heartbeat
