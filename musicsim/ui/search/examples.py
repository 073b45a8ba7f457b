"""More examples than one, songs that results should be less like, and words: what a search goes by besides."""

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.words import Words
from musicsim.ui.base.keys import Key
from musicsim.ui.base.option_widgets import labelled
from musicsim.ui.base.text import plain
from musicsim.ui.components.search_examples import MAX_EXAMPLES, PART, SIGNED, chosen_part, signed, some_of
from musicsim.ui.components.song_finder import MatchKind, find_song, ids_of_match, song_matches
from musicsim.ui.components.song_list import clock

_FIELDS = {1: "like", -1: "unlike"}
WORDS: Key[str] = Key("search_words", str, "words that results fit")
_SIGN: Key[int] = Key("search_sign", lambda: 1, "whether the next example is one to be like")


def add_examples(now: Snapshot, name: str, searched_id: int | None) -> None:
    """A box that adds songs to be like, or less like."""
    songs = signed(name)

    def add(kind: MatchKind, value: str) -> None:
        found = ids_of_match(now, kind, value)
        ids = [i for i in found[now.rows_of(found) >= 0].tolist() if i != searched_id]
        room = MAX_EXAMPLES - len(songs)
        if ids and room > 0:
            SIGNED.set((name, songs | dict.fromkeys(some_of(ids, room), _SIGN.get())))

    which, find = st.columns([1, 3], vertical_alignment="bottom")
    _SIGN.get()
    which.segmented_control(
        "More examples", list(_FIELDS), key=_SIGN.name, required=True, persist_state="session",
        format_func=lambda sign: labelled(SearchRequest, _FIELDS[sign])["label"],
    )  # fmt: skip
    with find:
        find_song(
            "Add an example", key="search_add", on_pick=add, is_labelled=False,
            search=partial(song_matches, now, kinds=("artist", "album", "song")), placeholder="Title, artist or album",
        )  # fmt: skip


def _remove(name: str, ids: Sequence[int], place: int) -> None:
    SIGNED.set((name, {i: sign for i, sign in signed(name).items() if i != ids[place]}))


def show_asked(now: Snapshot, name: str, said: Words) -> None:
    """What a search goes by beside what it began with: songs, a part and words, each to be removed by a click."""
    songs, part = signed(name), chosen_part(name)
    labels = {song.id: plain(song.label) for song in now.songs_by_id(songs)}
    with st.container(horizontal=True):
        for sign, field in _FIELDS.items():
            ids = [i for i in labels if songs[i] == sign]
            if ids:
                _removable(
                    labelled(SearchRequest, field)["label"], [labels[i] for i in ids], key=f"search_{field}",
                    on_remove=partial(_remove, name, ids),
                )  # fmt: skip
        if part is not None:
            _removable(
                labelled(SearchRequest, "part")["label"], [f"{clock(part[0])} to {clock(part[1])}"], key="search_only",
                on_remove=lambda _: PART.set((name, None)),
            )  # fmt: skip
        if said.parts:
            _removable(
                "Songs that are", [plain(part.words) for part in said.parts], key="search_parts",
                on_remove=lambda place: WORDS.set(said.without(place)),
            )  # fmt: skip
    if said.unknown:
        words = ", ".join(f"“{plain(word)}”" for word in said.unknown)
        st.caption(f":material/info: Nothing in your collection is known by {words}: left out of the search.")


def _removable(label: str, names: Sequence[str], *, key: str, on_remove: Callable[[int], None]) -> None:
    """Names that go when they are clicked."""

    def remove() -> None:
        place = st.session_state[key]
        if place is not None:
            on_remove(place)

    st.pills(
        f"{label} (click to remove)",
        range(len(names)),
        format_func=lambda i: f"{names[i]} ✕",
        key=key,
        on_change=remove,
        wrap=True,
    )
