"""Tests of the Contribute section on the Research page."""

import shutil

import pytest

from musicsim.extensions.pooling.measuring import contribute
from musicsim.library import Library
from tests.pages.actions import open_page, run_until


def test_page_shows_every_byte(styles_library, tmp_path, monkeypatch):
    shutil.copytree(styles_library, tmp_path / "library")
    with Library.open(tmp_path / "library") as library:
        expected = contribute(library, "Codewords", "genre").text
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tmp_path / "library"))
    app = open_page("research", "contribute")
    assert not app.code
    app.selectbox(key="evaluate_kind").select("genre").run()
    app.button(key="contribute_show").click().run()
    run_until(app, lambda: bool(app.code))
    assert app.code[0].value == expected
    assert any(f"all {len(expected):,} bytes" in caption.value for caption in app.caption)


def test_small_library_is_told_why(full, monkeypatch):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(full.folder))
    app = open_page("research", "contribute")
    app.button(key="contribute_show").click().run()
    run_until(app, lambda: any("at least 20 query songs" in info.value for info in app.info))


@pytest.mark.parametrize("is_public", [True, False])
def test_only_the_owner_sees_the_section(full, monkeypatch, is_public):
    if is_public:
        monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(full.folder))
    full.close()
    app = open_page("research", "contribute")
    assert not app.exception
    assert bool([button for button in app.button if button.key == "contribute_show"]) != is_public
