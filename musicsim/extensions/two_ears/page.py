"""Two ears on the Train page: what is predicted, blind questions for both people, and a playlist for both."""

import secrets
from dataclasses import replace

import numpy as np
import streamlit as st

from musicsim.explorer.playlists.shared_walk import share_walk
from musicsim.explorer.playlists.tracks import make_track
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.two_ears import questions
from musicsim.extensions.two_ears.ears import TwoEars, list_ears
from musicsim.extensions.two_ears.lists import JointPlaylist, generate_for_both
from musicsim.library.library import Place
from musicsim.library.stores.playlists import GENERATED, OWN_PLAYLISTS
from musicsim.ui.base import openers
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain, show_errors
from musicsim.ui.components.play_button import play_button
from musicsim.ui.components.song_finder import find_songs
from musicsim.ui.components.song_list import row_of, song_list

_MINE: Key[str | None] = Key("ears_mine", lambda: None, "id of your model", per_library=True)
_FRIEND: Key[str | None] = Key("ears_friend", lambda: None, "id of a friend's model", per_library=True)
_PERSON: Key[int] = Key("ears_person", lambda: 0, "the person to ask: 0 you, 1 your friend", per_library=True)
_QUESTION: Key[tuple[object, questions.Question] | None] = Key(
    "ears_question", lambda: None, "the pending question, and the models and person that it is for", per_library=True
)
_FIRST: Key[int | None] = Key("ears_first", lambda: None, "id of the first song of the playlist", per_library=True)
_LIST: Key[tuple[object, JointPlaylist] | None] = Key(
    "ears_list", lambda: None, "the playlist for both, and the models that it is for", per_library=True
)
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
        chosen = [_choose(label, key, names) for label, key in (("Your model", _MINE), ("Friend's model", _FRIEND))]
    with show_errors():
        two = _pair(snapshot.library.place, snapshot.revision, *chosen)
        st.markdown("\n".join(f"- {plain(line)}" for line in two.describe()))
        _ask(two)
        _show_results(two)
        _make_list(two)


def _choose(label: str, key: Key[str | None], names: dict[str, str]) -> str:
    if key.get() not in names:
        key.set(list(names)[0 if key is _MINE else -1])
    return str(st.selectbox(label, list(names), **key.widget(), format_func=lambda one: plain(names[one])))


@st.cache_resource(max_entries=4, show_spinner=False)
def _pair(place: Place, revision: int, mine: str, friend: str) -> TwoEars:
    return TwoEars([openers.snapshot(mine), openers.snapshot(friend)])


def _ask(two: TwoEars) -> None:
    """Draw a question, which shows neither names of songs nor whether it is a random triple, and the results."""
    st.header("Which song is more like the first?", anchor=False)
    st.segmented_control(
        "Who is listening?", (0, 1), **_PERSON.widget(), format_func=lambda at: plain(two.people[at]), required=True
    )
    ear, library = two.ears[_PERSON.get()], two.library
    answers = questions.list_answers(two, library)
    key, pending = _QUESTION.get() or (None, None)
    if key != (two.model_ids, ear.model_id):
        pending = None
    songs = two.ears[0].snapshot.songs_by_id(pending.song_ids) if pending else []
    if pending is None or len(songs) < len(pending.song_ids):
        pending = questions.next_question(two, answers, ear, np.random.default_rng())
        if pending is None:
            st.info("You have answered all questions. Add songs for more.", icon=":material/info:")
            return
        _QUESTION.set(((two.model_ids, ear.model_id), pending))
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
            st.button(label, key=f"ears_answer_{choice}", shortcut=shortcut, on_click=_answer, args=(two, choice))


def _show_results(two: TwoEars) -> None:
    answers = questions.list_answers(two, two.library)
    n = [len({answer.id for answer in answers if answer.context["ear"] == one.model_id}) for one in two.ears]
    more = st.expander(f"Results ({n[0]} and {n[1]} answers)", key="ears_results", on_change="rerun")
    if more.open:
        lines = questions.describe(two, questions.summarize(two, answers))
        more.markdown("\n".join(f"- {plain(line)}" for line in lines))


def _answer(two: TwoEars, choice: int | None) -> None:
    ear = two.ears[_PERSON.get()]
    key, question = _QUESTION.get() or (None, None)
    if question is not None and key == (two.model_ids, ear.model_id):  # not before the new person's question is shown
        questions.record(two, two.library, question, ear, choice)
        _QUESTION.set(None)


def _make_list(two: TwoEars) -> None:
    st.header("A playlist for both", anchor=False)
    snapshot = two.ears[0].snapshot
    first = _FIRST.get()
    find_songs(
        snapshot, "First song", key="ears_first_finder", chosen=[] if first is None else [first],
        on_change=lambda ids: _FIRST.set(next(iter(ids), None)), placeholder="random each time", most=1,
    )  # fmt: skip
    if st.button("Make a playlist for both", icon=":material/group:", key="ears_make"):
        made = generate_for_both(two, first, walk_of=share_walk, random_state=secrets.randbits(32))
        _LIST.set((two.model_ids, made))
    key, both = _LIST.get() or (None, None)
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
