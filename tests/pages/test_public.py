"""Pages of a public demonstration: what the owner alone may do is not there, and nobody sees what others say."""

import pytest
from streamlit.testing.v1 import AppTest

from musicsim.explorer.libraries import open_library
from musicsim.library.importing.answers import import_answers
from musicsim.ui.base.frame import PAGES, SHELL
from tests.pages.actions import labels, open_page, said

OFFERED = [name for name in PAGES if name not in ("explore", "train")]
OF_THE_OWNER = {
    "Save", "Save in the library", "Rename", "Rename it", "Delete", "Delete it", "Make the mix", "Edit tags", "Import",
    "Reset to file tags", "Add the folder", "Train on these answers", "Add to the collection", "Keep", "Add tag",
    "Start the short run", "Continue", "Compare them",
}  # fmt: skip


@pytest.fixture
def strangers(full, monkeypatch):
    """A library with a playlist, as visitors have it."""
    full.add_playlists([("Evening", None, [song.id for song in full.songs()][:4])], source="saved")
    full.close()
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    return open_library()


@pytest.mark.parametrize("name", ["explore", *OFFERED])
def test_a_page_offers_nothing_of_the_owners_and_names_no_path(name, strangers):
    app = open_page(name)
    assert not app.exception
    assert not app.error
    if name == "playlist":
        app.button(key="playlist_draw").click().run()
        assert not app.exception
    assert not OF_THE_OWNER & set(labels(app))
    words = said(app) + "".join(str(table.value) for table in app.dataframe)
    assert str(strangers.folder.parent) not in words
    assert str(strangers.songs()[0].path.parent) not in words
    assert not [box for box in app.sidebar.selectbox if box.label == "Library"]


def test_the_page_of_training_is_not_there(strangers):
    app = AppTest.from_file(SHELL, default_timeout=60).run()
    with pytest.raises(ValueError, match="Could not find a navigation page"):
        app.switch_page(PAGES["train"])


def test_an_address_leads_to_no_other_library(strangers):
    app = AppTest.from_file(SHELL, default_timeout=60)
    app.query_params["library"] = "../other"
    app.run()
    assert "Not found: the library" in said(app)
    assert app.session_state["library"] == strangers.name


def test_answers_are_the_visitors_own_and_kept_when_the_owner_says_so(strangers, monkeypatch, tmp_path):
    assert strangers.judgments.answers() == []

    def page() -> None:
        import streamlit as st

        from musicsim.explorer.libraries import open_library
        from musicsim.ui.base.visitors import keep_answers, opinions, visitor_name

        library = open_library()
        store = opinions(library).answers
        ids = [song.id for song in library.songs()]

        def answer() -> None:
            store.add(visitor_name(), "odd", ids[:3], 1)
            keep_answers(library)

        def forget() -> None:
            store.forget(store.all()[-1].id)
            keep_answers(library)

        st.button("answer", on_click=answer)
        st.button("forget", on_click=forget)
        st.write(f"{len(store.all())} answers by {', '.join(store.listeners())}")

    one, other = (AppTest.from_function(page, default_timeout=60).run() for _ in range(2))
    one.button[0].click().run()
    assert one.markdown[0].value.startswith("1 answers by visitor")
    assert other.run().markdown[0].value == "0 answers by"
    assert not list(tmp_path.glob("*.csv"))

    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setenv("MUSICSIM_KEEP_ANSWERS", str(kept))
    one.button[0].click().run()
    one.button[0].click().run()
    one.button[1].click().run()
    other.button[0].click().run()
    files = list(kept.iterdir())
    assert len(files) == 2
    assert str(strangers.songs()[0].path.parent) not in "".join(file.read_text() for file in files)

    monkeypatch.delenv("MUSICSIM_PUBLIC")
    with type(strangers).open(strangers.folder) as owners:
        assert sorted(import_answers(owners, file).n_added for file in files) == [1, 2]
        assert len(owners.judgments.listeners()) == 2
