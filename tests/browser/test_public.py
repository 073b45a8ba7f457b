"""A public demonstration under attack: typed addresses, forged messages and requests; the library is not changed."""

import http.client
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.testing.v1 import AppTest
from websockets.sync.client import ClientConnection, connect

from musicsim.library import Library
from musicsim.ui.base.frame import PAGES as FILES
from musicsim.ui.base.frame import SHELL
from tests.browser.actions import PAGES, send_sound, switch, visit
from tests.intact import content
from tests.sounds import write_song
from tests.test_app_server import Server, running
from tests.waiting import PATIENCE_S, until

SECRET = "the neighbor's secret"
PUT_IN = {"text_input": "string_value", "text_area": "string_value", "button": "trigger_value"}

SECTIONS = {
    "library": ("artists", "genres", "listening", "servers", "cluster", "folders", "settings"),
    "train": ("compare", "models"),
    "research": ("against", "tests", "exports"),
}


@pytest.fixture(scope="module")
def place(built_home, tmp_path_factory) -> Path:
    """A folder with a library, a neighbor, and a file that visitors must not see."""
    place = shutil.copytree(built_home, tmp_path_factory.mktemp("hosted") / "home")
    (place / "secret.m3u").write_text(f"{SECRET}\n")
    with Library.open(place / "library") as library:
        ids = [song.id for song in library.songs()]
        library.add_playlists([("Evening", None, ids[:4])], source="saved")
    return place


@pytest.fixture(scope="module")
def owners_widgets(place) -> dict[str, list[tuple[str, str]]]:
    """Return ids and kinds of all buttons and fields on the owner's pages, by Streamlit's hash of the page."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUSICSIM_LIBRARY", str(shutil.copytree(place, place.parent / "owner") / "library"))
        for name in ("library", "train", "playlist", "research"):
            app = AppTest.from_file(SHELL, default_timeout=PATIENCE_S).run()
            app = app.switch_page(FILES[name])
            app.session_state["playlist_lists"] = True
            widgets = dict.fromkeys(_widgets(app.run()))
            for section in SECTIONS.get(name, ()):
                app.session_state[f"{name}_section"] = section
                widgets |= dict.fromkeys(_widgets(app.run()))
            found[app._page_hash] = list(widgets)  # noqa: SLF001  # AppTest does not publish it
    return found


def _widgets(app: AppTest) -> list[tuple[str, str]]:
    return [(widget.proto.id, kind) for kind in PUT_IN for widget in app.get(kind)]


@pytest.fixture(scope="module")
def hosted(place) -> Iterator[Server]:
    with running(place / "library", "--public", lines=2) as server:
        yield server


@pytest.fixture(scope="module")
def before(place, hosted) -> dict[str, str]:
    """Return the files as the app found them."""
    return content(place)


class Visitor:
    """A client that speaks Streamlit's WebSocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.pages: dict[str, str] = {}
        self.session = ""

    def send(self, message: BackMsg) -> None:
        self._socket.send(message.SerializeToString())

    def run(self, page_hash: str = "", query: str = "", **widgets: tuple[str, object]) -> str:
        """Run a page with values of widgets by their ids; return everything that the server sends until it is done."""
        message = BackMsg()
        client = message.rerun_script
        client.query_string, client.page_script_hash = query, page_hash
        for widget, (field, value) in widgets.items():
            state = client.widget_states.widgets.add(id=widget)
            setattr(state, field, value)
        self.send(message)
        said = []
        while True:
            answer = ForwardMsg.FromString(self._socket.recv(timeout=PATIENCE_S))
            if answer.HasField("new_session"):
                self.session = answer.new_session.initialize.session_id
            if answer.HasField("navigation"):
                self.pages |= {p.url_pathname: p.page_script_hash for p in answer.navigation.app_pages}
            said.append(str(answer))
            if answer.HasField("script_finished"):
                return "\n".join(said)


@contextmanager
def visiting(server: Server) -> Iterator[Visitor]:
    address = f"ws://127.0.0.1:{server.port}/_stcore/stream"
    with connect(
        address, subprotocols=["streamlit"], max_size=None, open_timeout=PATIENCE_S, ping_interval=None
    ) as socket:
        yield Visitor(socket)


def ask(server: Server, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    try:
        connection.request(method, path, body or None, {"Host": f"127.0.0.1:{server.port}", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    finally:
        connection.close()


REFUSED = [
    ("POST", "/api/models?supervision=genre"),
    ("GET", "/api/jobs/1"),
    ("DELETE", "/api/songs/1"),
    ("PUT", "/api/songs/1"),
    ("PATCH", "/api/models"),
    ("GET", "/api/songs?library=single"),
    ("GET", "/api/models?library=../home/single"),
    ("GET", "/api/playlist?library=single"),
    ("GET", "/api/playlist?folder=/"),
    ("GET", "/api/songs/1/similar?folder=/etc"),
    ("GET", "/api/similar?words=slow&no_folder=/"),
    ("GET", "/radio?song=1&library=single"),
    ("GET", "/songs/1/audio?library=single"),
    ("GET", "/songs/1/peaks?library=../home/single"),
    ("GET", "/songs/1/cover?library=empty"),
    ("POST", "/songs/1/audio"),
    ("GET", "/songs/..%2f..%2fsecret.m3u/audio"),
    ("GET", "/maps/x/places?library=single"),
    ("GET", "/uploads/../../secret.m3u"),
    ("GET", "/uploads/0000"),
    ("GET", "/rest/ping.view?apiKey=x"),
    ("POST", "/rest/getSimilarSongs"),
    ("GET", "/api/similar_tracks?item_id=1"),
    ("GET", "/players/x/api/health"),
    ("GET", "/_stcore/metrics"),
    ("PUT", "/_stcore/upload_file/none/1"),
    ("DELETE", "/_stcore/upload_file/none/1"),
    ("POST", "/_stcore/agent/interact"),
    ("GET", "/app/static/../../secret.m3u"),
    ("GET", "/media/..%2f..%2fsecret.m3u"),
]


def test_write_requests_are_refused(hosted, place, before):
    for method, path in REFUSED:
        status, said = ask(hosted, method, path)
        # Streamlit responds to unknown addresses with its empty page
        is_refused = status in (400, 403, 404, 405, 410, 422) or 'id="root"' in said
        assert is_refused, (method, path, status)
        assert SECRET not in said
        assert str(place) not in said
    assert ask(hosted, "GET", "/api/libraries") == (200, '["library"]')
    status, songs = ask(hosted, "GET", "/api/songs")
    assert status == 200
    assert str(place.parent) not in songs
    large = ask(hosted, "POST", "/api/similar", bytes((20 << 20) + 1), **{"Content-Type": "audio/wav"})
    assert large[0] == 413
    assert content(place) == before


def test_forged_messages_change_nothing(hosted, place, before, owners_widgets):
    n_tried = 0
    with visiting(hosted) as visitor:
        visitor.run()
        session = visitor.session
        for page, widgets in owners_widgets.items():
            assert widgets
            for widget, kind in widgets:
                value = True if kind == "button" else str(place / "secret.m3u")
                # the fields that the owner's button needs are filled in the same message
                typed = {other: ("string_value", "single") for other, of in widgets if of != "button"}
                said = visitor.run(page, **(typed | {widget: (PUT_IN[kind], value)}))
                assert SECRET not in said
                assert str(place / "single") not in said
                n_tried += 1
        for query in ("folder=/etc", "library=single", "library=../home/single", "library=/etc", "playlist=999"):
            said = visitor.run(visitor.pages["library"], query)
            assert str(place) not in said
            assert SHELL not in said
        for change in ("clear_cache", "set_run_on_save", "load_git_info", "debug_shutdown_runtime"):
            visitor.send(BackMsg(**{change: True}))
        skills = BackMsg()
        skills.backend_operation_request.session_id = session
        skills.backend_operation_request.install_skills.SetInParent()
        visitor.send(skills)
        assert "script_finished" in visitor.run()
    assert n_tried >= 50
    assert content(place) == before


def test_typed_addresses_reveal_nothing(hosted, place, before, page):
    address = f"http://127.0.0.1:{hosted.port}"
    for name in PAGES:
        if name == "train":
            continue
        visit(page, address, name, "?folder=/etc&library=single")
        expect(page.get_by_text("Not found: the library “single”")).to_be_visible()
        words = page.locator("body").inner_text()
        assert str(place.parent) not in words
        assert "/etc" not in words
        expect(page.get_by_test_id("stSidebarNavLink").filter(has_text="Teach")).to_have_count(0)
    page.goto(f"{address}/train?section=models")
    expect(page.get_by_role("heading", name="Compare", exact=True)).to_be_visible()
    expect(page.get_by_text("Which one does not belong?").first).to_be_visible()
    for path in ("/?library=../single", "/playlist?playlist=9"):
        page.goto(address + path)
        expect(page.get_by_test_id("stHeading").first).to_be_visible()
        assert str(place.parent) not in page.locator("body").inner_text()
    assert content(place) == before


def test_visitor_without_place_can_read_why(place, before, page):
    sentence = "The demonstration is full at the moment."
    with running(place / "library", "--public", lines=2, MUSICSIM_PAGES_PER_ADDRESS="1") as server:
        address = f"http://127.0.0.1:{server.port}"
        with visiting(server) as other:
            other.run()
            answer = page.goto(address)
            assert (answer.status, answer.headers["retry-after"]) == (503, "60")
            expect(page.get_by_text(sentence)).to_be_visible()
        page.reload()
        expect(page.get_by_test_id("stHeading").first).to_be_visible()
        page.goto("about:blank")
        until(lambda: ask(server, "GET", "/")[0] == 200)

        # the last place is taken after the HTML has come
        with ExitStack() as held:
            others: list[Visitor] = []

            def connect_first(route: Route) -> None:
                if not others:
                    others.append(held.enter_context(visiting(server)))
                    others[0].run()
                route.continue_()

            page.route("**/_stcore/host-config", connect_first)
            page.goto(address)
            expect(page.get_by_text(sentence)).to_be_visible()
        expect(page.get_by_test_id("stHeading").first).to_be_visible()
        expect(page.get_by_text(sentence)).to_have_count(0)
    assert content(place) == before


@pytest.mark.story
def test_visitor_searches_with_file_and_plays_results(hosted, place, before, page, tmp_path):
    song = write_song(tmp_path / "mine.flac", "noise", seed=3)
    visit(page, f"http://127.0.0.1:{hosted.port}", "listen")
    send_sound(page, song)
    expect(page.get_by_role("heading", name="mine.flac")).to_be_visible()
    page.get_by_role("button", name="More about this song").click()
    expect(page.get_by_role("button", name="Open as a playlist")).to_be_visible()
    expect(page.get_by_role("button", name="Add to the library")).to_have_count(0)
    page.keyboard.press("Escape")
    page.get_by_test_id("listen").get_by_role("button", name="Play", exact=True).click()
    expect(page.get_by_test_id("player")).to_have_attribute("data-state", "playing")
    switch(page, "playlist")
    page.get_by_role("button", name="Generate").click()
    expect(page.get_by_role("button", name="Export")).to_be_visible()
    expect(page.get_by_role("button", name="Save", exact=True)).to_have_count(0)
    assert content(place) == before
