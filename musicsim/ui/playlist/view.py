"""The playlist in work on the page: what can be done with it, its rows, why each step, and the walk on the map."""

from collections.abc import Hashable
from dataclasses import replace
from functools import partial

import streamlit as st

from musicsim.explorer.playlists.steering import works_of
from musicsim.explorer.playlists.walk import DrawnPlaylist, Walk
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Song
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain
from musicsim.ui.components.listening import enqueue_songs, play_songs
from musicsim.ui.components.song_finder import MatchKind, find_song, ids_of_match, song_matches
from musicsim.ui.components.song_list import Action, Row, clock, row_of, song_list
from musicsim.ui.components.song_map import song_map
from musicsim.ui.playlist.actions import IS_NEW, another_route, go_on, redraw_after, redraw_around, redraw_one, said
from musicsim.ui.playlist.draft import PLAYLIST, PlaylistDraft, can_redo, can_undo, change, present_ids, redo, undo
from musicsim.ui.playlist.request_form import MAX_SONGS

_WHY: Key[tuple[int, int] | None] = Key("playlist_why", lambda: None, "places of the step that is explained")
_ADD_AT: Key[int | None] = Key("playlist_add_at", lambda: None, "the place that a song is chosen for")
_MORE: Key[int] = Key("playlist_more", lambda: 5, "songs to go on by")
_MAX_REASONS = 8


def dialect_of(draft: PlaylistDraft, walker: Walk) -> str | None:
    """Whose walk says what is likely in a list; None where that dialect has gone."""
    return draft.dialect if draft.dialect in {d.name for d in walker.dialects} else None


def show_steps_back() -> None:
    """Undo and redo."""
    st.button("Undo", icon=":material/undo:", key="playlist_undo", on_click=undo, disabled=not can_undo())
    st.button("Redo", icon=":material/redo:", key="playlist_redo", on_click=redo, disabled=not can_redo())


def show_heading(now: Snapshot, walker: "Walk", draft: PlaylistDraft, shown: "DrawnPlaylist") -> None:
    """Length of the list, what can be done with all of it, and what of the request could not be met."""
    songs = list(shown.songs)
    count = f"{len(songs)} song" if len(songs) == 1 else f"{len(songs)} songs"
    st.subheader(f"{count} · {clock(shown.duration_s)}", anchor=False)
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Play through", icon=":material/play_arrow:", key="playlist_play", on_click=play_songs,
            args=(now.library, songs),
        )  # fmt: skip
        st.button(
            "Add to queue", icon=":material/queue_music:", key="playlist_enqueue", on_click=enqueue_songs,
            args=(now.library, songs),
        )  # fmt: skip
        st.button(
            "Regenerate", icon=":material/alt_route:", key="playlist_route", on_click=another_route,
            args=(now, walker), disabled=draft.request is None,
            help="The same request with other songs."
            if draft.request is not None
            else "This playlist was opened, not generated: keep some songs and regenerate around them.",
        )  # fmt: skip
        show_steps_back()
    if draft.absent:
        words = _absent_words(absent_songs(now, draft), len(draft.absent))
        st.warning(plain(words), icon=":material/warning:")
    for note in said(draft.notes):
        st.info(plain(note), icon=":material/info:")


def absent_songs(now: Snapshot, draft: PlaylistDraft) -> list[Song]:
    """Songs of the list that are passed over, though the library knows them."""
    return now.library.songs(draft.absent, missing=True) if draft.absent else []


def _absent_words(absent: list[Song], n_absent: int) -> str:
    """Which songs are passed over, and why."""
    gone = [song.label for song in absent if song.is_missing]
    later = [song.label for song in absent if not song.is_missing]
    said = [f"{', '.join(gone)} (no file)"] if gone else []
    said += [f"{', '.join(later)} (not compared yet)"] if later else []
    left = n_absent - len(absent)
    said += [f"{left} that {'has' if left == 1 else 'have'} left the library"] if left else []
    return f"Skipped: {'; '.join(said)}."


def show_rows(now: Snapshot, walker: Walk, draft: PlaylistDraft, shown: DrawnPlaylist) -> None:
    """The songs with the reasons between them, and ways to go on."""

    def act(action: Action) -> None:
        _act(now, walker, action)

    rows = [
        _row(song, edge.reason if edge else None, is_kept=song.id in draft.kept)
        for song, edge in zip(shown.songs, shown.edges, strict=True)
    ]
    song_list(rows, key="playlist_rows", on_action=act, editable=True, scroll_to=IS_NEW.get())
    IS_NEW.set(False)
    _ways_on(now, walker, draft)
    step, place = _WHY.get(), _ADD_AT.get()
    _WHY.set(None)
    _ADD_AT.set(None)
    if place is not None:
        _choose_song(now, place)
    if step is not None and step[1] < len(draft.song_ids):
        _why(now, walker, draft, *step)


def _row(song: Song, link: str | None, *, is_kept: bool) -> Row:
    return replace(row_of(song, link=link), is_kept=is_kept)


def _act(now: Snapshot, walker: Walk, action: Action) -> None:
    """Follow what a row asks for."""
    draft = PLAYLIST.get()
    if draft is None or action.index >= len(draft.song_ids):
        return  # the list is another one by now
    if action.kind == "play":
        play_songs(now.library, now.songs_at(now.rows_of(draft.song_ids)), action.index)
    elif action.kind == "move" and 0 <= action.to < len(draft.song_ids):
        change(draft.moved(action.index, action.to))
    elif action.kind == "insert":
        _ADD_AT.set(action.index + 1)
    elif action.kind == "drop":
        change(draft.dropped(action.index))
    elif action.kind == "keep":
        change(draft.toggled(draft.song_ids[action.index]))
    elif action.kind == "another":
        redraw_one(now, walker, action.index)
    elif action.kind == "redraw":
        redraw_after(now, walker, action.index)
    elif action.kind == "why" and action.index > 0:
        _WHY.set((action.index - 1, action.index))


@st.dialog("Add songs")
def _choose_song(now: Snapshot, place: int) -> None:
    """Choose a song or an album for a place of the list; what is in the list already comes from where it is."""
    draft = PLAYLIST.get()
    before = now.songs_by_id(draft.song_ids[place - 1 : place]) if draft is not None else []
    st.caption(f"After “{plain(before[0].title)}”." if before else "At the end.")
    find_song(
        "Title or album", key="playlist_add", on_pick=partial(_add, now, place), placeholder="Title or album",
        search=partial(song_matches, now, kinds=("song", "album")),
    )  # fmt: skip


def _add(now: Snapshot, place: int, kind: MatchKind, value: str) -> None:
    draft = PLAYLIST.get()
    ids = present_ids(now, ids_of_match(now, kind, value).tolist())
    if draft is None:
        return
    if not ids:
        st.toast("This song has not been compared yet: wait for the running job.", icon=":material/info:")
        return
    added = draft.inserted(place, ids)
    if len(added.song_ids) > MAX_SONGS:
        st.toast(f"A playlist has at most {MAX_SONGS:,} songs.", icon=":material/info:")
        return
    change(added)


def _same_songs(now: Snapshot, draft: PlaylistDraft) -> list[int]:
    """A number for each place of the list, the same for the same song and for versions of one."""
    works = works_of(now, now.rows_of(draft.song_ids))
    keys: list[Hashable] = [work or i for work, i in zip(works, draft.song_ids, strict=True)]
    return [keys.index(key) for key in keys]


def _ways_on(now: Snapshot, walker: Walk, draft: PlaylistDraft) -> None:
    n_kept = sum(i in draft.kept for i in draft.song_ids)
    room = min(MAX_SONGS, now.n_indexed) - len(draft.song_ids)
    _MORE.set(max(1, min(_MORE.get(), max(room, 1))))
    same = _same_songs(now, draft)
    n_repeats = len(same) - len(set(same))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Add songs", icon=":material/playlist_add:", key="playlist_add_end", on_click=_ADD_AT.set,
            args=(len(draft.song_ids),), help="At the end; the + of a row adds behind its song.",
        )  # fmt: skip
        if n_repeats:
            st.button(
                f"Remove {n_repeats} {'repeat' if n_repeats == 1 else 'repeats'}", icon=":material/filter_list:",
                key="playlist_repeats", on_click=change, args=(draft.without_repeats(same),),
                help="Songs that come again, and other versions of a song that comes before.",
            )  # fmt: skip
        st.button(
            "Regenerate around the kept songs", icon=":material/cached:", key="playlist_around",
            on_click=redraw_around, args=(now, walker), disabled=not n_kept or n_kept == len(draft.song_ids),
            help="Songs with a filled pin stay in place, and so do the songs named in the request.",
        )  # fmt: skip
        st.button(
            f"Add {_MORE.get()} more", icon=":material/more_horiz:",
            key="playlist_go_on", on_click=go_on, args=(now, walker, _MORE.get()), disabled=room <= 0,
            help="Keeps the playlist and continues from its last song.",
        )  # fmt: skip
        st.number_input(
            "Songs to add", 1, max(room, 1), key=_MORE.name, persist_state="session",
            width=140, label_visibility="collapsed",
            disabled=room <= 0,
        )  # fmt: skip


@st.dialog("Why this step?")
def _why(now: Snapshot, walker: Walk, draft: PlaylistDraft, here: int, there: int) -> None:
    """All that two songs have in common, with how likely each led from one to the other."""
    pair = draft.song_ids[here], draft.song_ids[there]
    (first_title, _), (second_title, _) = now.names_at(now.rows_of(pair))
    st.markdown(f"From **{plain(first_title)}** to **{plain(second_title)}**")
    reasons = walker.reasons(*pair, dialect_of(draft, walker))
    known = draft.taken.get(pair)
    taken = known.reason if known else (reasons[0].reason if reasons else "")
    first = [e for e in reasons if e.reason == taken]
    listed = [*first, *(e for e in reasons if e.reason != taken)][:_MAX_REASONS]
    for edge in sorted(listed, key=lambda e: -e.probability):
        words = f"{edge.probability:.0%} · {plain(edge.reason)}"
        st.progress(min(1.0, edge.probability), text=f":material/check: **{words}**" if edge.reason == taken else words)
    left = len(reasons) - len(listed)
    if left:
        rest = sum(e.probability for e in reasons) - sum(e.probability for e in listed)
        share = f"{rest:.0%}" if rest >= 0.005 else "less than 1%"
        st.caption(f"{left} more {'reason' if left == 1 else 'reasons'} with {share} together.")
    st.caption(
        "The ticked reason was used." if known else "You placed these together; the most likely reason is ticked."
    )
    if st.button(
        "Another song", icon=":material/alt_route:", key="playlist_another_way", type="primary",
        help="Replaces the second song.",
    ):  # fmt: skip
        redraw_one(now, walker, there)
        st.rerun()


def show_map(now: Snapshot, draft: PlaylistDraft) -> None:
    """The walk on the map."""
    song_map(
        now, key="playlist_map", path=draft.song_ids, chosen=draft.song_ids[0], height=420, legend=False,
        on_pick=lambda song_id: play_songs(now.library, now.songs_by_id([song_id]), preview=True),
    )  # fmt: skip
    st.caption("The playlist on the map; the red ring marks its start.")
