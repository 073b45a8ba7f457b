"""More examples than one, songs that results should be less like, and words: what a search goes by besides."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import streamlit as st

from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.words import understood
from musicsim.ui.base.option_widgets import labelled
from musicsim.ui.base.state import CHOSEN, EXAMPLE, Key
from musicsim.ui.base.text import plain
from musicsim.ui.components.song_finder import MatchKind, find_song, ids_of_match, song_matches

__all__ = ["MAX_EXAMPLES", "WORDS", "add_examples", "search_like", "show_words", "signed"]

MAX_EXAMPLES = 25
"""That are searched with at once."""
_FIELDS = {1: "like", -1: "unlike"}
WORDS: Key[str] = Key("search_words", str, "words that results fit")
_SIGNED: Key[tuple[str, dict[int, int]]] = Key(
    "search_signed",
    lambda: ("", {}),
    "what is searched with, and 1 or -1 by the ids of songs beside it",
    per_library=True,
)
_SIGN: Key[int] = Key("search_sign", lambda: 1, "whether the next example is one to be like")


def signed(name: str) -> dict[int, int]:
    """Songs beside what is searched with under a name: 1 for those to be like, -1 for those not to."""
    of, songs = _SIGNED.get()
    return songs if of == name else {}


def search_like(now: Snapshot, ids: Sequence[int]) -> None:
    """Search with some songs, of many some that are spread evenly; for callbacks and before a switch of pages."""
    if len(ids):
        first, *others = _some(ids, MAX_EXAMPLES)
        CHOSEN.set(first)
        EXAMPLE.set(None)
        _SIGNED.set((f"{now.library.name}:{first}", dict.fromkeys(others, 1)))


def _some(ids: Sequence[int], n: int) -> list[int]:
    return [int(ids[i]) for i in np.unique(np.linspace(0, len(ids) - 1, n).astype(int))]


def add_examples(now: Snapshot, name: str, searched_id: int | None) -> None:
    """A box that adds songs to be like, or less like, and those that were added, each to be removed by a click."""
    songs = signed(name)

    def add(kind: MatchKind, value: str) -> None:
        found = ids_of_match(now, kind, value)
        ids = [i for i in found[now.rows_of(found) >= 0].tolist() if i != searched_id]
        room = MAX_EXAMPLES - len(songs)
        if ids and room > 0:
            _SIGNED.set((name, songs | dict.fromkeys(_some(ids, room), _SIGN.get())))

    with st.container(horizontal=True, vertical_alignment="bottom"):
        _SIGN.get()
        st.segmented_control(
            "More examples", list(_FIELDS), key=_SIGN.name, required=True, persist_state="session",
            format_func=lambda sign: labelled(SearchRequest, _FIELDS[sign])["label"],
        )  # fmt: skip
        find_song(
            "Add an example", key="search_add", on_pick=add, is_labelled=False,
            search=partial(song_matches, now, kinds=("artist", "album", "song")),
        )  # fmt: skip
    labels = {song.id: plain(song.label) for song in now.songs_by_id(songs)}
    for sign, field in _FIELDS.items():
        ids = [i for i in labels if songs[i] == sign]
        if ids:
            _removable(
                f"{labelled(SearchRequest, field)['label']} (click to remove)", [labels[i] for i in ids],
                key=f"search_{field}",
                on_remove=partial(_remove, name, ids),
            )  # fmt: skip


def _remove(name: str, ids: Sequence[int], place: int) -> None:
    _SIGNED.set((name, {i: sign for i, sign in signed(name).items() if i != ids[place]}))


def show_words(now: Snapshot) -> str:
    """What the words of the form mean, each part to be removed by a click; returns those that mean something."""
    said = understood(now, WORDS.get())
    if said.parts:
        _removable(
            "Songs that are (click to remove)", [plain(part.words) for part in said.parts], key="search_parts",
            on_remove=lambda place: WORDS.set(said.without(place)),
        )  # fmt: skip
    if said.unknown:
        words = ", ".join(f"“{plain(word)}”" for word in said.unknown)
        st.caption(f":material/info: Nothing in your collection is known by {words}: left out of the search.")
    return said.known


def _removable(label: str, names: Sequence[str], *, key: str, on_remove: Callable[[int], None]) -> None:
    """Names that go when they are clicked."""

    def remove() -> None:
        place = st.session_state[key]
        if place is not None:
            on_remove(place)

    st.pills(label, range(len(names)), format_func=lambda i: f"{names[i]} ✕", key=key, on_change=remove)
