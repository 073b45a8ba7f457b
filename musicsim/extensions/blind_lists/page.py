"""The blind test on the Playlists page: two anonymous playlists and, after the answer, their names."""

import pandas as pd
import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer import GeneratedPlaylist, PlaylistRequest, ShuffleWalk, Snapshot, Walk, share_walk
from musicsim.extensions.blind_lists import blind_test as blind
from musicsim.library import Library, Place
from musicsim.public import visitor_may
from musicsim.ui.base import DIALOG, Key, close_dialog, kept, openers, opinions, plain, show_errors, subject_of
from musicsim.ui.components import (
    Action,
    Asked,
    Session,
    Sitting,
    find_first_song,
    row_of,
    show_choices,
    show_song_list,
    show_undo,
)
from musicsim.wording import clock, count

_MIN_LENGTH, _DEFAULT_LENGTH, _MAX_LENGTH = 2, 8, 30
_MAX_REASONS = 8
_STEP = "blind step"  # name of the dialog that explains a song's position in a playlist
_KEY = "blind"
_LABELS = ("List 1 is better", "No difference", "List 2 is better")
_CONFIRMATIONS = {0: "You chose list 1.", None: "You heard no difference.", 1: "You chose list 2."}

_SESSION = Session(Key(_KEY, Sitting[blind.BlindPair], "pairs of playlists, and the answers"), blind.record)
_FIRST: Key[int | None] = Key("blind_first_song", lambda: None, "first song of both playlists")


@visitor_may
def draw(_snapshot: Snapshot, *, busy: bool) -> None:
    """Draw two playlists side by side, the question or the contenders' names, and a tally of all answers."""
    snapshot = openers.snapshot()
    if snapshot.n_indexed < 2:
        st.info("You need at least two songs to compare playlists. Add more.", icon=":material/info:")
        return
    st.caption(
        "Two playlists are generated from the same request. After you answer, you see which model generated each "
        "playlist. Pay attention to how one song leads to the next, not to single songs."
    )
    sides = _choose(snapshot)
    request = _request(snapshot)
    asked = _SESSION.current(snapshot.library, lambda pair: {pair.left_is, pair.right_is} == set(sides))
    if asked is None:
        wants_pair = st.button("Generate two playlists", icon=":material/casino:", key="blind_draw", type="primary")
    else:
        _show_pair(snapshot, asked)
        # the names replace the question in the same place, where the listener is looking
        wants_pair = _ask(asked.question) if asked.answer_id is None else _reveal(asked)
    if wants_pair:
        _generate(snapshot, sides, request)
    _tally(snapshot.library)


@st.cache_resource(max_entries=4, show_spinner=False)
def _contenders(place: Place, revision: int, _library: Library) -> list[blind.Contender]:
    return blind.contenders(_library)


def _choose(snapshot: Snapshot) -> tuple[blind.Contender, blind.Contender]:
    choices = _contenders(snapshot.library.place, snapshot.revision, snapshot.library)
    in_use = next((one for one in choices if snapshot.record and one.model_id == snapshot.record.id), blind.SHUFFLE)
    left, right = st.columns(2, gap="medium")
    first = left.selectbox(
        "Compare",
        choices,
        choices.index(in_use) if in_use in choices else 0,
        **kept("blind_first"),
        format_func=_label,
        help="Model or dialect that generates one of the two playlists.",
    )
    others = [one for one in choices if one != first]
    opponent = blind.opponent_of(snapshot.library, first.model_id) if first != blind.SHUFFLE else in_use
    second = right.selectbox(
        "with", others, others.index(opponent) if opponent in others else 0, **kept("blind_second"), format_func=_label,
        help="The shuffle is the baseline that every model should beat.",
    )  # fmt: skip
    return first, second


def _label(contender: blind.Contender) -> str:
    return "shuffle (every song equally likely)" if contender == blind.SHUFFLE else contender.name


def _request(snapshot: Snapshot) -> PlaylistRequest:
    left, right = st.columns([3, 1], gap="medium")
    with left:
        first = find_first_song(snapshot, "First song of both", _FIRST, key="blind_song_finder")
    length = right.number_input("Songs", _MIN_LENGTH, _MAX_LENGTH, _DEFAULT_LENGTH, **kept("blind_length"))
    return PlaylistRequest(length=int(length), first=first)


def _walk_of(contender: blind.Contender) -> Walk:
    snapshot = openers.snapshot(contender.model_id)
    return ShuffleWalk(snapshot) if contender == blind.SHUFFLE else share_walk(snapshot)


def _generate(snapshot: Snapshot, sides: tuple[blind.Contender, blind.Contender], request: PlaylistRequest) -> None:
    with show_errors(ValueError):
        pair = blind.draw_pair(sides, (_walk_of(sides[0]), _walk_of(sides[1])), request)
        _SESSION.ask(snapshot.library, pair)
        st.rerun()  # needed because the button above now has a different label


def _show_pair(snapshot: Snapshot, asked: Asked[blind.BlindPair]) -> None:
    pair, is_answered = asked.question, asked.answer_id is not None
    sides = ((pair.left, pair.left_is), (pair.right, pair.right_is))
    columns = st.columns(2, gap="large")
    for number, (column, (drawn, contender)) in enumerate(zip(columns, sides, strict=True), start=1):
        with column:
            st.markdown(f"**List {number}**" + (f" · {plain(contender.name)}" if is_answered else ""))
            _show_playlist(snapshot, drawn, number, is_answered=is_answered)
    step = subject_of(_STEP)
    if is_answered and step is not None:
        number, place = step
        drawn, contender = sides[number - 1]
        _explain(drawn, place, contender)


def _ask(pair: blind.BlindPair) -> bool:
    """Draw the question; return True if the user wants different playlists instead of answering."""
    if pair.is_equal:
        st.info(
            "Both keep producing the same playlist, because they are too similar or there are too few songs. Compare "
            "a different pair, or request longer playlists.", icon=":material/info:",
        )  # fmt: skip
    with st.container(horizontal=True, horizontal_alignment="center"):
        because = "Both lists are the same." if pair.is_equal else ""
        show_choices(_SESSION, _LABELS, key=_KEY, disabled_because=because)
        return st.button("Generate two new playlists", icon=":material/casino:", key="blind_draw", type="tertiary")


def _show_playlist(snapshot: Snapshot, drawn: GeneratedPlaylist, number: int, *, is_answered: bool) -> None:
    """Draw a playlist. Reasons and notes stay hidden until the answer, because they reveal the contender."""
    songs = list(drawn.songs)

    def act(action: Action) -> None:
        if action.kind == "why":
            DIALOG.set((_STEP, (number, action.index)))

    # no transition leads to the first song
    reasons = [None, *(edge.reason if edge is not None else None for edge in drawn.edges[1:])]
    rows = [row_of(song, link=reason if is_answered else None) for song, reason in zip(songs, reasons, strict=True)]
    show_song_list(snapshot.library, rows, key=f"blind_list_{number}", on_action=act)
    st.caption(f"{count(len(songs), 'song')} · {clock(drawn.duration_s)}")
    if is_answered and drawn.notes:
        st.caption(plain("; ".join(drawn.notes).capitalize() + "."))


@st.dialog("Why this step?", on_dismiss=close_dialog)
def _explain(drawn: GeneratedPlaylist, index: int, contender: blind.Contender) -> None:
    previous, song, used = drawn.songs[index - 1], drawn.songs[index], drawn.edges[index]
    st.markdown(f"From **{plain(previous.title)}** to **{plain(song.title)}**")
    try:
        reasons = _walk_of(contender).reasons(previous.id, song.id, contender.dialect)[:_MAX_REASONS]
    except MusicsimError as error:
        st.info(plain(error), icon=":material/info:")
        return
    label = used.label if used is not None else ""
    for edge in reasons:
        text = f"{edge.probability:.0%} · {plain(edge.label)}"
        st.progress(min(1.0, edge.probability), text=f":material/check: **{text}**" if edge.label == label else text)
    if label not in {edge.label for edge in reasons}:
        st.caption(plain(f"The song was chosen for a less likely reason: {label}."))
    st.caption("Percentages show how likely each reason was; a check marks the reason that was used.")


def _reveal(asked: Asked[blind.BlindPair]) -> bool:
    left, right = (plain(one.name) for one in (asked.question.left_is, asked.question.right_is))
    names = f"List 1 was generated by **{left}**, list 2 by **{right}**."
    st.success(f"{_CONFIRMATIONS[asked.chosen]} {names}", icon=":material/visibility:")
    return st.button("Next two lists", icon=":material/casino:", key="blind_draw", type="primary", shortcut="n")


def _tally(library: Library) -> None:
    st.header("So far", anchor=False)
    tallies = blind.tally(library, opinions(library))
    if not tallies:
        st.caption("No answers yet. It takes ten or more to show a difference.")
        return
    st.markdown("\n".join(f"- {plain(f'“{one.first}” and “{one.second}”: {one.describe()}.')}" for one in tallies))
    table = {
        "": [f"{plain(one.first)} – {plain(one.second)}" for one in tallies],
        "wins": [f"{one.wins_first} – {one.wins_second}" for one in tallies],
        "no difference": [str(one.ties) for one in tallies],
        "p": [f"{one.p_value:.2f}" if one.n_decided else "–" for one in tallies],
    }
    st.table(pd.DataFrame(table), hide_index=True, border="horizontal")
    st.caption(
        "p is the probability of a lead at least this large, for either contender, if both are equally good (sign "
        "test; “no difference” answers are ignored). Decide beforehand how many answers to give: if you stop "
        "as soon as one contender leads, the lead can be due to chance."
    )
    show_undo(_SESSION, library, key=_KEY)
