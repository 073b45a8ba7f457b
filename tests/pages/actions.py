"""Pages without a browser: opening them, finding their widgets."""

import json
import threading
import time
from collections.abc import Callable
from types import ModuleType

import pytest
from streamlit.testing.v1 import AppTest

from musicsim.ui.base.desk import Computation
from musicsim.ui.base.frame import PAGES, SHELL
from tests.waiting import PATIENCE_S, until


def open_page(name: str, section: str = "", *unfolded: str) -> AppTest:
    """Open a page inside the shell, with one of its tabs and with parts that are hidden at first."""
    app = AppTest.from_file(SHELL, default_timeout=PATIENCE_S).run()
    if name != "listen":
        app.session_state[f"{name}_section"] = section
        app.switch_page(PAGES[name]).run()
    for key in unfolded:
        app.session_state[key] = True
    return app.run() if unfolded else app


def run_until(app: AppTest, condition: Callable[[], bool]) -> AppTest:
    """Run the page again until a condition holds."""

    def holds() -> bool:
        assert not app.exception
        if condition():
            return True
        app.run()
        return False

    until(holds)
    return app


def end_just_after_first_look(monkeypatch) -> None:
    """Let every slow computation end right after a page first found it running."""
    wait = Computation.wait
    seen = set()

    def wait_once(task: Computation, seconds: float | None) -> bool:
        if task in seen:
            return wait(task, seconds)
        seen.add(task)
        wait(task, PATIENCE_S)
        return False

    monkeypatch.setattr(Computation, "wait", wait_once)


def model_choice(app: AppTest):
    """Return the widget of the side bar that chooses the model."""
    return next(box for box in app.sidebar.selectbox if box.label == "Model")


def sent(app: AppTest, script: str) -> list[dict]:
    """Return the data that the page sends to its components of a script, such as ``songs/component``."""
    name = f"musicsim_web_{script.replace('/', '_')}"
    return [json.loads(c.proto.json) for c in app.get("bidi_component") if c.proto.component_name.endswith(name)]


def downloads(app: AppTest) -> dict[str, str]:
    """Return the address of each file that the page offers, keyed by the label of its button."""
    protos = [element.proto for element in app.get("bidi_component")]
    found = [json.loads(proto.json) for proto in protos if proto.component_name.endswith("download")]
    return {data["label"]: data["address"] for data in found}


def play_buttons(app: AppTest) -> dict[str, dict]:
    """Return the data of the page's buttons that play songs, by their labels."""
    return {data["label"] or data["help"]: data for data in sent(app, "songs/play_button")}


def watched(app: AppTest) -> list[str]:
    """Return the lines about work that the page shows."""
    protos = [element.proto for element in app.get("bidi_component") if element.proto.component_name.endswith("watch")]
    parts = [part for proto in protos for part in json.loads(proto.json)["parts"]]
    return [" · ".join(filter(None, (part["title"], part["text"]))) for part in parts]


def show_section(app: AppTest, name: str) -> AppTest:
    """Open the Library page with another section."""
    app.session_state["library_section"] = name
    return app.run()


def press(app: AppTest, key: str) -> AppTest:
    app.button(key=key).click().run()
    assert not app.exception
    return app


def press_label(app: AppTest, label: str) -> AppTest:
    app.button[labels(app).index(label)].click().run()
    assert not app.exception
    return app


def labels(app: AppTest) -> list[str]:
    return [button.label for button in app.button]


def said(app: AppTest) -> str:
    kinds = (app.markdown, app.caption, app.info, app.warning, app.error, app.success)
    return "\n".join(element.value.replace("\\", "") for kind in kinds for element in kind)


def check_cancel(app: AppTest, monkeypatch: pytest.MonkeyPatch, module: ModuleType, measure: str, name: str) -> None:
    """Start a measurement that never ends, cancel it, and check that it ends and that its button is back."""
    begun, ended = threading.Event(), threading.Event()

    def endless(snapshot, progress):
        begun.set()
        try:
            while True:
                progress("measuring", 0, 1)
                time.sleep(0.01)
        finally:
            ended.set()

    monkeypatch.setattr(module, measure, endless)
    app.button(key=f"measure_{name}").click().run()
    assert begun.wait(PATIENCE_S)
    app.button(key=f"cancel_{name}").click().run()
    assert ended.wait(PATIENCE_S)
    assert not app.exception
    assert any(button.label == f"Measure {name}" for button in app.button)
