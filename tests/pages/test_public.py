"""Pages of a public demonstration: actions of the owner are missing, and nobody sees data of other visitors."""

import re
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from musicsim.explorer.libraries import open_library
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.hooks import Section
from musicsim.library.importing.answers import import_answers
from musicsim.public import visitor_may
from musicsim.ui.base.frame import PAGES, SHELL
from tests.intact import Watch
from tests.pages.actions import labels, open_page, said
from tests.waiting import PATIENCE_S

OFFERED = [name for name in PAGES if name != "listen"]
OF_THE_OWNER = {
    "Save", "Save in the library", "Rename", "Rename it", "Delete", "Delete it", "Make the mix", "Edit tags", "Import",
    "Reset to file tags", "Add the folder", "Measure", "Add to the library", "Keep", "Add tag",
    "Start the short run", "Resume", "Cancel", "Compare songs",
}  # fmt: skip


@pytest.fixture
def strangers(full, monkeypatch):
    """A library with a playlist, as visitors see it."""
    full.add_playlists([("Evening", None, [song.id for song in full.songs()][:4])], source="saved")
    full.close()
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    return open_library()


@pytest.mark.long
@pytest.mark.parametrize("name", ["listen", *OFFERED])
def test_page_offers_no_owner_actions_and_no_paths(name, strangers):
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


# --- every action ---------------------------------------------------------------------------------

FORMS = (
    "button", "toggle", "checkbox", "selectbox", "multiselect", "slider", "select_slider", "number_input", "text_input",
    "text_area", "radio", "button_group",
)  # fmt: skip
OPENED = ("playlist_lists",)
"""Parts of pages that are drawn only while they are unfolded."""
MOST_ACTIONS = 150


def use(widget: Any, option: int, typed: str) -> None:
    """Click a widget, or change it: to an option, to its largest number, or to a text."""
    if widget.type == "button":
        widget.click()
    elif widget.type in ("toggle", "checkbox"):
        widget.set_value(not widget.value)
    elif widget.type in ("selectbox", "radio"):
        widget.select_index(option)
    elif widget.type == "multiselect":
        widget.set_value(widget.options[option : option + 1])
    elif widget.type == "button_group":
        chosen = widget.options[option]
        widget.set_value([chosen] if isinstance(widget.value, list) else chosen)
    elif widget.type == "number_input":
        widget.set_value(widget.max if widget.max is not None else widget.value)
    elif widget.type == "slider":
        widget.set_range(widget.min, widget.max) if isinstance(widget.value, list | tuple) else widget.set_value(
            widget.max
        )
    elif widget.type in ("text_input", "text_area"):
        widget.set_value(typed)


def next_action(app: AppTest, done: set[tuple[Any, ...]]) -> tuple[Any, int] | None:
    """Return an unused widget and the number of its option; widgets that switch sections come last."""
    for kind in FORMS:
        for widget in app.get(kind):
            options = getattr(widget, "options", ())
            for i in range(len(options)) if kind == "button_group" else [max(0, len(options) - 1)]:
                action = (kind, widget.label, re.sub("[0-9]+", "", widget.key or ""), i)
                if action not in done and not getattr(widget, "disabled", False):
                    done.add(action)
                    if options or not hasattr(widget, "options"):
                        return widget, i
    return None


def use_everything(name: str, watch: Watch, private: Sequence[str] = ()) -> int:
    """Do everything that a page offers to a visitor; return the number of actions."""
    app = open_page(name)
    done: set[tuple[Any, ...]] = set()
    n_done = 0
    while n_done < MOST_ACTIONS:
        for key in OPENED:
            app.session_state[key] = True
        app.run()
        action = next_action(app, done)
        if action is None:
            break
        use(*action, typed=str(watch.folder / "home" / "secret.m3u"))
        app.run()
        n_done += 1
        words = said(app) + "".join(str(table.value) for table in app.dataframe)
        assert not app.exception, (name, action)
        assert "only its owner" not in words, (name, action)
        assert [word for word in private if word in words] == [], (name, action)
        assert not app.switch_page(PAGES[name]).run().exception, name  # an action may lead to another page
    watch.check()
    return n_done


@pytest.fixture
def watch(strangers, tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "secret.m3u").write_text("the neighbor's secret\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return Watch(tmp_path, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("name", OFFERED)
def test_actions_change_nothing(name, strangers, watch):
    private = [str(strangers.songs()[0].path.parent), "the neighbor's secret", "Traceback"]
    assert use_everything(name, watch, private) >= (3 if name == "library" else 5)


def hole(write: Callable[[], object]) -> Callable[..., None]:
    """Return a section that an extension could add."""

    def draw(snapshot: Snapshot, *, busy: bool) -> None:
        st.button("Added", on_click=write)

    return draw


@pytest.mark.long
@pytest.mark.parametrize("place", ["libraries/written", "libraries/library/models/written"])
@pytest.mark.parametrize("is_marked", [True, False])
def test_section_that_lets_visitors_write_is_detected(place, is_marked, strangers, watch, monkeypatch):
    draw = hole(lambda: (watch.folder / place).write_text("x"))
    extension = SimpleNamespace(load=lambda _: visitor_may(draw) if is_marked else draw)
    section = Section("train", "page:draw", title="Added", place=5)
    monkeypatch.setattr("musicsim.ui.base.sections.sections_of", lambda _: [(extension, section)])
    if is_marked:
        with pytest.raises(AssertionError, match=r"written|train"):  # the first file is new, the second is refused
            use_everything("train", watch)
    else:
        use_everything("train", watch)


# --- isolation of visitors ------------------------------------------------------------------------


def test_visitors_compare_but_do_not_train(strangers):
    app = open_page("train", "models")
    assert not app.exception
    assert app.title[0].value == "Compare"
    assert "choose_train_Section" not in {group.key for group in app.get("button_group")}
    assert [group.key for group in app.get("button_group")][:1] == ["compare_form"]


def test_address_cannot_open_other_library(strangers):
    app = AppTest.from_file(SHELL, default_timeout=PATIENCE_S)
    app.query_params["library"] = "../other"
    app.run()
    assert "Not found: the library" in said(app)
    assert app.session_state["library"] == strangers.name
    assert "Not found: the library" in said(app.run()), "a page may run again at once"
    assert "Not found" not in said(app.switch_page(PAGES["playlist"]).run())


def test_answers_are_private_and_saved_only_if_enabled(strangers, monkeypatch, tmp_path):
    assert strangers.judgments.answers() == []

    def page() -> None:
        import streamlit as st

        from musicsim.explorer.libraries import open_library
        from musicsim.ui.base.visitors import VISITOR_NAME, keep_answers, opinions

        library = open_library()
        store = opinions(library).judgments
        ids = [song.id for song in library.songs()]

        def answer() -> None:
            store.add(VISITOR_NAME.get(), "odd", ids[:3], 1)
            keep_answers(library)

        def forget() -> None:
            store.forget(store.answers()[-1].id)
            keep_answers(library)

        st.button("answer", on_click=answer)
        st.button("forget", on_click=forget)
        st.button("keep", on_click=keep_answers, args=(library,))
        st.write(f"{len(store.answers())} answers by {', '.join(store.listeners())}")

    one, other = (AppTest.from_function(page, default_timeout=PATIENCE_S).run() for _ in range(2))
    one.button[0].click().run()
    assert one.markdown[0].value.startswith("1 answers by visitor")
    assert other.run().markdown[0].value == "0 answers by"
    assert not list(tmp_path.glob("*.csv"))

    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setenv("MUSICSIM_KEEP_ANSWERS", str(kept))
    other.button[2].click().run()
    assert not list(kept.iterdir()), "a visitor who answered in other trials only has nothing to save"
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
