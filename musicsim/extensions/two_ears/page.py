"""Two ears on the Teach page: what is predicted, blind questions for both people, and a playlist for both."""

import secrets

import numpy as np
import streamlit as st

from musicsim.explorer import Snapshot, share_walk
from musicsim.extensions.two_ears import questions
from musicsim.extensions.two_ears.ears import TwoEars, list_ears
from musicsim.extensions.two_ears.lists import JointPlaylist, generate_for_both
from musicsim.library import GENERATED, OWN_PLAYLISTS, Place
from musicsim.ui.base import Key, kept, openers, plain, show_errors
from musicsim.ui.components import (
    Session,
    Sitting,
    find_first_song,
    row_of,
    show_cards,
    show_play_button,
    show_song_list,
)

_PLAYLIST: Key[tuple[object, JointPlaylist] | None] = Key(
    "ears_playlist", lambda: None, "the playlist, and the models that it is for", per_library=True
)
_FIRST: Key[int | None] = Key("ears_first", lambda: None, "first song of the playlist")


_SESSION = Session(
    Key("ears_asked", Sitting[questions.EarQuestion], "blind questions, and the answers"),
    questions.record,
    reveals=False,
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
    """Draw a question, which shows neither names of songs nor whether it is a random triple."""
    person = st.segmented_control(
        "Who is listening?", (0, 1), default=0, **kept("ears_person"), format_func=lambda at: plain(two.people[at]),
        required=True,
    )  # fmt: skip
    ear, library = two.ears[person], two.library

    def is_own(question: questions.EarQuestion) -> bool:
        is_known = all((one.snapshot.rows_of(question.song_ids) >= 0).all() for one in two.ears)
        return is_known and (question.models, question.ear) == (two.model_ids, ear.model_id)

    asked = _SESSION.current(library, is_own)
    if asked is None:
        skipped = [one.question for one in _SESSION.key.get().skipped]
        answers = questions.list_answers(two, library)
        question = questions.next_question(two, answers, ear, np.random.default_rng(), skipped)
        if question is None:
            st.info("You have answered all questions. Add songs for more.", icon=":material/info:")
            return
        asked = _SESSION.ask(library, question)
    last = _SESSION.last_answer(library)
    # the names stay hidden even after the answer, because the other person gets the same questions
    last = last if last is not None and is_own(last.question) else None
    show_cards(_SESSION, two.ears[0].snapshot, asked, last, key="ears_cards", tells_names=False)


def _show_results(two: TwoEars) -> None:
    answers = questions.list_answers(two, two.library)
    n = [len({answer.id for answer in answers if answer.context["ear"] == one.model_id}) for one in two.ears]
    more = st.expander(f"Results ({n[0]} and {n[1]} answers)", key="ears_results", on_change="rerun")
    if more.open:
        lines = questions.describe(two, questions.summarize(two, answers))
        more.markdown("\n".join(f"- {plain(line)}" for line in lines))


def _make_list(two: TwoEars) -> None:
    st.header("A playlist for both", anchor=False)
    first = find_first_song(two.ears[0].snapshot, "First song", _FIRST, key="ears_first_finder")
    if st.button("Make a playlist for both", icon=":material/group:", key="ears_make"):
        made = generate_for_both(two, first, walk_of=share_walk, random_state=secrets.randbits(32))
        _PLAYLIST.set((two.model_ids, made))
    key, both = _PLAYLIST.get() or (None, None)
    if both is None or key != two.model_ids:
        return
    songs = list(both.songs)
    rows = [row_of(song, why=reason) for song, reason in zip(songs, ["", *both.reasons], strict=True)]
    show_song_list(two.library, rows, key="ears_songs")
    st.caption(plain(both.describe(two.people)))
    with st.container(horizontal=True):
        show_play_button("Play", key="ears_play", library=two.library, song_ids=[song.id for song in songs])
        st.button("Save", icon=":material/save:", key="ears_save", on_click=_save, args=(two, both))


def _save(two: TwoEars, both: JointPlaylist) -> None:
    name = f"For {two.people[0]} and {two.people[1]}"
    two.library.add_playlists([(name, None, [song.id for song in both.songs], GENERATED)], source=OWN_PLAYLISTS)
    st.toast(f"Saved as “{plain(name)}”.", icon=":material/check_circle:")
