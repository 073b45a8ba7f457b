"""The current playlist: actions, rows, the reason for each step, and the map."""

import re
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from musicsim.explorer import Edge, GeneratedPlaylist, PlaylistDraft, Snapshot, Walk
from musicsim.explorer.playlists.pool import works_of
from musicsim.explorer.playlists.reason_weights import is_stable, lower_reason
from musicsim.explorer.playlists.walk import Effect
from musicsim.explorer.search.matches import MatchKind, ids_of_match
from musicsim.hooks import EditPlaylist
from musicsim.library import Song
from musicsim.public import is_public
from musicsim.registry import extensions
from musicsim.ui.base import DIALOG, Key, close_dialog, off_if, openers, plain, subject_of
from musicsim.ui.components import Action, row_of, show_song_list
from musicsim.ui.components.song_finder import find_song
from musicsim.ui.components.song_map import song_map
from musicsim.ui.playlist import actions
from musicsim.ui.playlist.draft import PLAYLIST, can_redo, can_undo, change_draft, redo, undo
from musicsim.ui.playlist.request_form import MAX_SONGS
from musicsim.wording import capitalize, count

_ADD, _STEP = "add songs", "step"  # names of dialogs; their subject is a position
_N_MORE = 5  # number of songs to generate at the end
_MAX_REASONS = 8
_MIN_STEPS = 4  # minimum number of songs of a path for which a step can be called usual
_EFFECTS: Key[bool] = Key("playlist_effects", bool, "whether rows show the effects of reasons")
_YEARS = re.compile(r"( and)? from \d{4}(-\d{4})?$")


def dialect_of(draft: PlaylistDraft, walker: Walk) -> str | None:
    """Return the dialect that determines a playlist's probabilities; None if it no longer exists."""
    return draft.dialect if draft.dialect in {d.name for d in walker.dialects} else None


def show_bar(snapshot: Snapshot, walker: Walk, draft: PlaylistDraft | None) -> None:
    """Show the buttons that generate a playlist, and that undo and redo changes."""
    with st.container(horizontal=True, wrap=False, gap="small", key="playlist_bar"):
        st.button(
            "Generate", icon=":material/casino:", type="primary", key="playlist_draw", on_click=actions.draw,
            args=(snapshot, walker), help="Pinned songs stay in their positions." if draft and draft.kept else None,
        )  # fmt: skip
        if draft is not None or can_undo():
            with st.container(horizontal=True, wrap=False, gap="small", width="content", key="playlist_history"):
                _show_history()
        if draft is not None:
            _show_menu(snapshot, walker, draft)


def _show_history() -> None:
    for label, act, is_off in (("Undo", undo, not can_undo()), ("Redo", redo, not can_redo())):
        name, reason = label.lower(), f"There is nothing to {label.lower()}."
        st.button(label, icon=f":material/{name}:", key=f"playlist_{name}", on_click=act, **off_if(is_off, reason))


def _show_menu(snapshot: Snapshot, walker: Walk, draft: PlaylistDraft) -> None:
    ids, rows = draft.song_ids, snapshot.rows_of(draft.song_ids)
    first: dict[Hashable, int] = {}
    # the same number for repeats and versions of a song
    same = [
        first.setdefault(work or i, n) for n, (work, i) in enumerate(zip(works_of(snapshot, rows), ids, strict=True))
    ]
    n_repeats = len(same) - len(first)
    choices: dict[str, Callable[[], object]] = {
        "Start over without pins": partial(actions.draw, snapshot, walker, keeps_pins=False),
        "Add songs": partial(DIALOG.set, (_ADD, len(ids))),
    }
    choices["Hide the effects of reasons" if _EFFECTS.get() else "Show the effects of reasons"] = lambda: _EFFECTS.set(
        not _EFFECTS.get()
    )
    n_more = min(_N_MORE, min(MAX_SONGS, snapshot.n_indexed) - len(ids))
    if n_more > 0:
        choices[f"Generate {count(n_more, 'more song')}"] = partial(actions.extend, snapshot, walker, n_more)
    if n_repeats:
        choices[f"Remove {count(n_repeats, 'repeat')}"] = partial(change_draft, draft.drop_repeats(same))
    for extension in () if is_public() else extensions():
        loaders = {words: partial(extension.load, edit) for words, edit in extension.playlist_edits.items()}
        choices |= {words: partial(_edit, snapshot, draft, load) for words, load in loaders.items()}

    def choose() -> None:
        choices[st.session_state["playlist_menu"]]()

    st.menu_button("More", list(choices), key="playlist_menu", on_click=choose)


def _edit(snapshot: Snapshot, draft: PlaylistDraft, load: Callable[[], EditPlaylist]) -> None:
    ids, sentence = load()(snapshot, draft.song_ids)
    if ids == draft.song_ids or _change(replace(draft, song_ids=ids, saved_id=None)):
        st.toast(plain(sentence), icon=":material/info:")


def show_notes(snapshot: Snapshot, draft: PlaylistDraft) -> None:
    """Show the parts of the request that could not be fulfilled, and songs that were skipped."""
    if draft.absent:
        songs = absent_songs(snapshot, draft)
        missing = [song.label for song in songs if song.is_missing]
        waiting = [song.label for song in songs if not song.is_missing]
        n_removed = len(draft.absent) - len(songs)
        facts = [f"{', '.join(missing)} (no file)"] if missing else []
        facts += [f"{', '.join(waiting)} (not compared yet)"] if waiting else []
        facts += [f"{n_removed} no longer in the library"] if n_removed else []
        st.warning(plain(f"Skipped: {'; '.join(facts)}."), icon=":material/warning:")
    for note in draft.notes:
        st.info(plain(f"{capitalize(note).removesuffix('.')}."), icon=":material/info:")


def absent_songs(snapshot: Snapshot, draft: PlaylistDraft) -> list[Song]:
    """Return the skipped songs of a playlist that the library still has."""
    return snapshot.library.songs(draft.absent, missing=True) if draft.absent else []


def show_largest_step(snapshot: Snapshot, draft: PlaylistDraft) -> None:
    """If the playlist is a path to a song, say where its largest step is."""
    if draft.request is None or not draft.request.through or len(draft.song_ids) < _MIN_STEPS:
        return
    steps = np.linalg.norm(np.diff(snapshot.vectors_at(snapshot.rows_of(draft.song_ids)), axis=0), axis=1)
    place, usual = int(np.argmax(steps)), float(np.median(steps))
    if usual > 0:
        start, end = snapshot.songs_by_id(draft.song_ids[place : place + 2])
        st.caption(
            f"The largest step is from “{plain(start.title)}” to “{plain(end.title)}”: {steps[place] / usual:.1f} "
            "times a usual one."
        )


def show_rows(snapshot: Snapshot, walker: Walk, draft: PlaylistDraft, drawn: GeneratedPlaylist) -> None:
    """Show the songs, and the reasons between them."""
    rows = [
        replace(row_of(song, link=_link(edge)), is_kept=song.id in draft.kept)
        for song, edge in zip(drawn.songs, drawn.edges, strict=True)
    ]
    show_song_list(
        snapshot.library, rows, key="playlist_rows", on_action=partial(_act, snapshot, walker), editable=True
    )
    place, step = subject_of(_ADD), subject_of(_STEP)
    if place is not None:
        _add_dialog(snapshot, place)
    elif step is not None and step < len(draft.song_ids):
        _why_dialog(snapshot, walker, draft, step)


def _link(edge: Edge | None) -> str | None:
    """Return the words between two rows: the reason, and its effect if effects are shown."""
    if edge is None or edge.effect is None or not _EFFECTS.get():
        return edge.reason if edge else None
    return f"{edge.reason or edge.label} · {_words_of(edge.effect)}"


def _words_of(effect: Effect) -> str:
    without = f"{_percent(effect.probability)} → {_percent(effect.without)} without it"
    return f"{without}: {effect.instead.title}" if effect.instead else without


def _percent(probability: float) -> str:
    return "< 0.1%" if 0 < probability < 0.0005 else f"{probability:.1%}"


def _act(snapshot: Snapshot, walker: Walk, action: Action) -> None:
    draft = PLAYLIST.get()
    if draft is None or action.index >= len(draft.song_ids):
        return  # the playlist has changed in the meantime
    if action.kind == "move" and 0 <= action.to < len(draft.song_ids):
        change_draft(draft.move(action.index, action.to))
    elif action.kind == "insert":
        DIALOG.set((_ADD, action.index + 1))
    elif action.kind == "drop":
        change_draft(draft.drop(action.index))
    elif action.kind == "keep":
        change_draft(draft.toggle_kept(draft.song_ids[action.index]))
    elif action.kind == "another":
        actions.redraw_one(snapshot, walker, action.index)
    elif action.kind == "redraw":
        actions.redraw_after(snapshot, walker, action.index)
    elif action.kind == "why" and action.index > 0:
        DIALOG.set((_STEP, action.index))


@st.dialog("Add songs", on_dismiss=close_dialog)
def _add_dialog(snapshot: Snapshot, place: int) -> None:
    draft = PLAYLIST.get()
    before = snapshot.songs_by_id(draft.song_ids[place - 1 : place]) if draft is not None else []
    st.caption(f"After “{plain(before[0].title)}”." if before else "At the end.")
    find_song(
        snapshot.library, "Title or album", key="playlist_add", kinds=("song", "album"), placeholder="Title or album",
        on_pick=partial(_add, snapshot, place),
    )  # fmt: skip


def _add(snapshot: Snapshot, place: int, kind: MatchKind, value: str) -> None:
    close_dialog()
    draft = PLAYLIST.get()
    ids = snapshot.present_ids(ids_of_match(snapshot, kind, value).tolist())
    if not ids:
        st.toast("This song is not in the model yet. Wait for the running job to finish.", icon=":material/info:")
    elif draft is not None:
        _change(draft.insert(place, ids))
    st.rerun()  # a dialog is a fragment


def _change(draft: PlaylistDraft) -> bool:
    """Change the playlist and return True, unless it would be too long."""
    if len(draft.song_ids) > MAX_SONGS:
        st.toast(f"A playlist has at most {MAX_SONGS:,} songs.", icon=":material/info:")
        return False
    change_draft(draft)
    return True


def merge_alike(reasons: list[Edge], first: str) -> list[Edge]:
    """Merge reasons that differ only in the years, such as “both from 2015” and “both from 2015-2024”."""
    merged: dict[str, Edge] = {}
    for edge in sorted(reasons, key=lambda edge: edge.label != first):  # the label `first` is kept
        same = merged.setdefault(_YEARS.sub("", edge.label), replace(edge, probability=0.0))
        merged[_YEARS.sub("", edge.label)] = replace(same, probability=same.probability + edge.probability)
    return list(merged.values())


@st.dialog("Why this step?", on_dismiss=close_dialog)
def _why_dialog(snapshot: Snapshot, walker: Walk, draft: PlaylistDraft, place: int) -> None:
    pair = draft.song_ids[place - 1], draft.song_ids[place]
    (first_title, _), (second_title, _) = snapshot.names_at(snapshot.rows_of(pair))
    st.markdown(f"From **{plain(first_title)}** to **{plain(second_title)}**")
    reasons = walker.reasons(*pair, dialect_of(draft, walker))
    used = draft.edges.get(pair)
    known = used.label if used else ""  # a saved queue has no labels
    if used and used.reason != known:
        st.caption(plain(used.reason[:1].upper() + used.reason[1:] + "."))
    ticked = known or (reasons[0].label if reasons else "")
    reasons = merge_alike(reasons, ticked)
    listed = sorted(reasons, key=lambda e: e.label != ticked)[:_MAX_REASONS]
    for edge in sorted(listed, key=lambda e: -e.probability):
        words = f"{edge.probability:.0%} · {plain(edge.label)}"
        text = f":material/check: **{words}**" if edge.label == ticked else words
        st.progress(min(1.0, edge.probability), text=text)
    n_left = len(reasons) - len(listed)
    if n_left:
        rest = sum(e.probability for e in reasons) - sum(e.probability for e in listed)
        share = f"{rest:.0%}" if rest >= 0.005 else "less than 1%"
        st.caption(f"{count(n_left, 'more reason')} with a total of {share}.")
    st.caption("The checked reason was used." if known else "The most likely reason is checked.")
    if used is not None and used.effect is not None:
        _show_effect(used.effect, second_title)
    with st.container(horizontal=True):
        if st.button(
            "Another song", icon=":material/alt_route:", key="playlist_another_way", type="primary",
            help="Replaces the second song.",
        ):  # fmt: skip
            close_dialog()
            actions.redraw_one(snapshot, walker, place)
            st.rerun()
        if used is not None and used.name:
            _show_vetoes(snapshot, walker, place, used)


def _show_effect(effect: Effect, title: str) -> None:
    """Explain what the reason of a step changed."""
    other = f" “{plain(effect.instead.title)}” would have gained most." if effect.instead else ""
    st.markdown(
        f"The probability of “{plain(title)}” was **{_percent(effect.probability)}**. Without this reason, it would "
        f"have been **{_percent(effect.without)}**.{other}"
    )


def _show_vetoes(snapshot: Snapshot, walker: Walk, place: int, used: Edge) -> None:
    """Show the buttons that leave a reason out of this playlist, and that lower its weight in all playlists."""
    if st.button(
        "Not this reason", icon=":material/block:", key="playlist_veto",
        help="Regenerates the songs from here on without this reason. *More options* lists the reasons left out.",
    ):  # fmt: skip
        close_dialog()
        actions.redraw_without(snapshot, walker, place, used.name)
        st.rerun()
    if is_public() or not is_stable(used.name):
        return
    if st.button(
        "Less often", icon=":material/trending_down:", key="playlist_less_often",
        help="Lowers the weight of this reason to a quarter in all playlists. *Weights* can restore it.",
    ):  # fmt: skip
        close_dialog()
        lower_reason(snapshot.library, used.name)
        st.toast(f"“{plain(used.label)}” has a quarter of its weight now.", icon=":material/trending_down:")
        st.rerun()


def show_map(snapshot: Snapshot, draft: PlaylistDraft) -> None:
    """Show the playlist on the map."""
    song_map(
        snapshot, key="playlist_map", color_by=openers.colors_of(snapshot)[0], path=draft.song_ids, height=420
    )  # fmt: skip
    st.caption("The playlist on the map; the red ring marks its start.")
