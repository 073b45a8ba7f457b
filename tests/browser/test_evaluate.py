"""The Research page in the browser: scores come automatically, hubs play, nothing is cut off on a phone."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.actions import player_plays, rows
from tests.browser.actions import visit as visit_page


def visit(page: Page, address: str) -> None:
    """Open the page and wait for the last of its scores."""
    page.goto(f"{address}/evaluate?section=quality", wait_until="commit")  # the former address
    expect(page.get_by_role("heading", name="Evaluate", exact=True)).to_be_visible()
    # one: while a page is redrawn, Streamlit may show old elements next to the new ones
    expect(page.get_by_role("heading", name=re.compile("^Orphans"))).to_have_count(1)


@pytest.mark.story
def test_hubs_are_listed_and_play(page, address):
    visit(page, address)
    expect(page.get_by_text("Hubness", exact=True).first).to_be_visible()
    expect(page.get_by_text(re.compile(r"near \d+ of 12 songs")).first).to_be_visible()
    rows(page).first.get_by_role("button", name=re.compile("^Play")).click()
    player_plays(page)


def test_charts_fit_phone(page, address):
    page.set_viewport_size({"width": 420, "height": 900})
    visit(page, address)
    for chart in page.get_by_test_id("stPlotlyChart").all():
        box = chart.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 420
    assert page.evaluate("document.documentElement.scrollWidth") <= 420


def test_papers_are_one_click_away(page, address):
    visit_page(page, address, "research")
    expect(page.get_by_role("img", name=re.compile(r"^\d+ tables: all claims hold in")).first).to_be_visible()
    page.get_by_role("button", name="Beyond the papers").click()
    expect(page.get_by_role("heading", name="Beyond the papers")).to_be_visible()
    expect(page).to_have_url(re.compile("section=beyond$"))
    page.get_by_text("Neighbors in the demo collection").click()
    expect(page.get_by_text("Do the nearest songs share a style and an artist")).to_be_visible()
    expect(page.get_by_role("button", name="Start the short run")).to_be_enabled()
    page.get_by_role("button", name="Back to Research").click()
    expect(page.get_by_role("heading", name="Research", exact=True)).to_be_visible()
