"""The notebooks are stored without outputs, use only public names, and run."""

import ast
import json
from pathlib import Path

import nbclient
import nbformat
import pytest

from tests.waiting import PATIENCE_S

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def _code(path: Path) -> list[dict]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs(path):
    assert [cell["id"] for cell in _code(path) if cell["outputs"] or cell["execution_count"]] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_use_public_names_only(path):
    source = "\n".join("".join(cell["source"]) for cell in _code(path))
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names |= {*str(node.module).split("."), *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
    assert {name for name in names if name.startswith("_")} == set()


@pytest.mark.long
def test_every_notebook_runs(tmp_path, monkeypatch):
    for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / "jupyter"))
    assert len(NOTEBOOKS) == 4
    # One kernel imports once, and drops its names between notebooks. The next notebook can use the files of the
    # previous ones.
    cells = []
    for path in NOTEBOOKS:
        cells += [nbformat.v4.new_code_cell("%reset -f"), *nbformat.read(path, as_version=4).cells]
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=PATIENCE_S, resources=where).execute()
