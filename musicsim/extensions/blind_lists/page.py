"""Which of two draws the better playlists, asked blind: two lists without names, an answer, then the names."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer.playlists.walk import DrawnPlaylist, ShuffleWalk, Walk
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.blind_lists.blind_test import (
    SHUFFLE,
    BlindPair,
    Choice,
    Contender,
    contenders,
    describe,
    draw_pair,
    opponent_of,
    record,
    tally,
)
from musicsim.library import Library
from musicsim.public import visitor_may
from musicsim.ui.base.keys import Key
from musicsim.ui.base.openers import snapshot, walk
from musicsim.ui.base.text import plain
from musicsim.ui.base.visitors import opinions
from musicsim.ui.components.listening import follow
from musicsim.ui.components.song_finder import find_songs
from musicsim.ui.components.song_list import Action, clock, row_of, song_list

_FEWEST, _USUAL, _MOST = 2, 8, 30
_MAX_REASONS = 8
_LABELS: dict[Choice, str] = {"left": "List 1 is better", "same": "No difference", "right": "List 2 is better"}
_SHORTCUTS: dict[Choice, str] = {"left": "1", "same": "0", "right": "2"}
_SAID: dict[Choice, str] = {
    "left": "You chose list 1.",
    "same": "You heard no difference.",
    "right": "You chose list 2.",
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """Two lists of the library in a folder; once there is an answer, it and its number."""

    library: Path
    pair: BlindPair
    chosen: Choice | None = None
    answer_id: int | None = None


_ASKED: Key[_Asked | None] = Key("blind_asked", lambda: None, "the two lists that are compared")
_ANSWERS: Key[list[tuple[Path, int]]] = Key(
    "blind_answers", list, "answers of this session, each with the folder of its library, that can be taken back"
)
_FIRST: Key[Contender | None] = Key("blind_first", lambda: None, "one of the two who draw lists")
_SECOND: Key[Contender | None] = Key("blind_second", lambda: None, "the other one")
_SONG: Key[int | None] = Key("blind_song", lambda: None, "id of the song that both lists begin with")
_WHY: Key[tuple[int, int] | None] = Key(
    "blind_why", lambda: None, "number of the list, and place of the song in it, whose step is to be explained"
)
_LENGTH: Key[int] = Key("blind_length", lambda: _USUAL, "songs of each list")


@visitor_may
def draw(_snapshot: Snapshot, *, busy: bool) -> None:
    """Two lists side by side, which is better, who drew them, and what came of all answers."""
    now = snapshot()
    if now.n_indexed < 2:
        st.info("Comparing playlists needs at least two songs: add more.", icon=":material/info:")
        return
    st.caption(
        "Two playlists are generated from the same request; which is whose is hidden until you answer. "
        "Listen for how one song leads to the next, not for a single song you like."
    )
    sides = _choose(now)
    request = _request(now)
    asked = _ASKED.get()
    if asked is not None and (
        asked.library != now.library.folder or {asked.pair.left_is, asked.pair.right_is} != set(sides)
    ):
        asked = None
    if asked is None:
        is_wanted = st.button("Generate two playlists", icon=":material/casino:", key="blind_draw", type="primary")
    else:
        _show_pair(now, asked)
        # the names come where the question stood: nobody has to look for them
        is_wanted = _question(asked.pair) if asked.chosen is None else _reveal(asked)
    if is_wanted:
        _draw(now, sides, request)
    _tally(now.library)


# --- who, and what is asked of them ---------------------------------------------------------------


@st.cache_resource(max_entries=4, show_spinner=False)
def _contenders(folder: Path, revision: int, _library: Library) -> list[Contender]:
    return contenders(_library)


def _choose(now: Snapshot) -> tuple[Contender, Contender]:
    able = _contenders(now.library.folder, now.revision, now.library)
    usual = next((one for one in able if now.record and one.model_id == now.record.id), SHUFFLE)
    if _FIRST.get() not in able:
        _FIRST.set(usual)
    left, right = st.columns(2, gap="medium")
    _FIRST.keep()
    first = left.selectbox(
        "Compare", able, key=_FIRST.name, format_func=_words_of, help="A model's walk, or one of its dialects."
    )
    others = [one for one in able if one != first]
    if _SECOND.get() not in others:
        against = opponent_of(now.library, first.model_id) if first != SHUFFLE else usual
        _SECOND.set(against if against in others else others[0])
    _SECOND.keep()
    second = right.selectbox(
        "with", others, key=_SECOND.name, format_func=_words_of,
        help="The shuffle is the baseline that any of them should beat.",
    )  # fmt: skip
    return first, second


def _words_of(one: Contender) -> str:
    return "shuffle (every song equally likely)" if one == SHUFFLE else one.name


def _request(now: Snapshot) -> PlaylistRequest:
    first = _SONG.get()
    if first is not None and now.rows_of([first])[0] < 0:
        first = None
        _SONG.set(None)
    _LENGTH.keep()
    left, right = st.columns([3, 1], gap="medium")
    with left:
        find_songs(
            now, "First song of both", key=f"{_SONG.name}_finder", chosen=[] if first is None else [first],
            on_change=lambda ids: _SONG.set(next(iter(ids), None)), placeholder="random each time", most=1,
        )  # fmt: skip
    length = right.number_input("Songs", _FEWEST, _MOST, key=_LENGTH.name)
    return PlaylistRequest(length=int(length), first=first)


def _walk_of(one: Contender) -> Walk:
    return walk(snapshot(one.model_id)) if one != SHUFFLE else ShuffleWalk(snapshot())


def _draw(now: Snapshot, sides: tuple[Contender, Contender], request: PlaylistRequest) -> None:
    try:
        pair = draw_pair(sides, (_walk_of(sides[0]), _walk_of(sides[1])), request)
    except (MusicsimError, ValueError) as error:
        st.error(plain(error), icon=":material/error:")
        return
    _ASKED.set(_Asked(now.library.folder, pair))
    st.rerun()  # the button above says another thing now


# --- the lists and the answer ---------------------------------------------------------------------


def _show_pair(now: Snapshot, asked: _Asked) -> None:
    pair = asked.pair
    is_told = asked.chosen is not None
    left, right = st.columns(2, gap="large")
    for column, number, drawn, who in ((left, 1, pair.left, pair.left_is), (right, 2, pair.right, pair.right_is)):
        with column:
            st.markdown(f"**List {number}**" + (f" · {plain(who.name)}" if is_told else ""))
            _list(now, drawn, number, is_told=is_told)
    asked_for = _WHY.get()
    _WHY.set(None)
    if is_told and asked_for is not None:
        drawn, who = (pair.left, pair.left_is) if asked_for[0] == 1 else (pair.right, pair.right_is)
        _explain(drawn, asked_for[1], who)


def _question(pair: BlindPair) -> bool:
    """Which is better; whether two others are wanted instead of an answer."""
    if pair.is_equal:
        st.info(
            "Both keep producing the same list: there are few songs, or the two are almost the same. "
            "Compare two others, or ask for longer lists.", icon=":material/info:",
        )  # fmt: skip
    with st.container(horizontal=True, horizontal_alignment="center"):
        for choice, words in _LABELS.items():
            st.button(
                words, key=f"blind_{choice}", shortcut=_SHORTCUTS[choice], on_click=_answer, args=(choice,),
                disabled=pair.is_equal and choice != "same",
            )  # fmt: skip
        return st.button("Generate two others", icon=":material/casino:", key="blind_draw", type="tertiary")


def _list(now: Snapshot, drawn: DrawnPlaylist, number: int, *, is_told: bool) -> None:
    """A list to listen to; its reasons and notes would tell who drew it, and come after the answer."""
    songs = list(drawn.songs)

    def act(action: Action) -> None:
        if not now.songs_by_id([songs[action.index].id]):
            st.toast("This song was removed from the library.", icon=":material/warning:")
            return
        follow(action, now, songs)
        if action.kind == "why":
            _WHY.set((number, action.index))
        elif action.kind == "similar":
            st.toast("Explore and Search by example now start from this song.", icon=":material/check_circle:")

    # the first song was given: nothing led to it
    reasons = [None, *(edge.reason if edge is not None else None for edge in drawn.edges[1:])]
    rows = [row_of(song, link=reason if is_told else None) for song, reason in zip(songs, reasons, strict=True)]
    song_list(rows, key=f"blind_list_{number}", on_action=act)
    st.caption(f"{len(songs)} songs · {clock(drawn.duration_s)}")
    if is_told and drawn.notes:
        st.caption(plain("; ".join(drawn.notes).capitalize() + "."))


@st.dialog("Why this step?")
def _explain(drawn: DrawnPlaylist, index: int, who: Contender) -> None:
    """All that can have led from a song to the next one, by whoever drew the list."""
    here, there, taken = drawn.songs[index - 1], drawn.songs[index], drawn.edges[index]
    st.markdown(f"From **{plain(here.title)}** to **{plain(there.title)}**")
    try:
        reasons = _walk_of(who).reasons(here.id, there.id, who.dialect)
    except MusicsimError as error:
        st.info(plain(error), icon=":material/info:")
        return
    said = taken.reason if taken is not None else ""
    for edge in reasons[:_MAX_REASONS]:
        words = f"{edge.probability:.0%} · {plain(edge.reason)}"
        st.progress(min(1.0, edge.probability), text=f":material/check: **{words}**" if edge.reason == said else words)
    if said not in {edge.reason for edge in reasons[:_MAX_REASONS]}:
        st.caption(plain(f"It was chosen for a less likely reason: {said}."))
    st.caption("How likely each reason was; the ticked one was used.")


def _answer(choice: Choice) -> None:
    asked = _ASKED.get()
    if asked is None or asked.chosen is not None:
        return
    library = snapshot().library
    number = record(opinions(library), asked.pair, choice)
    _ASKED.set(_Asked(asked.library, asked.pair, choice, number))
    _ANSWERS.set([*_ANSWERS.get(), (library.folder, number)])


def _reveal(asked: _Asked) -> bool:
    assert asked.chosen is not None
    left, right = (plain(one.name) for one in (asked.pair.left_is, asked.pair.right_is))
    names = f"List 1 was made by **{left}**, list 2 by **{right}**."
    st.success(f"{_SAID[asked.chosen]} {names}", icon=":material/visibility:")
    return st.button("Next two lists", icon=":material/casino:", key="blind_draw", type="primary", shortcut="n")


def _take_back(library: Library) -> None:
    """Forget the last answer; its lists go, for their names have been seen."""
    *before, (folder, number) = _ANSWERS.get()
    opinions(library).judgments.forget(number)
    _ANSWERS.set([*before])
    asked = _ASKED.get()
    if asked is not None and (asked.library, asked.answer_id) == (folder, number):
        _ASKED.set(None)
    st.toast("The last answer was undone.", icon=":material/undo:")


# --- what came of it ------------------------------------------------------------------------------


def _tally(library: Library) -> None:
    st.subheader("So far", anchor=False)
    found = tally(library, opinions(library))
    if not found:
        st.caption("No answers yet. It takes ten or more to show anything.")
        return
    st.markdown("\n".join(f"- {plain(f'“{one.first}” and “{one.second}”: {describe(one)}.')}" for one in found))
    table = {
        "": [f"{plain(one.first)} – {plain(one.second)}" for one in found],
        "wins": [f"{one.wins_first} – {one.wins_second}" for one in found],
        "no difference": [str(one.ties) for one in found],
        "p": [f"{one.p_value:.2f}" if one.n_decided else "–" for one in found],
    }
    st.table(pd.DataFrame(table), hide_index=True, border="horizontal")
    st.caption(
        "p is the chance of a lead at least this large, for either, if both are equally good (sign test; "
        "“no difference” answers are left out). Decide beforehand how many answers you will give: "
        "stopping at a lucky moment shows a lead where there is none."
    )
    mine = [folder for folder, _ in _ANSWERS.get()]
    if mine and mine[-1] == library.folder:
        st.button("Undo last answer", icon=":material/undo:", key="blind_undo", on_click=_take_back, args=(library,))
