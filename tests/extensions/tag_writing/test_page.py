"""Tests of the tab for file tags, without a browser."""

from musicsim.explorer import job_process, jobs
from musicsim.extensions.tag_writing.backups import Backups
from tests.pages.actions import open_page, said


def test_preview_respects_words_and_starts_the_job(full, own_music, monkeypatch):
    started = []
    monkeypatch.setattr(jobs, "start", lambda library, kind, arguments: started.append((kind, arguments)) or 0)
    app = open_page("library", "write_tags")
    app.button(key="FormSubmitter:tags_form-Preview").click().run()
    assert "Choose at least one property" in said(app)
    app.button_group(key="tags_properties").set_value(["replaygain"])
    app.text_input(key="tags_words").set_value("Artist tones")
    app.button(key="FormSubmitter:tags_form-Preview").click().run()
    assert not app.exception
    assert app.button(key="tags_write").label == "Write 8 values to 4 files"
    app.button(key="tags_write").click().run()
    ((kind, arguments),) = started
    assert (kind, arguments["properties"]) == ("write_tags", ["replaygain"])
    assert job_process.run(full, full.jobs.create(kind, arguments)) == "done"
    (run,) = Backups(full.folder).runs()
    assert len(run.files()) == 4
    app = open_page("library", "write_tags")
    app.button(key=f"tags_undo_{run.name}").click().run()
    kind, arguments = started[-1]
    assert job_process.run(full, full.jobs.create(kind, arguments)) == "done"
    assert Backups(full.folder).runs() == []


def test_unknown_words_are_explained(full):
    app = open_page("library", "write_tags")
    app.button_group(key="tags_properties").set_value(["mood"])
    app.text_input(key="tags_words").set_value("qwertzuiop")
    app.button(key="FormSubmitter:tags_form-Preview").click().run()
    assert not app.exception
    assert "nothing matches" in said(app)
