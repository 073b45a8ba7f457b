"""Rules on the Playlists page: the rows of saved rules, and the buttons of the form."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer import PlaylistDraft, Snapshot
from musicsim.extensions.rules.files import ENDINGS, render_rule
from musicsim.extensions.rules.finding import RuleResult, find_songs
from musicsim.extensions.rules.form import Form
from musicsim.extensions.rules.rule import MAX_NAME, Rule
from musicsim.extensions.rules.store import RuleStore, SavedRule
from musicsim.library import PLAYLIST_MIME
from musicsim.ui import PLAYLIST_NAME, file_name, open_draft
from musicsim.ui.base import PAGES, SECTIONS, Key, download, kept, off_if, plain, show_errors, toast_errors
from musicsim.ui.components import show_play_button, show_playlist_row
from musicsim.wording import count

FORM: Key[Form] = Key("rules_form", Form, "the rule that is being edited", per_library=True, is_kept=True)
RULES = "Rules"  # name of the section with the form
_DELETED: Key[SavedRule | None] = Key("rules_deleted", lambda: None, "the last deleted rule", per_library=True)


def edit(change: Callable[[Form], Form]) -> None:
    """Change the form; a callback."""
    FORM.set(change(FORM.get()))


def show_live(snapshot: Snapshot, *, busy: bool) -> None:
    """Show the saved rules: the user can play, change or delete one, undo a deletion, and begin a new one."""
    store = RuleStore(snapshot.library)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header("Live", anchor=False, width="content")
        st.button(
            "New rule", icon=":material/add:", key="rules_new", type="tertiary", on_click=_open, args=(None,),
            help="A playlist of the songs that meet conditions now. It changes when you listen, rate or add music.",
        )  # fmt: skip
        deleted = _DELETED.get()
        if deleted is not None:
            st.caption(f"“{plain(deleted.name)}” was deleted.", width="content")
            st.button(
                "Undo", icon=":material/undo:", key="rules_undo", type="tertiary",
                on_click=_undo_delete, args=(store, deleted),
            )  # fmt: skip
    rules = store.all()
    if not rules:
        st.caption("Rules such as “fast, and not played for a month” appear here.")
    for number, saved in enumerate(rules):
        with show_errors():
            _show_row(snapshot, store, saved, number)


def _show_row(snapshot: Snapshot, store: RuleStore, saved: SavedRule, number: int) -> None:
    try:
        found = snapshot.row_ids[find_songs(snapshot, saved.rule).rows].tolist()
        facts, nothing = f"{count(len(found), 'song')} · {saved.rule}", "No song meets the conditions."
    except MusicsimError as error:  # the rest of the menu still works
        found, facts = [], str(error)
        nothing = facts
    show_playlist_row(
        snapshot.library, saved.name, facts, key=f"rule_{number}", song_ids=found, on_open=partial(_open, saved),
        actions={"Change": partial(_open, saved), "Delete": partial(_delete, store, saved.name)},
        nothing_to_play="" if found else nothing,
    )  # fmt: skip


def _open(saved: SavedRule | None) -> None:
    with toast_errors():
        FORM.set(Form() if saved is None else Form.from_rule(saved.name, saved.rule))
        SECTIONS["playlist"].set(RULES)


def _delete(store: RuleStore, name: str) -> None:
    with toast_errors():  # the rule may have been deleted in the meantime
        _DELETED.set(store.delete(name))


def _undo_delete(store: RuleStore, deleted: SavedRule) -> None:
    with toast_errors():
        store.save(deleted.name, deleted.rule)
        _DELETED.set(None)


def show_buttons(snapshot: Snapshot, name: str, rule: Rule, found: RuleResult) -> None:
    """Show the actions on a rule and its songs."""
    nothing = "" if len(found.rows) else "No song meets the conditions."
    with st.container(horizontal=True, gap="small"):
        show_play_button(
            "Play", key="rules_play", library=snapshot.library, song_ids=snapshot.row_ids[found.rows].tolist(),
            is_primary=True, disabled_because=nothing,
        )  # fmt: skip
        _save_popover(snapshot, name, rule)
        _export_popover(snapshot, name, rule)
        # not a callback, because a fragment cannot switch to another part of the page there
        if st.button(
            "Open as a playlist", icon=":material/queue_music:", key="rules_playlist", **off_if(nothing, nothing)
        ):
            open_draft(snapshot, PlaylistDraft(tuple(snapshot.row_ids[found.rows].tolist())))
            PLAYLIST_NAME.set(name)
            st.switch_page(PAGES["playlist"])


def _save_popover(snapshot: Snapshot, name: str, rule: Rule) -> None:
    store = RuleStore(snapshot.library)
    with st.popover("Save", icon=":material/save:", key=f"rules_save_{FORM.get().id}"):  # closes after saving
        chosen = st.text_input("Name", name, key=f"rules_name_{name}", max_chars=MAX_NAME, live=True).strip()
        is_known = bool(chosen) and store.find(chosen) is not None
        label = "Replace the rule" if is_known else "Save the rule"
        is_pressed = st.button(label, key="rules_save_it", type="primary", **off_if(not chosen, "Enter a name first."))
    if is_pressed:
        with show_errors(ValueError):
            FORM.set(Form.from_rule(store.save(chosen, rule).name, rule))
            st.toast(f"“{plain(chosen)}” was saved.", icon=":material/check_circle:")
            st.rerun()  # the list of rules is above this fragment


def _export_popover(snapshot: Snapshot, name: str, rule: Rule) -> None:
    popover = st.popover("Export", icon=":material/download:", key="rules_export", on_change="rerun")
    if not popover.open:
        return
    with popover:
        ending = st.segmented_control("Format", ENDINGS, default="json", **kept("rules_ending"), required=True)
        st.caption(
            "JSON is for musicsim, and NSP is a smart playlist of Navidrome. The other formats contain the current "
            "songs."
        )
        with show_errors(ValueError):
            content, _ = render_rule(snapshot, name or "rule", rule, ending)
            download(
                "Download", lambda: content, file_name(f".{ending}", name or "rule"),
                PLAYLIST_MIME.get(ending, "application/json"), key="rules_download", type="primary",
            )  # fmt: skip
