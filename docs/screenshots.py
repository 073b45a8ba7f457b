"""Take the pictures of the pages: ``python docs/screenshots.py`` with the demo collection in ``data/library``.

Serves the app as the browser tests do, plays a song, generates a playlist, and writes ``docs/images/*.png``. The
arguments ``playlists``, ``compare``, ``listening``, ``continuation`` and ``exports`` restrict it to pictures of
playlists, comparisons, a listening test, continued lists, or exports. ``real`` takes those with real music:
MUSICSIM_LIBRARY must then be a library of it, for example made by experiments.real_music. ``against`` needs one with
vectors of another program, compared with the sound.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from musicsim.audio import transcode, transcode_suffix  # noqa: E402
from musicsim.demo import plan_collection, write_song  # noqa: E402
from musicsim.explorer.libraries import default_folder  # noqa: E402
from musicsim.explorer.refresh.refresh import refresh  # noqa: E402
from musicsim.explorer.snapshot.snapshot import take_snapshot  # noqa: E402
from musicsim.explorer.survey.questions import is_predicted, next_question  # noqa: E402
from musicsim.extensions.listening_tests.store import Grade, InvitedListener, ListeningTestStore  # noqa: E402
from musicsim.extensions.listening_tests.taking_part import test_of  # noqa: E402
from musicsim.library import Library, Song  # noqa: E402
from tests.browser.chromium import FLAGS, find  # noqa: E402
from tests.browser.serving import serve  # noqa: E402

IMAGES = ROOT / "docs" / "images"
PEOPLE = ("Ann", "Ben")


def _shoot(page: Page, name: str) -> None:
    page.mouse.move(5, 5)
    page.wait_for_timeout(3000)
    target = IMAGES / f"{name}.png"
    page.screenshot(path=target)
    Image.open(target).quantize().save(target, optimize=True)  # 256 colors: a third of the bytes
    print(target)  # noqa: T201


def _switch(page: Page, title: str) -> None:
    page.get_by_test_id("stSidebarNavLink").filter(has_text=title).click()
    page.get_by_role("heading", name=title, exact=True).wait_for()


def take(page: Page, query: Path, history: Path) -> None:
    """Walk through the pages: listen, thumbs, generate a playlist, import, learn, compare, ask why."""
    page.get_by_test_id("song-row").first.wait_for()
    page.get_by_test_id("stMainBlockContainer").get_by_role("button", name="Play", exact=True).click()
    _shoot(page, "listen")
    page.get_by_role("button", name="Add sound").click()
    page.get_by_test_id("stFileUploader").locator("input[type=file]").set_input_files(query)
    page.keyboard.press("Escape")
    page.get_by_text(query.name).first.wait_for()
    page.get_by_test_id("song-row").first.wait_for()
    _shoot(page, "search")
    take_thumbs(page)
    take_playlists(page)
    _switch(page, "Library")
    _shoot(page, "library")
    for title, name in (("Failed files", "not-added"), ("Duplicates", "duplicates")):
        _show(page, "Tidy up", title)
        _shoot(page, name)
    take_exports(page)
    _learn(page, history)


def _show(page: Page, section: str, title: str = "") -> None:
    """Open a section of a page, and one of its tabs."""
    page.get_by_test_id("stButtonGroup").first.get_by_text(section, exact=True).click()
    if title:
        page.get_by_role("combobox", name=section).click()
        page.get_by_role("option", name=title, exact=True).click()


def take_thumbs(page: Page) -> None:
    """Give two results a thumb up, and one a thumb down."""
    _switch(page, "Listen")
    rows = page.get_by_test_id("song-row")
    for place, kind in ((4, "like"), (6, "like"), (2, "unlike")):
        rows.nth(place).get_by_role("button", name="Actions for").click()
        rows.nth(place).locator(f"[data-icon={kind}]").click()
        page.wait_for_timeout(3000)
    page.get_by_role("button", name="Undo", exact=True).scroll_into_view_if_needed()
    _shoot(page, "thumbs")
    page.get_by_role("button", name="Undo", exact=True).click()


def take_playlists(page: Page) -> None:
    """Generate a list, keep a song, show the reasons of a step, two lists blind, and the weights."""
    _switch(page, "Playlist")
    page.get_by_role("button", name="More options").click()
    page.get_by_test_id("stButtonGroup").get_by_text("late night", exact=True).click()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Generate").click()
    page.get_by_test_id("transition").first.wait_for()
    page.get_by_test_id("song-row").nth(2).get_by_role("button", name="Keep ").click()
    _shoot(page, "playlist")
    page.get_by_test_id("transition").nth(1).click()
    page.get_by_role("dialog").wait_for()
    _shoot(page, "reasons")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="More options").click()
    page.get_by_role("button", name="Which is better?").click()
    page.get_by_role("button", name="Generate two playlists").click()
    page.get_by_role("button", name="List 1 is better").wait_for()
    _shoot(page, "blind")
    page.get_by_role("button", name="Back to the playlist").click()
    page.get_by_role("button", name="More options").click()
    page.get_by_role("button", name="Weights").click()
    page.get_by_role("heading", name="By family").wait_for()
    _shoot(page, "weights")


def take_comparison(page: Page) -> None:
    """Listen to a song of a question, and show the survey of earlier answers."""
    _switch(page, "Train")
    _show(page, "Compare")
    page.get_by_role("combobox", name="Listener").click()
    page.get_by_role("option", name=PEOPLE[0]).click()
    page.get_by_test_id("compare-card").first.wait_for()
    page.get_by_role("heading", name="Train", exact=True).click()
    page.keyboard.press("2")
    page.get_by_test_id("compare-last").get_by_text("You said").wait_for()
    page.get_by_test_id("compare-play").nth(1).click()
    _shoot(page, "compare")


def take_listening_test(page: Page) -> None:
    """Make a listening test, let four people grade, and show a pair and the scores."""
    _switch(page, "Research")
    _show(page, "Listening tests")
    page.get_by_role("button", name="Make the test").click()
    page.get_by_test_id("listening-links").wait_for()
    with Library.open(default_folder(), create=False) as library:
        kept = ListeningTestStore(library).all()[0]
        *_, last = listeners = ListeningTestStore(library).listeners(kept.id)
        _grade(library, kept.id, listeners[:-1])
        ListeningTestStore(library).consent(last.id, time.time())
    page.get_by_role("button", name="Look again").click()
    page.get_by_text("have finished").wait_for()
    _shoot(page, "listening-verdict")
    there = page.context.new_page()
    there.set_viewport_size({"width": 900, "height": 780})
    there.goto(f"{page.url.split('/research')[0]}/listen/{last.token}")
    for side in (0, 1):
        there.locator(f"[data-side='{side}']").click()
        there.wait_for_timeout(3000)
    for key in ("2", "ArrowUp"):
        there.keyboard.press(key)
    _shoot(there, "listening-test")
    there.close()


def take_real(page: Page) -> None:
    """Ask why two songs are alike, let the automatic method learn, and generate a path from one song to another."""
    page.get_by_test_id("song-row").first.wait_for()
    page.get_by_role("button", name="Why ").first.click()
    page.get_by_test_id("two-waves").wait_for()
    _shoot(page, "real-why")
    page.keyboard.press("Escape")
    _switch(page, "Playlist")
    for label, letters in (("First song", "ba"), ("Pass through", "su")):
        page.get_by_role("button", name="any song").first.click()
        page.get_by_role("combobox", name=label).press_sequentially(letters, delay=150)
        page.get_by_role("option").first.click()
        for key in ("Tab", "Escape"):
            page.keyboard.press(key)
        page.wait_for_timeout(1000)
    page.get_by_role("button", name="Generate").click()
    page.get_by_test_id("transition").first.wait_for()
    _shoot(page, "real-path")
    _switch(page, "Train")
    page.locator(".st-key-train_start button:visible").first.click()
    page.get_by_text("Details", exact=True).click(timeout=300_000)
    _shoot(page, "real-verdict")


def take_against(page: Page) -> None:
    """Compare the first of the imported vectors with the sound."""
    _switch(page, "Research")
    _show(page, "Evaluate", "Ours against theirs")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_text("query songs by").wait_for(timeout=300_000)
    _shoot(page, "against")


def take_continuation(page: Page) -> None:
    """Continue the held-out lists of the collection."""
    _switch(page, "Research")
    _show(page, "Evaluate", "Playlists")
    page.get_by_role("button", name="Evaluate playlists").click(timeout=120_000)
    page.get_by_text("In grey the 95 % interval").wait_for(timeout=300_000)
    _shoot(page, "continuation")


def take_exports(page: Page) -> None:
    """Export the map and the tags for other programs."""
    _switch(page, "Research")
    _show(page, "Exports")
    for kind in ("map", "tags"):
        page.locator(f".st-key-export_{kind} button").click()
        page.get_by_role("link", name=kind).wait_for(timeout=60_000)
    page.get_by_role("heading", name="Exported files").scroll_into_view_if_needed()
    _shoot(page, "exports")


def _learn(page: Page, history: Path) -> None:
    _switch(page, "Library")
    _show(page, "Connections")
    form = page.get_by_test_id("stForm").filter(has_text="Listening history files")
    form.locator("input[type=file]").set_input_files(history)
    form.get_by_text(history.name).wait_for()
    form.get_by_role("button", name="Preview", exact=True).click()
    spellings = page.get_by_text("Close spellings")
    spellings.wait_for()
    spellings.scroll_into_view_if_needed()
    _shoot(page, "listening")
    _switch(page, "Train")
    page.locator(".st-key-train_start button:visible").first.click()
    page.get_by_role("button", name="Stop and keep the best").scroll_into_view_if_needed()
    page.wait_for_timeout(4000)
    _shoot(page, "train")
    page.get_by_text("Details", exact=True).click(timeout=300_000)
    _shoot(page, "verdict")
    page.locator("[class*='st-key-verdict_use_'] button:visible").first.click()
    _switch(page, "Explore")
    page.get_by_role("combobox", name="Compare with model").click()
    page.get_by_role("option").first.click()
    page.get_by_text("Rings mark the nearest").wait_for()
    _shoot(page, "two-maps")
    page.get_by_role("button", name="Why ").first.click()
    page.get_by_test_id("two-waves").wait_for()
    _shoot(page, "why")
    page.keyboard.press("Escape")
    take_comparison(page)
    take_listening_test(page)
    _switch(page, "Research")
    genres = page.get_by_role("heading", name="By genre")
    genres.wait_for(timeout=120_000)
    genres.evaluate("heading => heading.scrollIntoView()")
    _shoot(page, "evaluate")
    take_continuation(page)


def _add_old_disc(library: Library, folder: Path) -> None:
    """Add an old disc: two songs again in another encoding, and broken files."""
    folder.mkdir(parents=True, exist_ok=True)
    for song in library.songs()[40:120:50]:
        transcode(song.path, folder / f"{song.title}{transcode_suffix()}")
    (folder / "Track 07.mp3").touch()
    (folder / "readme.mp3").write_text("These songs were copied in 2004.")
    jingle = library.songs()[0].path.read_bytes()
    (folder / "cut off.flac").write_bytes(jingle[:50])
    library.add(folder)
    refresh(library)


def _answer(library: Library, n_questions: int = 60) -> None:
    """Let two people answer mostly as the model would, else by chance."""
    rng = np.random.default_rng(0)
    now = take_snapshot(library)
    for name in PEOPLE:
        for _ in range(n_questions):
            asked = next_question(now, library.judgments.answers(), listener=name, rng=rng)
            (expected,) = (place for place in range(3) if is_predicted(now, asked, place))
            chosen = expected if rng.random() < 0.7 else int(rng.integers(3))
            library.judgments.add(
                name, asked.form, asked.song_ids, chosen, is_random=asked.is_random,
                foreseen=chosen == expected, model=now.record.name if now.record else "",
            )  # fmt: skip


def _grade(library: Library, test_id: int, listeners: Sequence[InvitedListener]) -> None:
    """Let people grade a test, the last of them only a part; results of the first model are a little more similar."""
    test, rng = test_of(library, test_id), np.random.default_rng(3)
    true = [97 if p.is_check else 45 + 12 * (0 in p.models) + 14 * rng.normal() for p in test.pairs]
    for listener in listeners:
        heard = test.order_of(listener.number)[: 20 if listener is listeners[-1] else None]
        fine = [int(np.clip(true[p] + 14 * rng.normal() * (true[p] < 97), 0, 100)) for p in heard]
        grades = [Grade(p, min(2, f // 34), f, time.time()) for p, f in zip(heard, fine, strict=True)]
        ListeningTestStore(library).grade(listener.id, grades)


def _write_history(songs: Sequence[Song], target: Path) -> Path:
    """Write a year of one person's plays as Last.fm exports them, with a misspelling and a song from elsewhere."""
    names = [(song.artist or "", song.title) for song in songs[::6]]
    names += [(names[3][0], names[3][1][:-2] + names[3][1][-1]), ("Somebody Else", "A Song from Elsewhere")]
    lines = ["uts,utc_time,artist,artist_mbid,album,album_mbid,track,track_mbid"]
    for n in range(600):
        artist, title = names[(7 * n + n // 12) % len(names)]
        lines.append(f'{1_735_700_000 + 50_000 * (n // 12) + 240 * (n % 12)},,"{artist}",,,,"{title}",')
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return target


def main() -> None:
    """Take all pictures, or those of the selected parts."""
    known = {
        "playlists": take_playlists,
        "compare": take_comparison,
        "listening": take_listening_test,
        "continuation": take_continuation,
        "exports": take_exports,
        "real": take_real,
        "against": take_against,
    }
    parts = [take_part for name, take_part in known.items() if name in sys.argv[1:]]
    IMAGES.mkdir(exist_ok=True)
    with Library.open(default_folder(), create=False) as library:
        songs = library.songs()
        if not parts:
            _add_old_disc(library, library.folder.parent / "old disc")
        _answer(library)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright, serve(ROOT / "app.py") as address:
        # a song of another demo collection: it sounds like a style of this one, but is not in it
        query = write_song(plan_collection(seed=1)[0], Path(folder))
        query = query.rename(query.with_name("a song of mine" + query.suffix))
        browser = playwright.chromium.launch(executable_path=find(), args=list(FLAGS))
        history = _write_history(songs, Path(folder) / "scrobbles.csv")
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.goto(f"{address}/?song={songs[10].id}", wait_until="commit")
        for take_part in parts:
            take_part(page)
        if not parts:
            take(page, query, history)
        browser.close()
    with Library.open(default_folder(), create=False) as library:
        for name in PEOPLE:
            library.judgments.forget_listener(name)


if __name__ == "__main__":
    main()
