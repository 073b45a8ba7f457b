"""Draw the figures of the documentation: ``python docs/figures.py mlr-example`` writes ``docs/images/mlr-example.png``.

Without a name, all figures are drawn; the times of mlr-convergence depend on the machine.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from playwright.sync_api import sync_playwright
from plotly.subplots import make_subplots
from sklearn.exceptions import ConvergenceWarning

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.support.ranking_tasks import cal10k_like  # noqa: E402
from musicsim.metric import MLR  # noqa: E402
from tests.browser.chromium import FLAGS, find  # noqa: E402

COLORS = {"bundle": "#1f77b4", "admm": "#d95f02", "subgradient": "#7570b3"}
GENRE_COLORS = ("#1f77b4", "#d95f02", "#1b9e77", "#7570b3")
LIMIT_S = 60.0


def convergence() -> go.Figure:
    """Draw objective (line) and lower bound (dashes) of the three solvers on a task of CAL10K's shape."""
    task = cal10k_like()
    MLR(max_cuts=2).fit(task.X[:50], [i % 25 for i in range(50)])  # compile before the clock starts
    figure = go.Figure()
    for solver, color in COLORS.items():
        mlr = MLR(C=100.0, solver=solver, max_cuts=2000)
        history = mlr.fit(task.X, task.relevance, callback=lambda step: step["seconds"] > LIMIT_S).history_
        seconds = [step["seconds"] for step in history]
        for name, dash in (("objective", "solid"), ("dual_bound", "dot")):
            label = solver if name == "objective" else f"{solver}, lower bound"
            figure.add_scatter(
                x=seconds, y=[step[name] for step in history], name=label, line={"color": color, "dash": dash}
            )
    figure.update_xaxes(title="seconds", type="log", tickvals=[0.1, 0.3, 1, 3, 10, 30, 60])
    figure.update_yaxes(title="objective and lower bound", range=[0, 60])
    figure.update_layout(template="plotly_white", margin={"l": 60, "r": 20, "t": 20, "b": 50}, font={"size": 15})
    return figure


def example() -> go.Figure:
    """Draw the songs of the example in docs/research/mlr.md on two principal axes, before and after learning."""
    page = (ROOT / "docs" / "research" / "mlr.md").read_text(encoding="utf-8")
    names: dict[str, np.ndarray] = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    titles = ("Euclidean distance", "learned distance")
    figure = make_subplots(1, 2, subplot_titles=titles, horizontal_spacing=0.06)
    for column, vectors in enumerate((names["X"], names["Y"]), 1):
        centered = vectors - vectors.mean(axis=0)
        places = centered @ np.linalg.svd(centered, full_matrices=False)[2][:2].T
        for genre, color in enumerate(GENRE_COLORS):
            x, y = places[names["genres"] == genre].T
            marker = {"color": color, "size": 9, "opacity": 0.75}
            figure.add_scatter(
                x=x,
                y=y,
                mode="markers",
                marker=marker,
                name=f"genre {genre}",
                showlegend=column == 1,
                row=1,
                col=column,
            )
        figure.update_yaxes(scaleanchor=f"x{column}", row=1, col=column)
    figure.update_xaxes(showticklabels=False)
    figure.update_yaxes(showticklabels=False)
    figure.update_layout(template="plotly_white", height=300, font={"size": 15})
    figure.update_layout(margin={"l": 20, "r": 20, "t": 40, "b": 20})
    return figure


FIGURES = {"mlr-example": example, "mlr-convergence": convergence}


def main() -> None:
    """Draw the figures whose names are given."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find(), args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1000, "height": 480})
        for name in sys.argv[1:] or FIGURES:
            page.set_content(FIGURES[name]().to_html(include_plotlyjs=True, full_html=True))
            page.wait_for_selector(".js-plotly-plot .legend")
            page.wait_for_timeout(1000)
            page.locator(".js-plotly-plot").screenshot(path=ROOT / "docs" / "images" / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
