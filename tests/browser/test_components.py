"""Scripts of components, without Streamlit: new data can arrive before a component has received the previous data.

Streamlit then calls the function that the component returned for the previous data, while the component is on the page.
"""

import pytest
from playwright.sync_api import Route
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim.ui.base.scripts import loader, script_routes

# Loads a component. `call` gives it data, as Streamlit does; `gone` collects the functions that it returns.
LOAD = """async (script) => {
  const source = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  const { default: show } = await import(source);
  document.body.replaceChildren();
  window.parentElement = document.body.appendChild(document.createElement("div"));
  window.sent = [];
  window.gone = [];
  const set = (...event) => window.sent.push(event);
  window.call = async (data) => window.gone.push(
    await show({ data, parentElement: window.parentElement, setStateValue: set, setTriggerValue: set })
  );
}"""
FINDER = {"label": "Search", "help": "", "placeholder": "", "chosen": [], "entries": []}


@pytest.fixture
def asked(page):
    """Serve the scripts below a base path, to an empty page; return the addresses that the page asks for."""
    addresses = []
    with TestClient(Starlette(routes=script_routes("/base"))) as client:

        def answer(route: Route) -> None:
            addresses.append(route.request.url)
            said = client.get(route.request.url)
            route.fulfill(status=said.status_code, headers=dict(said.headers), body=said.content)

        page.route("http://testserver/base/scripts/**", answer)
        empty = {"body": "<!doctype html>", "content_type": "text/html"}
        page.route("http://testserver/base/", lambda route: route.fulfill(**empty))
        page.goto("http://testserver/base/")
        yield addresses


@pytest.fixture
def load(page, asked):
    """Load a component into an empty page."""
    return lambda path: page.evaluate(LOAD, loader(path))


def test_component_of_an_extension_uses_scripts_of_the_pages(page, load, asked):
    load("extensions/listening_tests/assets/links.js")
    page.evaluate("call({ links: [{ name: 'Ann', url: 'http://testserver/ann' }] })")
    assert page.get_by_role("button", name="Copy the link of Ann").inner_text() == "Copy"
    assert len(asked) == len(set(asked)) == 4


def test_data_arrive_in_order_while_script_loads(page, load):
    load("web/find/component.js")
    page.evaluate("data => Promise.all(['p', 'pi'].map(label => call({ ...data, label })))", FINDER)
    assert page.locator("input").get_attribute("aria-label") == "pi"
    assert page.locator("input").count() == 1


def test_component_that_leaves_page_while_script_loads_is_closed(page, load):
    load("web/find/component.js")
    page.evaluate("data => { const called = call(data); parentElement.remove(); return called; }", FINDER)
    page.evaluate("gone.at(-1)()")
    assert page.evaluate("parentElement.childElementCount") == 0


def test_search_box_keeps_text_if_newer_data_arrives_early(page, load):
    load("web/find/component.js")
    page.evaluate("data => call(data)", FINDER)
    page.locator("input").fill("piano")
    page.evaluate("async data => { await call(data); gone.at(-1)(); await call({...data, label: 'Other'}); }", FINDER)
    assert page.locator("input").input_value() == "piano"
    assert page.evaluate("document.activeElement.tagName") == "INPUT"
    page.evaluate("parentElement.remove(); gone.at(-1)()")
    assert page.evaluate("parentElement.childElementCount") == 0
