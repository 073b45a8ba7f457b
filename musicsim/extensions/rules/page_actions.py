"""Buttons for rules on the page: open, save, delete, undo, play, export, and open as a playlist."""

from collections.abc import Callable

import streamlit as st

from musicsim.explorer import PlaylistDraft, Snapshot
from musicsim.extensions.rules.files import ENDINGS, render_rule
from musicsim.extensions.rules.finding import RuleResult
from musicsim.extensions.rules.form import Form
from musicsim.extensions.rules.rule import MAX_NAME, Rule
from musicsim.extensions.rules.store import RuleStore, SavedRule
from musicsim.library import PLAYLIST_MIME
from musicsim.ui import PLAYLIST_NAME, file_name, open_draft
from musicsim.ui.base import PAGES, Key, download, kept, off_if, plain, show_errors, toast_errors
from musicsim.ui.components import show_play_button

FORM: Key[Form] = Key("rules_form", Form, "the rule that is being edited", per_library=True, is_kept=True)
_DELETED: Key[SavedRule | None] = Key("rules_deleted", lambda: None, "the last deleted rule", per_library=True)
_CHOICE = "rules_choice"  # key of the widget that shows the name of the form


def edit(change: Callable[[Form], Form]) -> None:
    """Change the form; a callback."""
    FORM.set(change(FORM.get()))


def show_saved(snapshot: Snapshot) -> None:
    """Show the saved rules: the user can open or delete one, and undo a deletion."""
    store = RuleStore(snapshot.library)
    names = [saved.name for saved in store.all()]
    deleted = _DELETED.get()
    if deleted is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"“{plain(deleted.name)}” was deleted.", width="content")
            st.button(
                "Undo", icon=":material/undo:", key="rules_undo", type="tertiary",
                on_click=_undo_delete, args=(store, deleted),
            )  # fmt: skip
    if not names:
        return
    opened = FORM.get().name
    st.session_state[_CHOICE] = opened if opened in names else None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Saved rules", names, key=_CHOICE, index=None, placeholder="New rule", on_change=_open, args=(store,),
            width=320,
        )  # fmt: skip
        if opened in names:
            st.button("Delete", icon=":material/delete:", key="rules_delete", on_click=_delete, args=(store, opened))


def _open(store: RuleStore) -> None:
    name = st.session_state[_CHOICE]
    with toast_errors():  # the rule may have been deleted in the meantime
        FORM.set(Form() if name is None else Form.from_rule(name, store.get(name).rule))


def _delete(store: RuleStore, name: str) -> None:
    with toast_errors():
        _DELETED.set(store.delete(name))
        FORM.set(Form())


def _undo_delete(store: RuleStore, deleted: SavedRule) -> None:
    with toast_errors():
        store.save(deleted.name, deleted.rule)
        FORM.set(Form.from_rule(deleted.name, deleted.rule))
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
