"""Scripts of components: their addresses, and what Streamlit sends of them."""

import hashlib
import re
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim.api import filter_routes
from musicsim.ui.base import frame
from musicsim.ui.base.scripts import loader, script_routes


def address_in(text: str) -> str:
    (address,) = re.findall(r'new URL\("(.+?)"', text)
    return address


def test_browsers_keep_scripts_and_visitors_may_load_them(monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    with TestClient(Starlette(routes=filter_routes(script_routes("/base")))) as client:
        address = f"/base/{address_in(loader('web/map/map.js'))}"
        script = client.get(address)
        assert script.headers["Content-Type"].startswith("text/javascript")
        assert "immutable" in script.headers["Cache-Control"]
        assert client.get(address.replace("map.js", "map.css")).status_code == 200
        assert client.get(f"{address}/../../../pyproject.toml").status_code == 404


def test_streamlit_sends_only_an_address():
    assert len(loader("web/map/map.js")) < 400


def test_unknown_script_is_refused():
    with pytest.raises(ValueError, match=r"no script web/nowhere\.js"):
        loader("web/nowhere.js")


def test_vendored_script_matches_documented_hash():
    folder = Path(frame.__file__).parents[2] / "web" / "map" / "vendor"
    (script,) = folder.glob("*.min.js")
    assert hashlib.sha256(script.read_bytes()).hexdigest() in (folder / "README.md").read_text(encoding="utf-8")
