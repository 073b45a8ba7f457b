"""The guard of requests: table of hosts, of origins, and of both together."""

import asyncio

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse

from musicsim.api import Guard, read_allowed_hosts
from musicsim.errors import AddressError

NAMED = ("music.example", "10.0.0.7")
OURS = [
    "localhost",
    "localhost:8501",
    "LocalHost.:8501",
    "app.localhost:80",
    "127.0.0.1:8501",
    "127.8.9.1",
    "[::1]:8501",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]:8501",
    "music.example",
    "Music.Example.:443",
    "10.0.0.7:8501",
    "192.168.1.5:8501",
]
FOREIGN = [
    "evil.example",
    "evil.example:8501",
    "127.0.0.1.evil.example",
    "localhost.evil.example:8501",
    "notlocalhost",
    "music.example.evil.example",
    "www.music.example",
    "0.0.0.0:8501",
    "[::]:8501",
    "127.1",
    "2130706433",
    "10.0.0.8",
    "[fd00::1]",
]
MALFORMED = [
    "",
    " ",
    "localhost:",
    "localhost:x",
    "localhost:99999",
    "localhost:8501:1",
    "evil.example@localhost",
    "localhost/evil",
    "localhost evil",
    "localhost,evil.example",
    "::1",
    "[::1",
    "[::g]",
    "[]",
    "localhost..",
    "löcalhost",
]


async def _answer(request):
    return PlainTextResponse("the app")


async def _stream(websocket):
    await websocket.accept()
    await websocket.send_text(websocket.headers["host"])
    await websocket.close()


@pytest.fixture
def app():
    """An app that listens on 192.168.1.5, behind the guard."""
    guarded = Starlette(
        routes=[
            Route("/", _answer, methods=["GET", "POST", "PUT", "DELETE", "OPTIONS"]),
            WebSocketRoute("/stream", _stream),
        ],
        middleware=[Middleware(Guard, names=NAMED)],
    )

    async def arriving(scope, receive, send):
        if scope["type"] != "lifespan":
            scope["server"] = ("192.168.1.5", 8501)
        await guarded(scope, receive, send)

    return arriving


@pytest.fixture
def client(app):
    return TestClient(app, client=("127.0.0.1", 50000))


def _connect(client, **headers):
    """Return the status of a WebSocket's handshake, and the host that the app behind saw."""
    try:
        with client.websocket_connect("/stream", headers=headers) as stream:
            return 101, stream.receive_text()
    except WebSocketDenialResponse as refused:
        return refused.status_code, refused.text


@pytest.mark.parametrize("host", OURS)
def test_own_hosts_are_allowed(client, host):
    assert client.get("/", headers={"Host": host}).text == "the app"
    assert _connect(client, host=host)[0] == 101


@pytest.mark.parametrize("host", FOREIGN)
def test_other_hosts_get_421(client, host):
    answer = client.get("/", headers={"Host": host})
    assert answer.status_code == 421
    assert "--allow-host" in answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    origin = f"http://{host}"
    assert client.post("/", headers={"Host": host, "Origin": origin}).status_code == 421
    assert client.get("/nowhere", headers={"Host": host}).status_code == 421
    assert _connect(client, host=host)[0] == 421
    assert _connect(client, host=host, origin=origin)[0] == 421


@pytest.mark.parametrize("host", MALFORMED)
def test_malformed_hosts_are_bad_requests(client, host):
    header = host.encode("latin-1")
    assert client.get("/", headers=[("Host", header)]).status_code == 400


def _raw(app, headers, kind="http"):
    """Return the status of a request with exactly these headers."""
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request"}

    scope = {
        "type": kind, "method": "GET", "path": "/", "raw_path": b"/", "query_string": b"", "scheme": "http",
        "headers": headers, "client": ("127.0.0.1", 1), "http_version": "1.1", "root_path": "",
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"]


def test_requires_exactly_one_host(app):
    assert _raw(app, [(b"host", b"localhost")]) == 200
    assert _raw(app, []) == 400
    assert _raw(app, [(b"host", b"localhost"), (b"host", b"localhost")]) == 400
    assert _raw(app, [(b"host", b"localhost"), (b"host", b"evil.example")]) == 400


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:8501", "http://localhost:8501"),
        ("localhost", "http://localhost"),
        ("localhost", "http://localhost:80"),
        ("127.0.0.1:8501", "http://127.0.0.1:8501"),
        ("[::1]:8501", "http://[::1]:8501"),
        ("192.168.1.5:8501", "http://192.168.1.5:8501"),
        ("music.example", "https://music.example"),
        ("music.example:8501", "http://music.example:8501"),
        ("music.example", "https://music.example:8443"),
        ("127.0.0.1:8501", "https://music.example"),
    ],
)
def test_own_origins_are_allowed(client, host, origin):
    for method in ("GET", "POST", "PUT", "DELETE"):
        assert client.request(method, "/", headers={"Host": host, "Origin": origin}).status_code == 200
    status, seen = _connect(client, host=host, origin=origin)
    assert status == 101
    assert f"http://{seen}" == origin.replace("https", "http")  # Streamlit needs them to be equal


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:8501", "http://localhost:8502"),
        ("localhost:8501", "http://localhost"),
        ("localhost:8501", "https://localhost:8501"),
        ("localhost:8501", "http://127.0.0.1:8501"),
        ("localhost:8501", "http://evil.example"),
        ("localhost:8501", "http://evil.example:8501"),
        ("localhost:8501", "http://localhost.evil.example:8501"),
        ("localhost:8501", "http://evil.example@localhost:8501"),
        ("localhost:8501", "http://music.example.evil.example"),
        ("localhost:8501", "null"),
        ("localhost:8501", ""),
        ("localhost:8501", "localhost:8501"),
        ("localhost:8501", "file://"),
        ("localhost:8501", "chrome-extension://localhost:8501"),
        ("192.168.1.5:8501", "http://192.168.1.6:8501"),
        ("192.168.1.5:8501", "http://192.168.1.5:8502"),
        ("music.example", "https://evil.example"),
    ],
)
def test_foreign_origins_are_refused(client, host, origin):
    for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS"):
        answer = client.request(method, "/", headers={"Host": host, "Origin": origin})
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers
    assert _connect(client, host=host, origin=origin)[0] == 403


def test_rejects_repeated_origin(app):
    own = (b"origin", b"http://localhost")
    assert _raw(app, [(b"host", b"localhost"), own]) == 200
    assert _raw(app, [(b"host", b"localhost"), own, own]) == 403


def test_stream_without_origin_only_from_local_machine(app):
    status = {
        peer: _connect(TestClient(app, client=(peer, 50000)), host="192.168.1.5:8501")[0]
        for peer in ("127.0.0.1", "::1", "::ffff:127.0.0.1", "192.168.1.9", "fd00::9", "testclient")
    }
    assert status == {
        "127.0.0.1": 101, "::1": 101, "::ffff:127.0.0.1": 101,
        "192.168.1.9": 403, "fd00::9": 403, "testclient": 403,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("site", "mode", "dest", "status"),
    [
        ("none", "navigate", "document", 200),
        ("same-origin", "no-cors", "audio", 200),
        ("cross-site", "navigate", "document", 200),
        ("cross-site", "no-cors", "audio", 403),
        ("cross-site", "no-cors", "script", 403),
        ("cross-site", "navigate", "iframe", 403),
        ("same-site", "navigate", "iframe", 403),
        ("same-site", "no-cors", "image", 403),
    ],
)
def test_other_sites_may_only_link_to_app(client, site, mode, dest, status):
    headers = {"Host": "localhost", "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
    assert client.get("/", headers=headers).status_code == status


def test_allowed_hosts_come_from_environment(monkeypatch):
    monkeypatch.setenv("MUSICSIM_ALLOWED_HOSTS", " Music.example., 10.0.0.7,,[fd00::1],fd00:0::2 ")
    assert read_allowed_hosts() == {"music.example", "10.0.0.7", "fd00::1", "fd00::2"}
    monkeypatch.delenv("MUSICSIM_ALLOWED_HOSTS")
    assert read_allowed_hosts() == set()


@pytest.mark.parametrize("name", ["https://music.example", "music.example:443", "*", "*.example", "a b", "-x/"])
def test_invalid_allowed_host_gives_clear_error(monkeypatch, name):
    monkeypatch.setenv("MUSICSIM_ALLOWED_HOSTS", f"music.example,{name}")
    with pytest.raises(AddressError, match="not a host name or address"):
        read_allowed_hosts()


def test_form_from_another_site_is_refused(client):
    """A browser that sends no Origin marks the form of another site as navigation to a document."""
    headers = {"Host": "localhost", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    for site in ("cross-site", "same-site"):
        headers["Sec-Fetch-Site"] = site
        assert client.get("/", headers=headers).status_code == 200
        assert client.head("/", headers=headers).status_code == 200
        for method in ("POST", "PUT", "DELETE"):
            assert client.request(method, "/", headers=headers).status_code == 403


SENT = {
    "content-security-policy": "frame-ancestors 'self'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
}


def test_every_response_has_security_headers(client):
    for host, path, status in (("localhost", "/", 200), ("localhost", "/no", 404), ("a.example", "/", 421)):
        answer = client.get(path, headers={"Host": host})
        assert answer.status_code == status
        assert {name: answer.headers.get(name) for name in SENT} == SENT
    with pytest.raises(WebSocketDenialResponse) as refused:
        client.websocket_connect("/stream", headers={"Host": "a.example"}).__enter__()
    assert {name: refused.value.headers.get(name) for name in SENT} == SENT


def test_stricter_policy_of_response_is_kept():
    strict = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Referrer-Policy": "no-referrer"}
    routes = [
        Route("/strict", lambda _: PlainTextResponse("", headers=strict)),
        Route("/", lambda _: PlainTextResponse("", headers={"Content-Security-Policy": "default-src 'self';"})),
    ]
    with TestClient(Starlette(routes=routes, middleware=[Middleware(Guard)]), "http://localhost") as client:
        kept = client.get("/strict").headers
        assert {name: kept[name] for name in strict} == strict
        assert kept["X-Content-Type-Options"] == "nosniff"
        joined = client.get("/").headers["Content-Security-Policy"]
        assert joined == "default-src 'self'; frame-ancestors 'self'"
