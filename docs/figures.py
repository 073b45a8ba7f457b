"""Draw the figures of the documentation: ``python docs/figures.py`` writes ``docs/images/mlr-convergence.png``."""

import sys
import warnings
from pathlib import Path

import plotly.graph_objects as go
from playwright.sync_api import sync_playwright
from sklearn.exceptions import ConvergenceWarning

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.support.ranking_tasks import cal10k_like  # noqa: E402
from musicsim.metric import MLR  # noqa: E402
from tests.browser.chromium import FLAGS, find  # noqa: E402

COLORS = {"bundle": "#1f77b4", "admm": "#d95f02", "subgradient": "#7570b3"}
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


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    path = ROOT / "docs" / "images" / "mlr-convergence.png"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find(), args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1000, "height": 480})
        page.set_content(convergence().to_html(include_plotlyjs=True, full_html=True))
        page.wait_for_selector(".js-plotly-plot .legend")
        page.wait_for_timeout(1000)
        page.screenshot(path=path)
        browser.close()


if __name__ == "__main__":
    main()
