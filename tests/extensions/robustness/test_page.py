"""The Robustness tab of the Research page."""

import pytest
from streamlit.testing.v1 import AppTest

from musicsim.explorer.trials.rates import estimate_rate
from musicsim.extensions.robustness import page
from musicsim.extensions.robustness.measuring import ChangeResult, Robustness
from tests.pages import actions


@pytest.fixture
def app(tiny_library, monkeypatch) -> AppTest:
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tiny_library.folder))
    app = actions.open_page("research")
    return app.button(key="research_to_robustness").click().run()


def test_table_shows_each_change(app, monkeypatch):
    result = ChangeResult("noise", estimate_rate(0.5, 30), 0.4, 0.3, 0.5)
    monkeypatch.setattr(page, "measure_robustness", lambda snapshot, progress: Robustness((result,), 1))
    app.button(key="measure_robustness").click().run()
    actions.run_until(app, lambda: bool(app.table))
    assert app.table[0].value.values.tolist() == [["noise", "50% (33% to 67%)", "40% (30% to 50%)"]]
    assert any("30 songs, with 95% intervals. 1 song could not be read." in one.value for one in app.caption)


def test_measurement_can_be_canceled(app, monkeypatch):
    actions.check_cancel(app, monkeypatch, page, "measure_robustness", "robustness")
