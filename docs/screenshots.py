"""Take the pictures of the pages: `make pictures`, or ``python -m docs.screenshots [PART...] [--music FOLDER]``.

Serves the app as the browser tests do, uses it, and writes ``docs/images/*.png`` and ``docs/tour/*.png``, those of
`DARK` in dark colors too. The parts of `DEMO`, which run by default, need the demo collection. Those of `REAL` suit any
music, and also run if a folder is given; without one, they use the demo. Those of `EAR` run if a network is given.
Pages show the path of the library, so both libraries are made in `MUSIC_FOLDER`. Each run starts from a copy of a
library without the changes of earlier runs.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from docs.film import Film
from docs.pictures import ROOT, accept
from musicsim.audio import transcode, transcode_suffix
from musicsim.demo import plan_collection, write_song
from musicsim.explorer.libraries import default_folder
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.explorer.survey.questions import is_predicted, next_question
from musicsim.extensions.embeddings.adding import add_own_vectors
from musicsim.extensions.exports.request import EXPORTS
from musicsim.extensions.listening_tests.store import Grade, InvitedListener, ListeningTestStore
from musicsim.extensions.listening_tests.taking_part import test_of
from musicsim.library import Library, Song
from musicsim.progress import no_progress
from tests.browser import actions
from tests.browser.chromium import FLAGS, find
from tests.browser.serving import serve
from tests.extensions.two_ears.people import train_two

DOCS = ROOT / "docs"
MUSIC_FOLDER = Path(tempfile.gettempdir()) / "Music"
DARK = {"listen", "why", "playlist", "verdict", "compare", "evaluate", "library"}
"""Names of the pictures in the README."""
PEOPLE = ("Ann", "Ben")
PATIENCE_MS = 300_000
WORDS = "slow dark"
TakePart = Callable[[Page, Sequence[Song]], None]
LARGE, SMALL = {"width": 1400, "height": 1000}, {"width": 1280, "height": 800}


def _shoot(page: Page, name: str, folder: str = "images") -> None:
    """Take a picture once the page is at rest, and record which code it shows."""
    page.mouse.move(5, 5)
    if page.get_by_test_id("stApp").count():
        page.wait_for_selector(actions.IDLE)
    for unfinished in (
        page.get_by_test_id("stSkeleton"),
        page.locator("[data-testid=map]:not([data-state=drawn])"),
        page.get_by_text("cannot be reached").filter(visible=True),
    ):
        expect(unfinished).to_have_count(0)
    page.wait_for_timeout(3000)
    _save(page, DOCS / folder / f"{name}.png")
    if folder == "images" and name in DARK:
        page.emulate_media(color_scheme="dark")
        _redraw(page)
        _save(page, DOCS / folder / f"{name}-dark.png")
        page.emulate_media(color_scheme="light")
        _redraw(page)
    accept([name if folder == "images" else f"{folder}/{name}"])


def _redraw(page: Page) -> None:
    """Halve the width for a moment, because waveforms keep their color until they are resized."""
    size = page.viewport_size
    assert size
    for width in (size["width"] // 2, size["width"]):
        page.set_viewport_size({"width": width, "height": size["height"]})
        page.wait_for_timeout(1500)


def _save(page: Page, target: Path) -> None:
    page.screenshot(path=target)
    # 256 colors take a third of the bytes. This method keeps the rare colors, those of points on the map.
    method = Image.Quantize.MAXCOVERAGE
    Image.open(target).convert("RGB").quantize(method=method, kmeans=3).save(target, optimize=True)
    print(target.relative_to(ROOT))  # noqa: T201


def _open(page: Page, path: str) -> None:
    """Open a page by its path, with the query that selects a section."""
    page.goto(path, wait_until="commit")
    page.get_by_test_id("stMain").locator("h1").wait_for()
    page.wait_for_selector(actions.IDLE)


def _find(page: Page, text: str, box: str = "Search") -> None:
    """Type into a box, and choose the first match."""
    page.get_by_role("combobox", name=box, exact=True).press_sequentially(text, delay=80)
    page.get_by_role("option").first.wait_for()
    page.wait_for_timeout(1000)


def _start(page: Page, song: Song) -> None:
    """Find a song on Listen and play it."""
    _open(page, "/")
    actions.wait_for_map(page)
    _find(page, song.title)
    page.get_by_role("option").filter(has_text=song.title).filter(has_not_text="artist,").first.click()
    actions.player_plays(page, song.id)
    actions.rows(page).nth(9).wait_for()
    page.locator(".covered").nth(5).wait_for()


def _good_song(songs: Sequence[Song]) -> Song:
    """Return a song that has an artist and an album, from the middle of the library."""
    whole = [song for song in songs if song.artist and song.album and not song.title.islower()] or songs
    return whole[len(whole) // 2]


def take_listen(page: Page, songs: Sequence[Song]) -> None:
    """Play a song on Listen, and skip to the second one after it."""
    _start(page, _good_song(songs))
    for _ in range(2):
        page.get_by_test_id("player-next").click()
        page.wait_for_timeout(2000)
    _shoot(page, "listen")


def take_film(page: Page, songs: Sequence[Song]) -> None:
    """Film Listen: a search, music, *Why?*, and calmer songs."""
    song = _good_song(songs)
    page.set_viewport_size(SMALL)
    _open(page, "/")
    actions.wait_for_map(page)
    page.wait_for_timeout(2000)
    film = Film(page)
    film.watch(1.0)
    page.get_by_role("combobox", name="Search", exact=True).click()
    film.press(song.title[: max(4, len(song.title) // 2)])
    page.get_by_role("option").first.wait_for()
    film.watch(1.2)
    page.get_by_role("option").filter(has_text=song.title).filter(has_not_text="artist,").first.click()
    film.watch(4.0)
    row = actions.rows(page).nth(1)
    row.hover()
    film.watch(0.8)
    row.get_by_role("button", name=re.compile("^Actions for")).click()
    film.watch(0.8)
    row.get_by_role("button", name=re.compile("^Why")).click()
    page.get_by_role("dialog").get_by_text("Sources of the similarity").wait_for()
    film.watch(3.5)
    page.keyboard.press("Escape")
    film.watch(0.8)
    page.get_by_role("button", name="Calmer", exact=True).click()
    film.watch(2.5)
    actions.rows(page).nth(3).click()
    film.watch(3.0)
    target = DOCS / "images" / "film.webp"
    seconds = film.save(target)
    print(f"{target.relative_to(ROOT)}: {seconds:.0f} s, {target.stat().st_size / 1e6:.1f} MB")  # noqa: T201
    accept(["film"])


def take_thumbs(page: Page, songs: Sequence[Song]) -> None:
    """Give two results a thumb up, and one a thumb down."""
    _start(page, _good_song(songs))
    for place, name in ((3, "fits$"), (4, "fits$"), (2, "does not fit$")):
        actions.row_action(page, actions.rows(page).nth(place), re.compile(name))
        page.wait_for_timeout(3000)
    _shoot(page, "thumbs")
    page.get_by_role("button", name="Undo", exact=True).first.click()


def take_why(page: Page, songs: Sequence[Song], name: str = "why") -> None:
    """Ask why two songs are alike."""
    _start(page, _good_song(songs))
    actions.ask(page, 1)
    page.get_by_role("dialog", name="Why are these two similar?").locator(".bars").wait_for()
    _shoot(page, name)


def take_real_why(page: Page, songs: Sequence[Song]) -> None:
    """Ask why two pieces of real music are alike."""
    take_why(page, songs, "real-why")


def take_ear_why(page: Page, songs: Sequence[Song]) -> None:
    """Ask why two songs are alike in a library with a learned ear."""
    take_why(page, songs, "ear-why")


def _choose(page: Page, part: str, label: str, song: Song) -> None:
    """Choose a song in a part of the sentence on Playlist."""
    page.locator(f".st-key-playlist_part_{part} button").first.press("Enter")
    page.get_by_role("combobox", name=re.compile(label)).fill(song.title)
    page.get_by_role("option", name=re.compile(re.escape(song.title))).first.click()
    page.wait_for_selector(actions.IDLE)
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")


def _generate(page: Page) -> None:
    page.wait_for_selector(actions.IDLE)
    page.get_by_role("button", name="Generate").click()
    page.get_by_test_id("transition").first.wait_for()


def take_playlist(page: Page, songs: Sequence[Song]) -> None:
    """Generate an hour that begins with a song, and keep another song."""
    _open(page, "/playlist")
    _choose(page, "start", "First song", _good_song(songs))
    _generate(page)
    actions.rows(page).nth(2).get_by_role("button", name="Keep ").click()
    _shoot(page, "playlist")


def take_path(page: Page, songs: Sequence[Song]) -> None:
    """Generate a path from one song through another one to a third one."""
    _open(page, "/playlist")
    whole = [song for song in songs if song.artist] or songs
    first, between, last = whole[4], whole[len(whole) // 2], whole[-4]
    for part, label, song in (("start", "First song", first), ("end", "Pass through", between), ("end", "Pass", last)):
        _choose(page, part, label, song)
    _generate(page)
    _shoot(page, "real-path")


def take_walk(page: Page, songs: Sequence[Song]) -> None:
    """Show the weights of the walk, and two lists blind."""
    _open(page, "/research?section=walk")
    page.locator(".stPlotlyChart .bars").first.wait_for()
    _shoot(page, "weights")
    _open(page, "/research?section=blind_lists")
    page.get_by_role("button", name="Generate two playlists").click()
    page.get_by_role("button", name="List 1 is better").wait_for()
    _shoot(page, "blind")


def take_library(page: Page, songs: Sequence[Song]) -> None:
    """Show the songs, and the files of an old disc that were not added or are duplicates."""
    _open(page, "/library")
    _shoot(page, "library")
    for section, name in (("failed", "not-added"), ("same", "duplicates")):
        _open(page, f"/library?section={section}")
        _shoot(page, name)


def take_exports(page: Page, songs: Sequence[Song]) -> None:
    """Export the map and the tags for other programs."""
    _open(page, "/research?section=exports")
    for kind in ("map", "tags"):
        actions.choose(page, "Data", EXPORTS[kind].label)
        page.get_by_text(EXPORTS[kind].help).wait_for()
        page.locator(".st-key-export_start button").click()
        page.get_by_role("link", name=kind).wait_for(timeout=PATIENCE_MS)
    page.get_by_role("heading", name="Exported files").scroll_into_view_if_needed()
    _shoot(page, "exports")


def take_listening(page: Page, songs: Sequence[Song]) -> None:
    """Preview an import of a listening history."""
    with tempfile.TemporaryDirectory() as folder:
        actions.look_at(page, "", _write_history(songs, Path(folder) / "scrobbles.csv"))
        page.get_by_text("Close spellings").evaluate("element => element.scrollIntoView({block: 'center'})")
        _shoot(page, "listening")


def _train(page: Page, source: str = "") -> None:
    """Train up to the first result."""
    _open(page, "/train?section=train")
    actions.open_details(page)
    if source:
        actions.learn_from(page, source)
    page.locator(".st-key-train_start button:visible").first.click()
    page.get_by_text(re.compile(rf"^{source}\w*, first result")).first.wait_for(timeout=PATIENCE_MS)


def take_train(page: Page, songs: Sequence[Song]) -> None:
    """Train, and go on after the first result."""
    _train(page)
    page.locator(".st-key-verdict_go_on button:visible").click()
    take_trained(page, songs)


def take_trained(page: Page, songs: Sequence[Song]) -> None:
    """Show a running training; stop it, and show its verdict, the maps of two models, and an explanation."""
    _open(page, "/train?section=train")
    actions.open_details(page)
    page.locator(".stPlotlyChart .point").nth(9).wait_for(timeout=PATIENCE_MS)
    _shoot(page, "train")
    page.get_by_role("button", name="Stop and keep the best").click()
    page.get_by_text("first result").first.wait_for(state="hidden", timeout=PATIENCE_MS)
    _shoot(page, "verdict")
    page.locator("[class*='st-key-verdict_use_'] button:visible").first.click()
    page.wait_for_selector(actions.IDLE)
    _start(page, _good_song(songs))
    actions.show_all_tools(page.get_by_test_id("map"))
    page.get_by_role("combobox", name="Compare with model").select_option(index=1)
    page.get_by_text("Rings mark the nearest").wait_for()
    _shoot(page, "two-maps")
    take_why(page, songs)


def take_real_verdict(page: Page, songs: Sequence[Song]) -> None:
    """Learn from the genres of real music; show the first verdict."""
    _train(page, "Genre")
    _shoot(page, "real-verdict")


def take_compare(page: Page, songs: Sequence[Song]) -> None:
    """Listen to a song of a question, and show the survey of earlier answers and the taste."""
    with Library.open(default_folder(), create=False) as library:
        _answer(library)
    try:
        _open(page, "/train?section=compare")
        page.get_by_role("combobox", name="Listener").click()  # in sight, because several people have answered
        page.get_by_role("option", name=PEOPLE[0]).click()
        cards = page.get_by_test_id("compare-card")
        for number in range(3):
            cards.nth(number).get_by_test_id("compare-play").click()
            page.locator("[data-testid=compare-card][data-heard=true]").nth(number).wait_for()
        page.get_by_role("heading", name="Teach", exact=True).click()
        page.keyboard.press("2")
        page.get_by_test_id("compare-last").get_by_text("You said").wait_for()
        page.get_by_test_id("compare-play").nth(1).click()
        _shoot(page, "compare")
        page.get_by_text("Your taste", exact=True).click()
        page.get_by_role("button", name="Download the picture").scroll_into_view_if_needed()
        _shoot(page, "taste")
    finally:
        with Library.open(default_folder(), create=False) as library:
            for name in PEOPLE:
                library.judgments.forget_listener(name)


def take_two_ears(page: Page, songs: Sequence[Song]) -> None:
    """Show the blind question for two people who hear different parts of the sound, and their playlist for both."""
    with Library.open(default_folder(), create=False) as library:
        train_two(library, 200)
    _open(page, "/train?section=ears")
    page.get_by_role("button", name="Make a playlist for both").click()
    page.get_by_test_id("song-row").first.wait_for()
    _shoot(page, "two-ears")


def take_listening_test(page: Page, songs: Sequence[Song]) -> None:
    """Make a listening test, let four people grade, and show a pair and the scores."""
    _open(page, "/research?section=tests")
    page.get_by_role("button", name="Create the test").click()
    page.get_by_test_id("listening-links").wait_for()
    with Library.open(default_folder(), create=False) as library:
        kept = ListeningTestStore(library).all()[0]
        *_, last = listeners = ListeningTestStore(library).listeners(kept.id)
        _grade(library, kept.id, listeners[:-1])
        ListeningTestStore(library).consent(last.id, time.time())
    page.get_by_role("button", name="Refresh").click()
    page.get_by_text("Results will appear").wait_for(state="hidden")
    _shoot(page, "listening-verdict")
    there = page.context.new_page()
    there.set_viewport_size({"width": 900, "height": 780})
    there.goto(f"/listen/{last.token}")
    for side in (0, 1):
        there.locator(f"[data-side='{side}']").click()
        there.wait_for_timeout(3000)
    for key in ("2", "ArrowUp"):
        there.keyboard.press(key)
    _shoot(there, "listening-test")
    there.close()


def take_evaluate(page: Page, songs: Sequence[Song]) -> None:
    """Show the quality by genre."""
    _open(page, "/research?section=quality")
    genres = page.get_by_role("heading", name="By genre")
    genres.wait_for(timeout=PATIENCE_MS)
    genres.evaluate("heading => heading.scrollIntoView()")
    _shoot(page, "evaluate")


def take_continuation(page: Page, songs: Sequence[Song]) -> None:
    """Continue the held-out lists of the collection."""
    _open(page, "/research?section=playlists")
    page.get_by_role("button", name="Evaluate playlists").click(timeout=PATIENCE_MS)
    page.get_by_text("95% interval").first.wait_for(timeout=PATIENCE_MS)
    _shoot(page, "continuation")


def take_against(page: Page, songs: Sequence[Song]) -> None:
    """Import the mean MFCCs of the songs as vectors, and compare them with the sound."""
    with Library.open(default_folder(), create=False) as library, tempfile.TemporaryDirectory() as folder:
        means = [library.frame_files.frames(song.content_hash).mfcc.mean(axis=0) for song in songs]
        np.savez(file := Path(folder) / "mean MFCC.npz", ids=[song.id for song in songs], vectors=np.array(means))
        add_own_vectors(library, file, file.stem, no_progress)
    _open(page, "/research?section=against")
    page.get_by_role("combobox", name=re.compile("Ground truth")).click()
    page.get_by_role("option", name=re.compile("genre")).first.click()
    page.wait_for_selector(actions.IDLE)
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_text("query songs by").wait_for(timeout=PATIENCE_MS)
    _shoot(page, "against")


def take_tour(page: Page, songs: Sequence[Song]) -> None:
    """Film the first two minutes with the app."""
    page.set_viewport_size(SMALL)
    song = _good_song(songs)

    def film(number: int) -> None:
        _shoot(page, f"{number:02}", "tour")

    _open(page, "/")
    actions.wait_for_map(page)
    film(1)
    _find(page, song.title[:5])
    film(2)
    page.get_by_role("combobox", name="Search", exact=True).fill("")
    _start(page, song)
    film(3)
    for _ in range(2):
        page.get_by_test_id("player-next").click()
        page.wait_for_timeout(2000)
    film(4)
    _find(page, WORDS)
    page.keyboard.press("Enter")
    page.get_by_role("button", name=re.compile("^Remove: slow")).wait_for()
    actions.player_plays(page)
    film(5)
    with tempfile.TemporaryDirectory() as folder:
        # a song of another demo collection, which is not in the library
        made = write_song(plan_collection(seed=1)[0], Path(folder))
        actions.send_sound(page, made.rename(made.with_name("a song of mine" + made.suffix)))
        page.get_by_role("heading", name="a song of mine").wait_for()
    film(6)
    _start(page, song)
    page.get_by_role("button", name="Calmer", exact=True).click()
    page.get_by_text("calmer ✕").wait_for()
    film(7)
    page.get_by_role("button", name="More about this song").click()
    page.get_by_label("Name of the playlist").wait_for()
    film(8)
    page.get_by_role("button", name="Open as a playlist").click()
    page.get_by_role("heading", name="Playlists", exact=True).wait_for()
    _generate(page)
    film(9)
    _train(page)
    film(10)


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


DEMO = {
    "film": take_film,
    "library": take_library,
    "thumbs": take_thumbs,
    "walk": take_walk,
    "exports": take_exports,
    "listening": take_listening,
    "compare": take_compare,
    "tests": take_listening_test,
    "evaluate": take_evaluate,
    "continuation": take_continuation,
    "train": take_train,
    "two-ears": take_two_ears,  # leaves two models in the library
}
REAL = {
    "tour": take_tour,
    "listen": take_listen,
    "playlist": take_playlist,
    "path": take_path,
    "real-why": take_real_why,
    "verdict": take_real_verdict,
    "against": take_against,
}
EAR = {"ear-why": take_ear_why}
PARTS = DEMO | REAL | EAR


def _make_library(music: Path | None, ear: Path | None = None) -> Path:
    """Return the folder of a library of some music, or of the demo, as it was before any picture; add an ear to it."""
    folder = MUSIC_FOLDER / (music.name if music else "library")
    pristine = MUSIC_FOLDER / "unchanged" / folder.name
    if not (pristine.exists() and folder.exists()):
        _run_command(folder, *(["add", str(music)] if music else ["demo"]))
        shutil.copytree(folder, pristine, ignore=_is_left_out, dirs_exist_ok=True)
    for path in folder.iterdir():
        if path.name != "music":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(pristine, folder, dirs_exist_ok=True)
    if ear is not None:
        _run_command(folder, "models", "add-ear", str(ear))
    return folder


def _run_command(library_folder: Path, *words: str) -> None:
    command = [sys.executable, "-m", "musicsim", *words, "--library", str(library_folder)]
    subprocess.run(command, cwd=ROOT, check=True)


def _is_left_out(folder: str, names: list[str]) -> set[str]:
    """Leave out the songs of the demo, which no picture changes."""
    return {"music"} & set(names)


def _take(parts: Sequence[TakePart], library_folder: Path) -> None:
    """Take the pictures of parts with a library."""
    os.environ["MUSICSIM_LIBRARY"] = str(library_folder)
    with Library.open(default_folder(), create=False) as library:
        if take_library in parts:
            _add_old_disc(library, library.folder.parent / "old disc")
        songs = library.songs()
    with sync_playwright() as playwright, serve(ROOT / "app.py") as address:
        browser = playwright.chromium.launch(executable_path=find(), args=list(FLAGS))
        for take_part in parts:
            context = browser.new_context(viewport=LARGE, base_url=address)
            context.set_default_timeout(PATIENCE_MS)
            take_part(context.new_page(), songs)
            context.close()
        browser.close()


def main() -> None:
    """Take the pictures of the given parts, or those of the demo and of the given music."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)}")
    parser.add_argument("--music", type=Path, help="a folder of real recordings for the pictures that show some")
    parser.add_argument("--ear", type=Path, help="the package musicnn, for the pictures of a learned ear")
    options = parser.parse_args()
    if unknown := set(options.parts) - PARTS.keys():
        parser.error(f"there is no part {sorted(unknown)[0]}: choose from {', '.join(PARTS)}.")
    expect.set_options(timeout=PATIENCE_MS)
    names = options.parts or [*DEMO, *(REAL if options.music else ()), *(EAR if options.ear else ())]
    if options.ear is None and not EAR.keys().isdisjoint(names):
        parser.error("give the file of the network: --ear musicnn-0.1.0-py3-none-any.whl")
    for group, music, ear in ((DEMO, None, None), (REAL, options.music, None), (EAR, options.music, options.ear)):
        if parts := [PARTS[name] for name in names if name in group]:
            _take(parts, _make_library(music, ear))


if __name__ == "__main__":
    main()
