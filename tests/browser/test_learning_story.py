"""The whole story in a browser: a history is imported, a model is learned from it, used, compared, and explained."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, Response, expect

from musicsim.explorer.refresh.refresh import refresh
from musicsim.library import Library
from tests.browser.actions import (
    APP,
    IDLE,
    ask,
    learn_from,
    look_at,
    open_details,
    passages,
    row_ids,
    show_tab,
    sound,
    switch,
    tick_close_spellings,
    train_a_ranking,
    visit,
    wait_for_map,
    wait_for_sound,
)
from tests.browser.serving import serve
from tests.learning import write_styles
from tests.sounds import open_library
from tests.waiting import until

START, MINUTE, HOUR = 1_700_000_000, 60, 3600


@pytest.fixture(scope="module")
def styles(tmp_path_factory) -> Path:
    """An analyzed library of thirty songs by fifteen artists, each of one of three kinds of sound."""
    folder = tmp_path_factory.mktemp("styles")
    with open_library(folder / "library") as library:
        library.add(write_styles(folder / "music", seconds=6), n_workers=2)
        refresh(library)
    return folder / "library"


@pytest.fixture
def folder(styles: Path, tmp_path: Path) -> Path:
    """A copy of it that the test may change."""
    return shutil.copytree(styles, tmp_path / "library")


@pytest.fixture
def history(folder: Path, tmp_path: Path) -> Path:
    """Evenings of one person, each with songs of one kind of sound; one song misspelt, one not in the library."""
    with Library.open(folder) as library:
        songs = library.songs()
    kinds = sorted({song.genre for song in songs})
    lines, now = ["uts,artist,track"], START
    for evening in range(12):
        of_kind = [song for song in songs if song.genre == kinds[evening % 3]]
        for song in of_kind[evening // 3 :: 2]:
            lines.append(f"{now},{song.artist},{song.title}")
            now += 4 * MINUTE
        now += 20 * HOUR
    odd = songs[0]
    lines += [f"{now},{odd.artist},{odd.title[:-2]}{odd.title[-1]}x", f"{now + MINUTE},Nobody,Nothing"]
    path = tmp_path / "scrobbles.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    with serve(APP, environment={"MUSICSIM_LIBRARY": str(folder)}) as address:
        yield address


def import_history(page: Page, address: str, history: Path) -> None:
    """Drop the file, preview it, tick the misspelt song, import."""
    look_at(page, address, history)
    expect(page.get_by_text("Close spellings")).to_be_visible()
    tick_close_spellings(page)
    page.get_by_role("button", name="Import", exact=True).click()
    page.get_by_role("link", name="Teach with this data").click()


def train_on_sittings(page: Page) -> None:
    """Learn a ranking from plays in one sitting, and watch the lines."""
    expect(page.get_by_role("heading", name="Teach", exact=True)).to_be_visible()
    learn_from(page, "Sittings")
    train_a_ranking(page)
    lines = page.locator("[class*='st-key-train_objective_'] .scatterlayer .js-line")
    expect(lines.first).to_be_attached()
    expect(page.get_by_text("held-out artists").first).to_be_visible()


def places_on_map(plot) -> list[list[float]]:
    """Return the positions of the songs by id."""
    return plot.evaluate(
        """({map: {places: {ids, x, y}}}) =>
            Array.from(ids, (id, i) => [id, x[i], y[i]]).sort((a, b) => a[0] - b[0])"""
    )


def queues_of_models(page: Page) -> dict[str, list[int]]:
    """Return the last queue that the page got from each model, keyed by its name; this grows with each answer."""
    queues: dict[str, list[int]] = {}

    def note(response: Response) -> None:
        address = urlsplit(response.url)
        if address.path == "/api/queue" and response.ok:
            model = parse_qs(address.query)["model"][0]
            queues[model] = [item["song"]["id"] for item in response.json()["items"]]

    page.on("response", note)
    return queues


def test_listening_history_becomes_explained_model(page, address, folder, history):
    import_history(page, address, history)
    with Library.open(folder) as library:
        assert len(library.listening.sittings()) > 30
        song = library.songs()[0]
    train_on_sittings(page)

    visit(page, address, query=f"?song={song.id}")
    before = places_on_map(wait_for_map(page))
    queues = queues_of_models(page)
    switch(page, "train")
    show_tab(page, "Other teachers")
    open_details(page)
    page.locator("[class*='st-key-verdict_use_'] button:visible").first.click()
    side = page.get_by_test_id("stSidebar").get_by_test_id("stPopoverButton").first
    expect(side).not_to_contain_text("Sound")
    with Library.open(folder) as library:
        learned = library.models.active()
        assert learned.kind == "learned"
        assert learned.settings["supervision"] == "sittings"
    expect(side).to_contain_text(learned.name)
    switch(page, "listen")
    page.wait_for_selector(IDLE)
    after = places_on_map(wait_for_map(page))
    assert [place[0] for place in after] == [place[0] for place in before], "the same songs"
    assert after != before, "another map"
    # the same songs can be nearest under both models, so the list is compared with the new model's answer
    until(lambda: learned.name in queues and row_ids(page) == queues[learned.name])

    dialog = ask(page)
    expect(dialog.get_by_text("after learning").first).to_be_visible()
    passages(dialog, song.title).first.click()
    wait_for_sound(page, True)
    assert f"/songs/{song.id}/audio" in sound(dialog)["src"]

    for _ in range(3):  # leaving the page before it has loaded keeps the model, too
        page.goto(address, wait_until="commit")
        page.get_by_test_id("stSidebarNavLink").filter(has_text="Playlists").click()
        expect(page.get_by_role("heading", name="Playlists", exact=True)).to_be_visible()
        page.wait_for_selector(IDLE)
        expect(side).to_contain_text(learned.name)


def test_training_survives_tab_and_server_restart(page, folder, history):
    environment = {"MUSICSIM_LIBRARY": str(folder)}
    with serve(APP, environment=environment) as address:
        visit(page, address, "train", "?section=train")
        learn_from(page, "Genres")
        train_a_ranking(page)
        training = page.locator(".st-key-train_finish, [class*=st-key-train_objective_]")
        expect(training.first).to_be_visible()
        page.goto("about:blank")
    with serve(APP, environment=environment) as address:
        visit(page, address, "train", "?section=train")
        open_details(page)
        expect(page.get_by_text("held-out artists").first).to_be_visible()
        expect(page.get_by_text("Trained Genres in")).to_be_visible()
    with Library.open(folder) as library:
        assert [record.kind for record in library.models.all()] == ["native", "codewords", "learned"]
        (job, *_) = library.jobs.recent()
        assert job.state == "done"
        assert len(library.jobs.trace(job.id)) > 3
