"""The current playlist: actions, rows, the reason for each step, and the map."""

from collections.abc import Hashable
from dataclasses import replace
from functools import partial

import streamlit as st

from musicsim.explorer.playlists.steering import works_of
from musicsim.explorer.playlists.walk import GeneratedPlaylist, Walk
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Song
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import count, plain
from musicsim.ui.components.listening import enqueue_songs, play_preview, play_songs
from musicsim.ui.components.song_finder import MatchKind, find_song, ids_of_match, song_matches
from musicsim.ui.components.song_list import Action, clock, row_of, song_list
from musicsim.ui.components.song_map import song_map
from musicsim.ui.playlist import actions
from musicsim.ui.playlist.draft import PLAYLIST, PlaylistDraft, can_redo, can_undo, change, present_ids, redo, undo
from musicsim.ui.playlist.request_form import MAX_SONGS

_WHY: Key[int | None] = Key("playlist_why", lambda: None, "place of the song for which the preceding step is explained")
_ADD_AT: Key[int | None] = Key("playlist_add_at", lambda: None, "place at which to add songs")
_MORE: Key[int] = Key("playlist_more", lambda: 5, "number of songs to add")
_MAX_REASONS = 8


def dialect_of(draft: PlaylistDraft, walker: Walk) -> str | None:
    """Return the dialect that determines a playlist's probabilities; None if it no longer exists."""
    return draft.dialect if draft.dialect in {d.name for d in walker.dialects} else None


def show_undo() -> None:
    """Show the undo and redo buttons."""
    st.button("Undo", icon=":material/undo:", key="playlist_undo", on_click=undo, disabled=not can_undo())
    st.button("Redo", icon=":material/redo:", key="playlist_redo", on_click=redo, disabled=not can_redo())


def show_heading(snapshot: Snapshot, walker: Walk, draft: PlaylistDraft, drawn: GeneratedPlaylist) -> None:
    """Show the playlist's length, actions on the whole playlist, and its notes."""
    songs = list(drawn.songs)
    st.header(f"{count(len(songs), 'song')} · {clock(drawn.duration_s)}", anchor=False)
    with st.container(horizontal=True, gap="small"):
        args = (snapshot.library, songs)
        st.button("Play through", icon=":material/play_arrow:", key="playlist_play", on_click=play_songs, args=args)
        st.button(
            "Add to queue", icon=":material/queue_music:", key="playlist_enqueue", on_click=enqueue_songs, args=args
        )
        st.button(
            "Regenerate", icon=":material/alt_route:", key="playlist_route", on_click=actions.another_route,
            args=(snapshot, walker), disabled=draft.request is None,
            help="Same request, different songs."
            if draft.request is not None
            else "This playlist was opened, not generated. Instead, keep some songs and regenerate around them.",
        )  # fmt: skip
        show_undo()
    if draft.absent:
        songs = absent_songs(snapshot, draft)
        missing = [song.label for song in songs if song.is_missing]
        waiting = [song.label for song in songs if not song.is_missing]
        n_removed = len(draft.absent) - len(songs)
        facts = [f"{', '.join(missing)} (no file)"] if missing else []
        facts += [f"{', '.join(waiting)} (not compared yet)"] if waiting else []
        facts += [f"{n_removed} no longer in the library"] if n_removed else []
        st.warning(plain(f"Skipped: {'; '.join(facts)}."), icon=":material/warning:")
    for note in actions.as_sentences(draft.notes):
        st.info(plain(note), icon=":material/info:")


def absent_songs(snapshot: Snapshot, draft: PlaylistDraft) -> list[Song]:
    """Return the skipped songs of a playlist that the library still has."""
    return snapshot.library.songs(draft.absent, missing=True) if draft.absent else []


def show_rows(snapshot: Snapshot, walker: Walk, draft: PlaylistDraft, drawn: GeneratedPlaylist) -> None:
    """Show the songs, the reasons between them, and buttons that add or replace songs."""
    rows = [
        replace(row_of(song, link=edge.reason if edge else None), is_kept=song.id in draft.kept)
        for song, edge in zip(drawn.songs, drawn.edges, strict=True)
    ]
    song_list(
        rows,
        key="playlist_rows",
        on_action=partial(_act, snapshot, walker),
        editable=True,
        scroll_to=actions.IS_NEW.get(),
    )
    actions.IS_NEW.set(False)
    _show_buttons(snapshot, walker, draft)
    why, place = _WHY.get(), _ADD_AT.get()
    _WHY.set(None)
    _ADD_AT.set(None)
    if place is not None:
        _add_dialog(snapshot, place)
    if why is not None and why < len(draft.song_ids):
        _why_dialog(snapshot, walker, draft, why)


def _act(snapshot: Snapshot, walker: Walk, action: Action) -> None:
    draft = PLAYLIST.get()
    if draft is None or action.index >= len(draft.song_ids):
        return  # the playlist has changed in the meantime
    if action.kind == "play":
        play_songs(snapshot.library, snapshot.songs_at(snapshot.rows_of(draft.song_ids)), action.index)
    elif action.kind == "move" and 0 <= action.to < len(draft.song_ids):
        change(draft.move(action.index, action.to))
    elif action.kind == "insert":
        _ADD_AT.set(action.index + 1)
    elif action.kind == "drop":
        change(draft.drop(action.index))
    elif action.kind == "keep":
        change(draft.toggle_kept(draft.song_ids[action.index]))
    elif action.kind == "another":
        actions.redraw_one(snapshot, walker, action.index)
    elif action.kind == "redraw":
        actions.redraw_after(snapshot, walker, action.index)
    elif action.kind == "why" and action.index > 0:
        _WHY.set(action.index)


@st.dialog("Add songs")
def _add_dialog(snapshot: Snapshot, place: int) -> None:
    draft = PLAYLIST.get()
    before = snapshot.songs_by_id(draft.song_ids[place - 1 : place]) if draft is not None else []
    st.caption(f"After “{plain(before[0].title)}”." if before else "At the end.")
    find_song(
        "Title or album", key="playlist_add", on_pick=partial(_add, snapshot, place), placeholder="Title or album",
        search=partial(song_matches, snapshot, kinds=("song", "album")),
    )  # fmt: skip


def _add(snapshot: Snapshot, place: int, kind: MatchKind, value: str) -> None:
    draft = PLAYLIST.get()
    if draft is None:
        return
    ids = present_ids(snapshot, ids_of_match(snapshot, kind, value).tolist())
    if not ids:
        st.toast("This song is not in the model yet. Wait for the running job to finish.", icon=":material/info:")
        return
    draft = draft.insert(place, ids)
    if len(draft.song_ids) > MAX_SONGS:
        st.toast(f"A playlist has at most {MAX_SONGS:,} songs.", icon=":material/info:")
    else:
        change(draft)


def _show_buttons(snapshot: Snapshot, walker: Walk, draft: PlaylistDraft) -> None:
    n_kept = sum(i in draft.kept for i in draft.song_ids)
    room = min(MAX_SONGS, snapshot.n_indexed) - len(draft.song_ids)
    _MORE.set(max(1, min(_MORE.get(), max(room, 1))))
    works = works_of(snapshot, snapshot.rows_of(draft.song_ids))
    identities: list[Hashable] = [work or i for work, i in zip(works, draft.song_ids, strict=True)]
    same = [identities.index(identity) for identity in identities]  # the same number for repeats and versions of a song
    n_repeats = len(same) - len(set(same))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Add songs", icon=":material/playlist_add:", key="playlist_add_end", on_click=_ADD_AT.set,
            args=(len(draft.song_ids),), help="Adds songs at the end. The + on a row adds songs after that row.",
        )  # fmt: skip
        if n_repeats:
            st.button(
                f"Remove {count(n_repeats, 'repeat')}", icon=":material/filter_list:",
                key="playlist_repeats", on_click=change, args=(draft.drop_repeats(same),),
                help="Removes repeated songs and other versions of earlier songs.",
            )  # fmt: skip
        st.button(
            "Regenerate around the kept songs", icon=":material/cached:", key="playlist_around",
            disabled=not n_kept or n_kept == len(draft.song_ids), on_click=actions.redraw_around,
            args=(snapshot, walker), help="Songs with a filled pin and songs in the request stay in place.",
        )  # fmt: skip
        st.button(
            f"Add {_MORE.get()} more", icon=":material/more_horiz:",
            key="playlist_go_on", on_click=actions.extend, args=(snapshot, walker, _MORE.get()), disabled=room <= 0,
            help="Keeps the playlist and continues from its last song.",
        )  # fmt: skip
        st.number_input(
            "Songs to add", 1, max(room, 1), **_MORE.widget(),
            width=140, label_visibility="collapsed", disabled=room <= 0,
        )  # fmt: skip


@st.dialog("Why this step?")
def _why_dialog(snapshot: Snapshot, walker: Walk, draft: PlaylistDraft, place: int) -> None:
    pair = draft.song_ids[place - 1], draft.song_ids[place]
    (first_title, _), (second_title, _) = snapshot.names_at(snapshot.rows_of(pair))
    st.markdown(f"From **{plain(first_title)}** to **{plain(second_title)}**")
    reasons = walker.reasons(*pair, dialect_of(draft, walker))
    used = draft.edges.get(pair)
    ticked = used.reason if used else (reasons[0].reason if reasons else "")
    listed = sorted(reasons, key=lambda e: e.reason != ticked)[:_MAX_REASONS]
    for edge in sorted(listed, key=lambda e: -e.probability):
        words = f"{edge.probability:.0%} · {plain(edge.reason)}"
        text = f":material/check: **{words}**" if edge.reason == ticked else words
        st.progress(min(1.0, edge.probability), text=text)
    n_left = len(reasons) - len(listed)
    if n_left:
        rest = sum(e.probability for e in reasons) - sum(e.probability for e in listed)
        share = f"{rest:.0%}" if rest >= 0.005 else "less than 1%"
        st.caption(f"{n_left} more {'reason' if n_left == 1 else 'reasons'} with a total of {share}.")
    st.caption("The checked reason was used." if used else "You placed these songs; the most likely reason is checked.")
    if st.button(
        "Another song", icon=":material/alt_route:", key="playlist_another_way", type="primary",
        help="Replaces the second song.",
    ):  # fmt: skip
        actions.redraw_one(snapshot, walker, place)
        st.rerun()


def show_map(snapshot: Snapshot, draft: PlaylistDraft) -> None:
    """Show the playlist on the map."""
    song_map(
        snapshot, key="playlist_map", path=draft.song_ids, chosen=draft.song_ids[0], height=420, legend=False,
        on_pick=partial(play_preview, snapshot),
    )  # fmt: skip
    st.caption("The playlist on the map; the red ring marks its start.")
