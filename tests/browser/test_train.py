"""Training in a real Chromium: start, watch the lines, keep the best, read the verdict, use the model."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from musicsim.library import Library
from tests.browser.actions import train_a_ranking
from tests.browser.patient import new_context
from tests.browser.serving import serve

APP = Path(__file__).parents[2] / "app.py"


@pytest.fixture(scope="module")
def folder(styles_library, tmp_path_factory) -> Path:
    """A library of fifteen artists of three genres."""
    return shutil.copytree(styles_library, tmp_path_factory.mktemp("train") / "library")


@pytest.fixture
def page(chromium, folder) -> Iterator[Page]:
    with serve(APP, environment={"MUSICSIM_LIBRARY": str(folder)}) as address:
        context = new_context(chromium, viewport={"width": 1400, "height": 900})
        page = context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{address}/train?section=train", wait_until="commit")
        yield page
        broken = page.get_by_test_id("stException").count()
        context.close()
        assert not broken, "a red exception box"
        assert not errors


@pytest.mark.story
def test_model_is_learned_evaluated_and_used(page, folder):
    expect(page.get_by_role("heading", name="Teach", exact=True)).to_be_visible()
    expect(page.get_by_text("songs of the same genre, 30 songs")).to_be_visible()
    button = page.locator(".st-key-teachers_measure button")
    expect(button).to_be_in_viewport()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(button).to_be_in_viewport()
    page.set_viewport_size({"width": 1400, "height": 900})
    train_a_ranking(page)
    enough = page.locator(".st-key-train_finish button:visible")
    # a training this small may have ended before the button can be pressed
    verdict = page.locator("[class*='st-key-verdict_use_']")
    expect(enough.or_(verdict).first).to_be_visible()
    if enough.count():
        enough.first.click()
    expect(verdict).to_be_visible()
    lines = page.locator("[class*='st-key-train_objective_'] .scatterlayer :is(.js-line, .point)")
    expect(lines.first).to_be_attached()
    expect(page.get_by_text("held-out artists").first).to_be_visible()
    page.locator("[class*='st-key-verdict_use_'] button:visible").first.click()
    expect(page.get_by_test_id("stSidebar").get_by_role("button", name="· Genres")).to_be_visible()
    with Library.open(folder) as library:
        record = library.models.active()
    assert record is not None
    assert (record.name, record.kind) == ("Genres", "learned")
