"""Tests of playlists on the Research page: a job continues them, and the page shows its result."""

from dataclasses import asdict

from musicsim.explorer import jobs
from musicsim.extensions.continuation.continuation import MEASURES, Continued
from tests.halts import halt_first_job
from tests.pages.actions import end_just_after_first_look, labels, open_page
from tests.waiting import until


def with_lists(library, n_lists):
    """Add playlists of seven songs."""
    ids = [song.id for song in library.songs()]
    lists = [(f"list {n}", None, (ids[n % 5 :] + ids)[:7]) for n in range(n_lists)]
    library.add_playlists(lists, source="test")


def test_too_few_playlists_show_next_step(full):
    with_lists(full, 9)
    app = open_page("research", "playlists")
    assert not app.exception
    assert any("9 playlists or sittings with at least 6 songs" in info.value for info in app.info)
    assert not [button for button in app.button if button.key == "evaluate_continue"]


def test_counts_are_shown_if_they_are_ready_just_after_page_looked(full, monkeypatch):
    end_just_after_first_look(monkeypatch)
    with_lists(full, 9)
    app = open_page("research", "playlists")
    assert any("9 playlists or sittings with at least 6 songs" in info.value for info in app.info)


def test_job_continues_playlists_and_shows_result(full):
    with_lists(full, 12)
    app = open_page("research", "playlists")
    halt_first_job(full.folder)
    app.button(key="evaluate_continue").click().run()
    assert not app.exception
    job = jobs.current(full)
    assert (job.kind, job.arguments) == ("continue", {"lists": "playlists"})
    jobs.cancel(full, job.id)
    until(lambda: jobs.current(full) is None)
    assert not app.run().exception
    assert any("canceled. Resume?" in markdown.value for markdown in app.markdown)
    assert not app.table

    scores = {way: dict.fromkeys(MEASURES, (0.25, 0.125, 0.5)) for way in ("item-kNN", "walk")}
    leads = {"item-kNN": (-0.25, -0.5, -0.125)}
    full.jobs.update(job.id, state="done")
    full.jobs.add_trace(job.id, asdict(Continued("playlists", 12, 12, 5, 12, scores, leads)))
    app.run()
    assert not app.exception
    first = app.markdown[
        [m.value.startswith("**The method with the best NDCG") for m in app.markdown].index(True)
    ].value
    assert "is item-kNN; the walk is behind" in first
    table = app.table[0].value
    assert table["Method"].tolist() == ["item-kNN", "walk"]
    assert table["NDCG"].iloc[0] == "**0.250** :small[:gray[0.125–0.500]]"
    assert any("12 of 12 playlists" in c.value for c in app.caption)


def test_visitors_cannot_continue_playlists(full, monkeypatch):
    full.close()
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    app = open_page("research")
    assert not app.exception
    assert "Playlists" not in labels(app)
