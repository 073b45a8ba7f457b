"""The data card and the Croissant metadata describe the exported file."""

import hashlib
import json

import pyarrow.parquet as pq
import pytest
import yaml

from musicsim.errors import LibraryError
from musicsim.extensions.exports.export import export
from musicsim.extensions.exports.request import ExportRequest


@pytest.fixture
def folder(tiny_library, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    export(tiny_library, "vectors", folder / "v.parquet", ExportRequest(card=True, license="cc0-1.0"))
    return folder


def test_card_names_file_license_and_columns(folder):
    _, head, body = (folder / "README.md").read_text().split("---\n", 2)
    facts = yaml.safe_load(head)
    assert facts["license"] == "cc0-1.0"
    assert facts["size_categories"] == ["n<1K"]
    (config,) = facts["configs"]
    assert config["data_files"] == [{"split": "train", "path": "v.parquet"}]
    schema = pq.read_schema(folder / "v.parquet")
    assert [line.split("`")[1] for line in body.splitlines() if line.startswith("| `")] == schema.names


def test_croissant_describes_every_column_of_file(folder):
    metadata = json.loads((folder / "croissant.json").read_text())
    (file,) = metadata["distribution"]
    assert file["sha256"] == hashlib.sha256((folder / file["contentUrl"]).read_bytes()).hexdigest()
    (rows,) = metadata["recordSet"]
    kinds = {field["source"]["extract"]["column"]: field["dataType"] for field in rows["field"]}
    texts = dict.fromkeys(("hash", "path", "title", "artist"), "sc:Text")
    assert kinds == {"id": "sc:Integer", **texts, "vector": "sc:Float"}
    assert [field["name"] for field in rows["field"] if field.get("repeated")] == ["vector"]


def test_card_never_replaces_file(tiny_library, folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(LibraryError, match="exists already"):
        export(tiny_library, "tags", folder / "t.parquet", ExportRequest(card=True))
    with pytest.raises(LibraryError, match="Use that ending"):
        export(tiny_library, "tags", folder / "t.csv", ExportRequest(card=True))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
