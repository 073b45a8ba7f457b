"""Tests of exports on the Library page."""

from functools import partial
from urllib.parse import unquote

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit import config

from musicsim.api import routes
from musicsim.explorer import job_process, jobs
from musicsim.extensions.exports.page import NAMES
from musicsim.extensions.exports.request import EXPORTS
from musicsim.extensions.exports.routes import exports_of
from tests.pages.actions import open_page, said


@pytest.mark.long
def test_every_kind_can_be_exported_and_downloaded(full, monkeypatch, request):
    started = []
    monkeypatch.setattr(jobs, "start", lambda library, kind, arguments: started.append((kind, arguments)))
    app = open_page("research", "exports")
    assert not app.exception
    for kind, what in EXPORTS.items():
        app.selectbox(key="export_what").select(kind).run()
        assert tuple(app.selectbox(key="export_as").options) == tuple(map(NAMES.get, what.endings))
        assert what.help in said(app)
        app.button(key="export_start").click().run()
    assert [arguments["what"] for _, arguments in started] == list(EXPORTS)
    app.selectbox(key="export_what").select("tags").run()
    app.selectbox(key="export_as").set_value(".csv").run()
    app.button(key="export_start").click().run()
    kind, arguments = started[-1]
    assert job_process.run(full, full.jobs.create(kind, arguments)) == "done"
    app = open_page("research", "exports")
    assert not app.exception
    (made,) = exports_of(full)
    (link,) = app.get("link_button")
    assert made.suffix == ".csv"
    assert unquote(link.proto.url) == f"/exports/{made.name}?library={full.name}"
    request.addfinalizer(partial(config.set_option, "server.baseUrlPath", ""))
    config.set_option("server.baseUrlPath", "deep/music")
    (link,) = open_page("research", "exports").get("link_button")
    served = Starlette(routes=routes("deep/music"))
    with TestClient(served, base_url="http://localhost") as client:
        assert client.get(link.proto.url).content == made.read_bytes()
