"""The notebooks use only public names, and a run gives the outputs that are stored in them."""

import ast
import os

import nbformat
import pytest

from docs.notebooks import FOLDER, NOTEBOOKS, REAL, execute
from tests.printed import assert_same


def code_of(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def text_of(cell: nbformat.NotebookNode) -> str:
    """Return what a cell prints and shows, as text; figures are not compared."""
    parts = [output.get("text") or output["data"]["text/plain"] for output in cell.outputs if not is_figure(output)]
    return "".join(parts)


def is_figure(output: nbformat.NotebookNode) -> bool:
    return output.output_type == "display_data"


def test_all_notebooks_are_listed():
    assert {*NOTEBOOKS, REAL} == set(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", [*NOTEBOOKS, REAL], ids=lambda path: path.stem)
def test_notebooks_are_stored_with_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    outputs = [output for cell in code_of(notebook) for output in cell.outputs]
    assert [cell.execution_count for cell in code_of(notebook)] == list(range(1, len(code_of(notebook)) + 1))
    assert {output.output_type for output in outputs} <= {"stream", "execute_result", "display_data"}
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
    assert any("text/html" in output.get("data", ()) or is_figure(output) for output in outputs), "a table or a figure"
    assert all("image/png" in output.data for output in outputs if is_figure(output)), "run python -m docs.notebooks"
    assert path.stat().st_size < 250_000


@pytest.mark.parametrize("path", [*NOTEBOOKS, REAL], ids=lambda path: path.stem)
def test_notebooks_use_public_names_only(path):
    source = "\n".join(cell.source for cell in code_of(nbformat.read(path, as_version=4)))
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names |= {*str(node.module).split("."), *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
    assert {name for name in names if name.startswith("_")} == set()


def test_other_words_and_distant_numbers_are_found():
    assert_same("MLR 2.5 after 27 cuts: 0.991234", "MLR  2.4 after 28 cuts: 0.991238")
    for other in ("MLR 2.1 after 28 cuts: 0.991238", "GMML 2.5 after 28 cuts: 0.991238", "MLR 2.5 after 28 cuts: 0.95"):
        with pytest.raises(AssertionError):
            assert_same("MLR 2.5 after 28 cuts: 0.991238", other)


@pytest.fixture
def own_jupyter(tmp_path, monkeypatch):
    for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / "jupyter"))


@pytest.mark.long
@pytest.mark.skipif("MUSIC" not in os.environ, reason="no music: set MUSIC to a folder with one folder per album")
def test_real_recordings_are_analyzed_and_compared(own_jupyter, tmp_path):
    (executed,) = execute([REAL], tmp_path)
    assert "MLR from plain" in text_of(code_of(executed)[2])


@pytest.mark.long
def test_every_notebook_prints_what_is_stored(own_jupyter, tmp_path):
    for path, executed in zip(NOTEBOOKS, execute(NOTEBOOKS, tmp_path), strict=True):
        for stored, cell in zip(code_of(nbformat.read(path, as_version=4)), code_of(executed), strict=True):
            assert_same(text_of(cell), text_of(stored))
            assert sum(map(is_figure, cell.outputs)) == sum(map(is_figure, stored.outputs))
