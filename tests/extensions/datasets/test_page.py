"""Tests of known faults of data sets on the Research page."""

from tests.pages.test_evaluate import open_page, worked_out


def test_known_dataset_faults_are_shown(full):
    full.update_text("datasets", lambda _: '["gtzan_genre"]', is_change=True)
    app = worked_out(open_page())
    assert any("Sturm 2013" in warning.value for warning in app.warning)
