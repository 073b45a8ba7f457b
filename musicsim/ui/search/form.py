"""The form of a search: words, filters, further examples, and a part of the first one."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import streamlit as st

from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.requests.options import options_of
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.words import Words, parse_words
from musicsim.ui.base.keys import Key
from musicsim.ui.base.openers import choices_of
from musicsim.ui.base.option_widgets import describe, limits, option_key
from musicsim.ui.base.text import plain
from musicsim.ui.components.filter_widgets import filter_values, filter_widgets
from musicsim.ui.components.search_examples import MAX_EXAMPLES, PART, SIGNED, get_examples, get_part, sample_evenly
from musicsim.ui.components.song_finder import MatchKind, find_song, ids_of_match, song_matches
from musicsim.ui.components.song_list import clock

_FIELDS = {1: "like", -1: "unlike"}
WORDS: Key[str] = Key("search_words", str, "words that results must match")
_SIGN: Key[int] = Key("search_sign", lambda: 1, "1 if results should be like the next example, -1 if unlike it")
_GENERAL = ("k", "per_artist", "hub_reduction")
_KEYS = {
    field: option_key(f"search_{field}", SearchRequest, field, per_library=field not in _GENERAL)
    for field in (*_GENERAL, *options_of(Filters))
    if field != "words"
}
_HUB_REDUCTION = {None: "library setting", True: "on", False: "off"}


def search_form(snapshot: Snapshot, search: str) -> SearchRequest:
    """Show the form and return its request; `search` is the key of the stored examples and part."""
    n, limit, words, narrow = st.columns([2, 3, 4, 2], vertical_alignment="bottom")
    n.segmented_control(**_widget("k"), options=(10, 20, 50), required=True)
    limit.number_input(**_widget("per_artist") | limits(SearchRequest, "per_artist"))
    words.text_input(
        **describe(SearchRequest, "words"), **WORDS.widget(), placeholder="slow piano 1960s", max_chars=200
    )
    choices = choices_of(snapshot)
    filters = filter_values(_KEYS, choices)
    # contains a dozen lists of names, which are only sent while it is open
    popover = narrow.popover(
        "Filters", icon=":material/filter_alt:", width="stretch", key="search_filters", on_change="rerun"
    )
    if popover.open:
        with popover:
            filter_widgets(SearchRequest, _KEYS, choices)
            st.selectbox(
                **_widget("hub_reduction"), options=list(_HUB_REDUCTION), format_func=_HUB_REDUCTION.__getitem__
            )
    parsed, examples = parse_words(snapshot, WORDS.get()), get_examples(search)
    show_conditions(snapshot, search, parsed)
    present = [i for i, row in zip(examples, snapshot.rows_of(examples).tolist(), strict=True) if row >= 0]
    like, unlike = (tuple(i for i in present if examples[i] == sign) for sign in (1, -1))
    return SearchRequest(
        **{field: _KEYS[field].get() for field in _GENERAL}, **filters,
        words=parsed.known, like=like, unlike=unlike, part=get_part(search),
    )  # fmt: skip


def _widget(field: str) -> dict[str, Any]:
    return describe(SearchRequest, field) | _KEYS[field].widget()


def add_examples(snapshot: Snapshot, search: str, seed_id: int | None) -> None:
    """Show a box that adds examples to a search."""
    examples = get_examples(search)

    def add(kind: MatchKind, value: str) -> None:
        found = ids_of_match(snapshot, kind, value)
        ids = [i for i in found[snapshot.rows_of(found) >= 0].tolist() if i != seed_id]
        room = MAX_EXAMPLES - len(examples)
        if ids and room > 0:
            SIGNED.set((search, examples | dict.fromkeys(sample_evenly(ids, room), _SIGN.get())))

    sign, find = st.columns([1, 3], vertical_alignment="bottom")
    sign.segmented_control(
        "More examples", list(_FIELDS), **_SIGN.widget(), required=True,
        format_func=lambda sign: describe(SearchRequest, _FIELDS[sign])["label"],
    )  # fmt: skip
    with find:
        find_song(
            "Add an example", key="search_add", on_pick=add, is_labelled=False, placeholder="Title, artist or album",
            search=partial(song_matches, snapshot, kinds=("artist", "album", "song")),
        )  # fmt: skip


def show_conditions(snapshot: Snapshot, search: str, words: Words) -> None:
    """Show the examples, the part and the words of a search; a click removes one."""
    examples, part = get_examples(search), get_part(search)
    labels = {song.id: plain(song.label) for song in snapshot.songs_by_id(examples)}

    def remove_example(ids: Sequence[int], place: int) -> None:
        SIGNED.set((search, {i: sign for i, sign in get_examples(search).items() if i != ids[place]}))

    with st.container(horizontal=True):
        for sign, field in _FIELDS.items():
            ids = [i for i in labels if examples[i] == sign]
            if ids:
                _show_removable(
                    describe(SearchRequest, field)["label"], [labels[i] for i in ids], key=f"search_{field}",
                    on_remove=partial(remove_example, ids),
                )  # fmt: skip
        if part is not None:
            _show_removable(
                describe(SearchRequest, "part")["label"], [f"{clock(part[0])} to {clock(part[1])}"], key="search_only",
                on_remove=lambda _: PART.set((search, None)),
            )  # fmt: skip
        if words.parts:
            _show_removable(
                "Songs that are", [plain(part.words) for part in words.parts], key="search_parts",
                on_remove=lambda place: WORDS.set(words.drop_part(place)),
            )  # fmt: skip
    if words.unknown:
        ignored = ", ".join(f"“{plain(word)}”" for word in words.unknown)
        st.caption(f":material/info: Nothing in this library matches {ignored}, so the search ignores it.")


def _show_removable(label: str, names: Sequence[str], *, key: str, on_remove: Callable[[int], None]) -> None:
    def remove() -> None:
        place = st.session_state[key]
        if place is not None:
            on_remove(place)

    st.pills(
        f"{label} (click to remove)", range(len(names)), format_func=lambda i: f"{names[i]} ✕", key=key,
        on_change=remove, wrap=True,
    )  # fmt: skip
