"""The app and the rest of the network: it contacts no other machine, and does not open under a foreign name."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.patient import launch, new_context
from tests.browser.serving import serve

APP = Path(__file__).parents[2] / "app.py"
SONG_PAGES = ("", "listen", "playlist")
PAGES = (*SONG_PAGES, "train", "library", "research")


@pytest.fixture(scope="module")
def address(tiny_home) -> Iterator[str]:
    with serve(APP, environment={"MUSICSIM_LIBRARY": str(tiny_home)}) as address:
        yield address


@pytest.fixture(scope="module")
def tiny_home(built_library, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("strangers") / "library"
    shutil.copytree(built_library, folder)
    return folder


@pytest.fixture
def page(chromium):
    context = new_context(chromium)
    yield context.new_page()
    context.close()


def test_pages_contact_no_other_machine(page, address):
    """Page icons and WebSockets are among the recorded requests."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda stream: asked.append(stream.url))
    for name in (*PAGES, *(f"{name}?song=1" for name in SONG_PAGES)):
        page.goto(f"{address}/{name}")
        expect(page.get_by_test_id("stHeading").first).to_be_visible()
        page.wait_for_load_state("networkidle")
    page.goto(f"{address}/api/docs")
    expect(page.get_by_text("/songs/{song_id}/similar")).to_be_visible()
    page.wait_for_load_state("networkidle")
    ours = urlsplit(address).netloc
    places = {urlsplit(url).netloc for url in asked if not url.startswith(("data:", "blob:"))}
    assert places == {ours}
    assert any(url.startswith(f"ws://{ours}/_stcore/stream") for url in asked)
    assert any("swagger-ui-bundle.js" in url for url in asked)


@pytest.fixture
def strange_browser(playwright_driver, chromium_path):
    """A Chromium that resolves a stranger's name to this machine, as after DNS rebinding."""
    rules = "--host-resolver-rules=MAP evil.example 127.0.0.1"
    browser = launch(playwright_driver, chromium_path, rules)
    yield browser
    browser.close()


def test_foreign_host_name_opens_nothing(strange_browser, address):
    port = urlsplit(address).port
    page = new_context(strange_browser).new_page()
    for path in ("/", "/library", "/api/songs", "/songs/1/audio", "/songs/1/cover", "/radio?song=1", "/_stcore/health"):
        answer = page.goto(f"http://evil.example:{port}{path}")
        assert answer.status == 421
        expect(page.get_by_test_id("stApp")).to_have_count(0)
    # and from a script of the stranger's page
    seen = page.evaluate(
        """async port => {
            const status = path => fetch(path).then(answer => answer.status);
            const stream = host => new Promise(done => {
                const socket = new WebSocket(`ws://${host}:${port}/_stcore/stream`, ["streamlit"]);
                socket.onopen = () => done("open");
                socket.onerror = () => done("refused");
            });
            const send = () => fetch(`http://127.0.0.1:${port}/api/similar`, {method: "POST", body: "x"})
                .then(answer => answer.status, () => "refused");
            return [await status("/api/songs"), await stream("evil.example"), await stream("127.0.0.1"), await send()];
        }""",
        port,
    )
    assert seen == [421, "refused", "refused", "refused"]


def test_other_local_server_cannot_control_app(page, address, tmp_path):
    (tmp_path / "app.py").write_text("import streamlit as st\nst.title('Another')\n")
    with serve(tmp_path / "app.py") as beside:
        page.goto(beside)
        opened = page.evaluate(
            """address => new Promise(done => {
                const socket = new WebSocket(`${address.replace("http", "ws")}/_stcore/stream`, ["streamlit"]);
                socket.onopen = () => done(true);
                socket.onerror = () => done(false);
            })""",
            address,
        )
        assert not opened
        with page.expect_response(f"{address}/") as framed:
            page.evaluate("address => { document.body.innerHTML = `<iframe src='${address}'></iframe>` }", address)
        assert framed.value.status == 403
        assert "frame-ancestors 'self'" in framed.value.headers["content-security-policy"]
        expect(page.frame_locator("iframe").get_by_test_id("stApp")).to_have_count(0)
