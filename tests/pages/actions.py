"""Pages without a browser: opening them, finding their widgets."""

import json

from streamlit.testing.v1 import AppTest

from musicsim.ui.base.frame import PAGES, SHELL


def open_page(name: str) -> AppTest:
    """A page inside the shell, run once."""
    app = AppTest.from_file(SHELL, default_timeout=60).run()
    return app.switch_page(PAGES[name]).run() if name != "explore" else app


def model_choice(app: AppTest):
    """The widget of the side bar that chooses the model."""
    return next(box for box in app.sidebar.selectbox if box.label == "Model")


def maps(app: AppTest) -> list[dict]:
    """What the maps are told of the page."""
    protos = [element.proto for element in app.get("bidi_component")]
    return [json.loads(proto.json) for proto in protos if proto.component_name.endswith("musicsim_map")]


def show_section(app: AppTest, name: str) -> AppTest:
    """The Library page with another section."""
    app.session_state["library_section"] = name
    return app.run()


def open_evaluation(name: str) -> AppTest:
    """The Evaluate page with another section."""
    app = open_page("evaluate")
    app.session_state["evaluate_section"] = name
    return app.run()


def labels(app: AppTest) -> list[str]:
    return [button.label for button in app.button]


def said(app: AppTest) -> str:
    kinds = (app.markdown, app.caption, app.info, app.warning, app.error, app.success)
    return "\n".join(element.value.replace("\\", "") for kind in kinds for element in kind)
