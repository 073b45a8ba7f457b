"""A web server on this machine that stands for the sources of data sets, and empty folders for what is fetched."""

import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

__all__ = ["Source"]


@dataclass
class Source:
    """Answers by path; `cut` are paths whose answers end before their announced length."""

    address: str
    answers: dict[str, bytes] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)

    def serve_openml(self, number: int, arff: bytes, target: str, n_rows: int) -> None:
        """Serve a data set as OpenML does; the columns are numbers, except the target."""
        columns = [line.split() for line in arff.decode().splitlines() if line.startswith("@attribute")]
        file = f"/data/v1/download/{number}/rows.arff"
        about = {
            "id": str(number), "name": "rows", "description": "made up", "version": "1",
            "format": "ARFF", "status": "active", "file_id": str(number),
            "url": f"{self.address}{file}", "md5_checksum": hashlib.md5(arff).hexdigest(),
        }  # fmt: skip
        features = [
            {
                "index": str(index), "name": name, "data_type": "nominal" if name == target else "numeric",
                "is_target": str(name == target).lower(), "is_ignore": "false", "is_row_identifier": "false",
                "number_of_missing_values": "0",
            }
            for index, (_, name, *_) in enumerate(columns)
        ]  # fmt: skip
        qualities = [{"name": "NumberOfInstances", "value": str(n_rows)}]
        answers = {
            f"/api/v1/json/data/{number}": {"data_set_description": about},
            f"/api/v1/json/data/features/{number}": {"data_features": {"feature": features}},
            f"/api/v1/json/data/qualities/{number}": {"data_qualities": {"quality": qualities}},
        }
        self.answers |= {path: json.dumps(answer).encode() for path, answer in answers.items()} | {file: arff}


@pytest.fixture
def source(monkeypatch) -> Iterator[Source]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            body = served.answers.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write((body or b"")[: 3 if self.path in served.cut else None])

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served = Source(f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name, path in (("INFO", ""), ("FEATURES", "features/"), ("QUALITIES", "qualities/")):
            monkeypatch.setattr(
                f"sklearn.datasets._openml._DATA_{name}", f"{served.address}/api/v1/json/data/{path}{{}}"
            )
        yield served
        server.shutdown()


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """Return the empty cache; there is no shared folder and no mirror."""
    monkeypatch.delenv("MUSICSIM_SHARED_DATA", raising=False)
    monkeypatch.delenv("MUSICSIM_DATA_URL", raising=False)
    monkeypatch.setenv("MUSICSIM_DATA_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
