"""The gate of `musicsim app --host`: every request needs the token, except health checks and players with their own."""

import re
import stat

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse

from musicsim.api import TokenGate, checks_token, load_token, token_gate
from musicsim.errors import AddressError
from musicsim.extensions.player_engine.routes import players_routes

TOKEN = "right-token-of-some-length"
PATHS = ("/", "/library", "/api/songs", "/songs/1/audio", "/_stcore/metrics", "/nowhere", "/rest/", "/players/x")


async def _socket(websocket) -> None:
    await websocket.accept()
    await websocket.close()


@pytest.fixture
def client():
    @checks_token
    def of_player(request):
        return PlainTextResponse("player")

    def page(request):
        return PlainTextResponse("page")

    routes = [
        Route("/rest/{method}", of_player),
        Route("/_stcore/health", page),
        WebSocketRoute("/_stcore/stream", _socket),
        Route("/{path:path}", page, methods=["GET", "POST"]),
    ]
    app = Starlette(routes=routes, middleware=[Middleware(TokenGate, token=TOKEN, routes=routes)])
    return TestClient(app, base_url="http://192.168.1.5:8501", follow_redirects=False)


def enter(client, address="/", **options):
    return client.get(address, params={"token": TOKEN}, **options)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
def test_nothing_is_answered_without_the_token(client, path, method):
    response = client.request(method, path)
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"


def test_sockets_need_the_cookie(client):
    with pytest.raises(WebSocketDenialResponse) as refused:
        client.websocket_connect("/_stcore/stream").__enter__()
    assert refused.value.status_code == 401
    with client.websocket_connect("/_stcore/stream", headers={"Cookie": f"{token_gate.COOKIE}={TOKEN}"}):
        pass


def test_address_with_token_sets_strict_cookie_and_moves_on_without_it(client):
    response = enter(client, "/library", headers={"Accept": "text/html"})
    assert response.status_code == 200
    assert re.search(r'content="0;url=/library"', response.text)
    assert TOKEN not in response.text
    cookie = response.headers["Set-Cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "secure" not in cookie
    assert client.get("/library").text == "page"


def test_other_parameters_stay(client):
    response = client.get("/playlist", params={"song": "a&b", "token": TOKEN, "library": "x"})
    assert 'url=/playlist?song=a%26b&amp;library=x"' in response.text


@pytest.mark.parametrize("path", ["//evil.example/", "/%2F/evil.example", "/\\evil.example", "///evil.example"])
def test_moves_on_to_own_pages_only(client, path):
    response = client.get(f"http://192.168.1.5:8501{path}", params={"token": TOKEN})
    found = re.search('url=([^"]*)"', response.text)
    assert found is None or re.match(r"/(?![/\\])", found[1]), response.text


def test_cookie_of_encrypted_pages_is_secure():
    client = TestClient(Starlette(middleware=[Middleware(TokenGate, token=TOKEN)]), base_url="https://music.example")
    assert "secure" in enter(client).headers["Set-Cookie"].lower()


@pytest.mark.parametrize("cookie", ["", "wrong", TOKEN[:-1], TOKEN + "x", "ü", "a b;;=="])
def test_other_cookies_are_refused(client, cookie):
    assert client.get("/", headers={"Cookie": f"{token_gate.COOKIE}={cookie}".encode()}).status_code == 401


def test_programs_send_the_token_in_a_header(client):
    assert client.get("/api/songs", headers={"Authorization": f"Bearer {TOKEN}"}).text == "page"
    assert client.get("/api/songs", headers={"Authorization": f"Basic {TOKEN}"}).status_code == 401
    assert client.get("/api/songs", headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_health_and_players_with_their_own_tokens_pass(client):
    assert client.get("/_stcore/health").text == "page"
    assert client.get("/rest/ping").text == "player"


def test_players_are_asked_for_their_own_token(monkeypatch, tmp_path):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tmp_path / "library"))
    routes = [*players_routes(), Route("/{path:path}", PlainTextResponse("page"))]
    client = TestClient(Starlette(routes=routes, middleware=[Middleware(TokenGate, token=TOKEN, routes=routes)]))
    for path in ("/rest/ping", "/api/similar_tracks", "/api/find_path", "/players/x/api/health"):
        assert "access for players is off" in client.get(path).json()["error"]
    assert client.get("/api/songs").status_code == 401


def test_guesses_are_limited(client, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(token_gate.time, "monotonic", lambda: now)
    statuses = [client.get("/", params={"token": f"guess {n}"}).status_code for n in range(12)]
    assert statuses == [401] * 10 + [429] * 2
    assert enter(client).status_code == 429, "right or wrong, until a minute has passed"
    now += 61
    assert enter(client).status_code == 200
    for n in range(20):
        client.get("/", params={"token": f"guess {n}"})
    assert client.get("/").text == "page", "who is in stays in"


def test_browsers_get_a_form_and_programs_a_sentence(client):
    page = client.get("/", headers={"Accept": "text/html,*/*"})
    assert page.status_code == 401
    assert '<input name="token" type="password" aria-label="Token"' in page.text
    assert "<" not in client.get("/").text


def test_token_is_kept_in_a_private_file(tmp_path, monkeypatch):
    monkeypatch.delenv("MUSICSIM_TOKEN", raising=False)
    file = tmp_path / "musicsim" / "token"
    token = load_token(file=file)
    assert len(token) >= 24
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert load_token(file=file) == token
    other = load_token(new=True, file=file)
    assert other != token
    assert load_token(file=file) == other


def test_token_of_the_environment_comes_first(tmp_path, monkeypatch):
    monkeypatch.setenv("MUSICSIM_TOKEN", TOKEN)
    assert load_token(file=tmp_path / "token") == TOKEN
    monkeypatch.setenv("MUSICSIM_TOKEN", "short")
    with pytest.raises(AddressError, match="MUSICSIM_TOKEN has 5 characters: use at least 16"):
        load_token(file=tmp_path / "token")
