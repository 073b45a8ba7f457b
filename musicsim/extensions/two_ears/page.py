"""Two ears on the Train page: what is predicted, blind questions for both people, and a playlist for both."""

import secrets
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from musicsim.explorer.playlists.shared_walk import share_walk
from musicsim.explorer.playlists.tracks import make_track
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.two_ears import questions
from musicsim.extensions.two_ears.ears import Ear, TwoEars, list_ears
from musicsim.extensions.two_ears.lists import JointPlaylist, generate_for_both
from musicsim.library.library import Place
from musicsim.library.stores.playlists import GENERATED, OWN_PLAYLISTS
from musicsim.ui.base import openers
from musicsim.ui.base.keys import Key, kept
from musicsim.ui.base.text import plain, show_errors
from musicsim.ui.components.play_button import play_button
from musicsim.ui.components.song_finder import find_songs
from musicsim.ui.components.song_list import row_of, song_list


@dataclass(slots=True)
class _State:
    """The pending question and the playlist, each with what it is for, and the id of the playlist's first song."""

    question: tuple[object, questions.Question] | None = None
    playlist: tuple[object, JointPlaylist] | None = None
    first: int | None = None


_STATE: Key[_State] = Key("ears", _State, "what the page shows", per_library=True)
_CHOICES = (
    ("Song 1 is more like the first", "1", 0),
    ("I am unsure", "0", None),
    ("Song 2 is more like the first", "2", 1),
)


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """Draw the choice of two models, a blind question for one of the people, the results, and the playlist."""
    names = {record.id: record.name for record in list_ears(snapshot.library)}
    if len(names) < 2:
        st.info(
            "You need two models that were trained on answers: yours, and one of a friend. Train on your answers in "
            "*Compare*, and import your friend's model file in *Models*.", icon=":material/hearing:",
        )  # fmt: skip
        return
    with st.container(horizontal=True):
        mine = _choose("Your model", "ears_mine", names, 0)
        friend = _choose("Friend's model", "ears_friend", names, len(names) - 1)
    with show_errors():
        two = _pair(snapshot.library.place, snapshot.revision, mine, friend)
        st.markdown("\n".join(f"- {plain(line)}" for line in two.describe()))
        _ask(two)
        _show_results(two)
        _make_list(two)


def _choose(label: str, key: str, names: dict[str, str], first: int) -> str:
    return str(st.selectbox(label, list(names), first, **kept(key), format_func=lambda one: plain(names[one])))


@st.cache_resource(max_entries=4, show_spinner=False)
def _pair(place: Place, revision: int, mine: str, friend: str) -> TwoEars:
    return TwoEars([openers.snapshot(mine), openers.snapshot(friend)])


def _ask(two: TwoEars) -> None:
    """Draw a question, which shows neither names of songs nor whether it is a random triple, and the results."""
    st.header("Which song is more like the first?", anchor=False)
    person = st.segmented_control(
        "Who is listening?", (0, 1), default=0, **kept("ears_person"), format_func=lambda at: plain(two.people[at]),
        required=True,
    )  # fmt: skip
    ear, library = two.ears[person], two.library
    answers = questions.list_answers(two, library)
    state = _STATE.get()
    key, pending = state.question or (None, None)
    if key != (two.model_ids, ear.model_id):
        pending = None
    songs = two.ears[0].snapshot.songs_by_id(pending.song_ids) if pending else []
    if pending is None or len(songs) < len(pending.song_ids):
        pending = questions.next_question(two, answers, ear, np.random.default_rng())
        if pending is None:
            st.info("You have answered all questions. Add songs for more.", icon=":material/info:")
            return
        state.question = (two.model_ids, ear.model_id), pending
        songs = two.ears[0].snapshot.songs_by_id(pending.song_ids)
    labels = ["The first song", "Song 1", "Song 2"]
    tracks = [
        replace(make_track(library, song, preview=True), title=label, artist="", cover_url="", is_blind=True)
        for song, label in zip(songs, labels, strict=True)
    ]
    with st.container(horizontal=True):
        for at, label in enumerate(labels):
            play_button(label, key=f"ears_song_{at}", library=library, tracks=tracks, start=at)
    with st.container(horizontal=True):
        for label, shortcut, choice in _CHOICES:
            st.button(label, key=f"ears_answer_{choice}", shortcut=shortcut, on_click=_answer, args=(two, ear, choice))


def _show_results(two: TwoEars) -> None:
    answers = questions.list_answers(two, two.library)
    n = [len({answer.id for answer in answers if answer.context["ear"] == one.model_id}) for one in two.ears]
    more = st.expander(f"Results ({n[0]} and {n[1]} answers)", key="ears_results", on_change="rerun")
    if more.open:
        lines = questions.describe(two, questions.summarize(two, answers))
        more.markdown("\n".join(f"- {plain(line)}" for line in lines))


def _answer(two: TwoEars, ear: Ear, choice: int | None) -> None:
    state = _STATE.get()
    key, question = state.question or (None, None)
    if question is not None and key == (two.model_ids, ear.model_id):  # not before the new person's question is shown
        questions.record(two, two.library, question, ear, choice)
        state.question = None


def _make_list(two: TwoEars) -> None:
    st.header("A playlist for both", anchor=False)
    snapshot, state = two.ears[0].snapshot, _STATE.get()

    def choose(ids: list[int]) -> None:
        state.first = next(iter(ids), None)

    find_songs(
        snapshot, "First song", key="ears_first_finder", chosen=[] if state.first is None else [state.first],
        on_change=choose, placeholder="random each time", most=1,
    )  # fmt: skip
    if st.button("Make a playlist for both", icon=":material/group:", key="ears_make"):
        made = generate_for_both(two, state.first, walk_of=share_walk, random_state=secrets.randbits(32))
        state.playlist = two.model_ids, made
    key, both = state.playlist or (None, None)
    if both is None or key != two.model_ids:
        return
    songs = list(both.songs)
    rows = [row_of(song, why=reason) for song, reason in zip(songs, ["", *both.reasons], strict=True)]
    song_list(two.library, rows, key="ears_songs")
    st.caption(plain(both.describe(two.people)))
    with st.container(horizontal=True):
        play_button("Play", key="ears_play", library=two.library, song_ids=[song.id for song in songs])
        st.button("Save", icon=":material/save:", key="ears_save", on_click=_save, args=(two, both))


def _save(two: TwoEars, both: JointPlaylist) -> None:
    name = f"For {two.people[0]} and {two.people[1]}"
    two.library.add_playlists([(name, None, [song.id for song in both.songs], GENERATED)], source=OWN_PLAYLISTS)
    st.toast(f"Saved as “{plain(name)}”.", icon=":material/check_circle:")
