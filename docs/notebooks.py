"""Execute the notebooks and store their outputs: ``python -m docs.notebooks``; figures become PNG images.

Code hosts show stored outputs, but run no script, so the figures of Plotly are drawn by Chromium.
"""

import base64
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import nbclient
import nbformat
from playwright.sync_api import Browser, sync_playwright
from plotly.io import from_json

from tests.browser.chromium import FLAGS, find

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
# A notebook can use the files of the previous ones.
NAMES = ("table_3_2", "from_a_folder_to_a_playlist", "bring_your_embedding", "learn_a_metric")
NOTEBOOKS = tuple(FOLDER / f"{name}.ipynb" for name in NAMES)
REAL = FOLDER / "real_recordings.ipynb"
"""Needs a folder of music, named by the environment variable MUSIC."""
TIMEOUT_S = 900
# One worker enters songs in their order, so that ids and random walks are the same again.
_START = "import os\n\nos.cpu_count = lambda: 1"
_PLOTLY = "application/vnd.plotly.v1+json"
_KEPT = ("text/plain", "text/html", "image/png")
_SIZE = {"width": 900, "height": 420}


def execute(paths: Sequence[Path], folder: Path) -> list[nbformat.NotebookNode]:
    """Run notebooks in a folder and return them with their outputs.

    One kernel imports once, and drops its names between notebooks.
    """
    notebooks = [nbformat.read(path, as_version=4) for path in paths]
    cells = [nbformat.v4.new_code_cell(_START)]
    for notebook in notebooks:
        cells += [nbformat.v4.new_code_cell("%reset -f"), *notebook.cells]
    where = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(
        nbformat.v4.new_notebook(cells=cells), timeout=TIMEOUT_S, resources=where, record_timing=False
    ).execute()
    for notebook in notebooks:
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        for number, cell in enumerate(code, 1):
            cell.execution_count = number
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = number
    return notebooks


def draw_figures(notebook: nbformat.NotebookNode, browser: Browser) -> None:
    """Replace the figures in a notebook's outputs by images."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if _PLOTLY in data:
                page = browser.new_page(viewport=_SIZE)
                page.set_content(from_json(json.dumps(data[_PLOTLY])).to_html(include_plotlyjs=True))
                page.wait_for_selector(".js-plotly-plot .main-svg")
                page.wait_for_timeout(1000)
                picture = base64.b64encode(page.screenshot()).decode()
                page.close()
                output.data = {"image/png": picture, "text/plain": "<Figure>"}
            elif data:
                output.data = {kind: data[kind] for kind in _KEPT if kind in data}


def main() -> None:
    """Execute all notebooks, and store their outputs; without MUSIC, the one on real recordings keeps its own."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("MUSICSIM_EAR", "0")  # even if MusiCNN is installed
    paths = (*NOTEBOOKS, REAL) if "MUSIC" in os.environ else NOTEBOOKS
    with tempfile.TemporaryDirectory() as folder:
        notebooks = execute(paths, Path(folder))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find(), args=list(FLAGS))
        for path, notebook in zip(paths, notebooks, strict=True):
            draw_figures(notebook, browser)
            nbformat.write(notebook, path)
        browser.close()


if __name__ == "__main__":
    main()
