"""The conditions of a queue: filters, words, further examples, a part of the seed, and its direction."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from musicsim.explorer.playlists.queue import MAX_CALMER, MAX_EXAMPLES, SURPRISE
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.requests.options import options_of
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.matches import ONLY_SONGS, MatchKind, ids_of_match, song_matches
from musicsim.explorer.search.query import sample_evenly
from musicsim.explorer.snapshot.factors import list_factors
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.words import Words, parse_words
from musicsim.ui.base.keys import Key
from musicsim.ui.base.openers import choices_of
from musicsim.ui.base.option_widgets import describe, limits, option_key
from musicsim.ui.base.text import off_if, plain
from musicsim.ui.components.filter_widgets import filter_values, filter_widgets
from musicsim.ui.components.song_finder import find_song
from musicsim.ui.listen import state
from musicsim.ui.listen.seed import WORDS
from musicsim.ui.listen.state import LISTEN, ListenState, change
from musicsim.wording import clock

_FIELDS = {1: "like", -1: "unlike"}
_SIGN: Key[int] = Key("search_sign", lambda: 1, "1 if songs should be like the next example, -1 if unlike it")
_GENERAL = ("k", "per_artist", "hub_reduction")
_KEYS = {
    field: option_key(f"search_{field}", SearchRequest, field, per_library=field not in _GENERAL)
    for field in (*_GENERAL, "by", *options_of(Filters))
    if field != "words"
}
IS_REMOVED: Key[bool] = Key("listen_removed", bool, "True after a click on a chip, until the whole page has run again")
_HUB_REDUCTION = {None: "library setting", True: "on", False: "off"}


def request_of(snapshot: Snapshot, now: ListenState) -> SearchRequest:
    """Return the conditions as a request for the nearest songs."""
    examples = now.examples
    present = [i for i, row in zip(examples, snapshot.rows_of(examples).tolist(), strict=True) if row >= 0]
    like, unlike = (tuple(i for i in present if examples[i] == sign) for sign in (1, -1))
    return SearchRequest(
        **{field: _KEYS[field].get() for field in _GENERAL}, **filter_values(_KEYS, choices_of(snapshot)),
        words=WORDS.get(), like=like, unlike=unlike, part=now.part,
        by=_factor_of(snapshot),
    )  # fmt: skip


def _factor_of(snapshot: Snapshot) -> str:
    """Return the chosen factor; empty for everything, or if the model in use does not have the factor."""
    factor: str = _KEYS["by"].get()
    return factor if factor in list_factors(snapshot) else ""


def _widget(field: str) -> dict[str, Any]:
    return describe(SearchRequest, field) | _KEYS[field].widget()


def fill_filters(snapshot: Snapshot, popover: DeltaGenerator) -> None:
    """Show the filters in a popover."""
    with popover, st.container(key="filters"):
        # The key contains the value, because an old box would bring back words that were removed elsewhere.
        widget = f"search_words_{WORDS.get()}"
        st.text_input(
            **describe(SearchRequest, "words"), value=WORDS.get(), key=widget, placeholder="slow piano 1960s",
            max_chars=200, on_change=lambda: WORDS.set(st.session_state[widget]),
        )  # fmt: skip
        filter_widgets(SearchRequest, _KEYS, choices_of(snapshot))


def ranking_options(snapshot: Snapshot) -> None:
    """Show the options for the nearest songs."""
    if not _factor_of(snapshot):
        _KEYS["by"].set("")
    st.segmented_control(
        **_widget("by"), options=["", *list_factors(snapshot)], required=True,
        format_func=lambda name: plain(name) or "everything",
    )  # fmt: skip
    st.segmented_control(**_widget("k"), options=(10, 20, 50), required=True)
    st.number_input(**_widget("per_artist") | limits(SearchRequest, "per_artist"))
    st.selectbox(
        **_widget("hub_reduction"), options=list(_HUB_REDUCTION), format_func=_HUB_REDUCTION.__getitem__,
        placeholder=_HUB_REDUCTION[None],
    )  # fmt: skip


def add_examples(snapshot: Snapshot, seed_id: int | None) -> None:
    """Show a box that adds examples."""

    def add(kind: MatchKind, value: str) -> None:
        examples = LISTEN.get().examples
        found = ids_of_match(snapshot, kind, value)
        ids = found[(snapshot.rows_of(found) >= 0) & (found != seed_id)]
        room = MAX_EXAMPLES - len(examples)
        if len(ids) and room > 0:
            change(examples={**examples, **dict.fromkeys(sample_evenly(ids, room).tolist(), _SIGN.get())})

    st.segmented_control(
        "More examples", list(_FIELDS), **_SIGN.widget(), required=True,
        format_func=lambda sign: describe(SearchRequest, _FIELDS[sign])["label"],
    )  # fmt: skip
    find_song(
        "Add an example", key="search_add", on_pick=add, is_labelled=False, placeholder="Title, artist or album",
        search=partial(song_matches, snapshot, kinds=("artist", "album", "song")),
    )  # fmt: skip


def show_conditions(snapshot: Snapshot, now: ListenState) -> None:
    """Show the conditions of the queue; a click removes one."""
    words = parse_words(snapshot, WORDS.get())
    with st.container(horizontal=True):
        _show_examples(snapshot, now)
        if now.part is not None:
            first, last = now.part
            _show_removable(
                describe(SearchRequest, "part")["label"], [f"{clock(first)} to {clock(last)}"], key="search_only",
                on_remove=lambda _: change(part=None),
            )  # fmt: skip
        if words.parts:
            _show_removable(
                "Songs that are", [plain(part.words) for part in words.parts], key="search_parts",
                on_remove=lambda place: WORDS.set(words.drop_part(place)),
            )  # fmt: skip
        if factor := _factor_of(snapshot):
            _show_removable(
                describe(SearchRequest, "by")["label"], [plain(factor)], key="search_factor",
                on_remove=lambda _: _KEYS["by"].set(""),
            )  # fmt: skip
        _show_direction(snapshot, now)
    _show_unknown(words)


def _show_examples(snapshot: Snapshot, now: ListenState) -> None:
    others = {i: sign for i, sign in now.examples.items() if i not in now.opening}
    labels = {song.id: plain(song.label) for song in snapshot.songs_by_id(others)}

    def remove_example(ids: Sequence[int], place: int) -> None:
        change(examples={i: sign for i, sign in LISTEN.get().examples.items() if i != ids[place]})

    for sign, field in _FIELDS.items():
        ids = [i for i in labels if others[i] == sign]
        if ids:
            _show_removable(
                describe(SearchRequest, field)["label"], [labels[i] for i in ids], key=f"search_{field}",
                on_remove=partial(remove_example, ids),
            )  # fmt: skip


def _show_direction(snapshot: Snapshot, now: ListenState) -> None:
    """Show the target, and how much calmer, livelier or more surprising the queue should be."""
    parts: list[tuple[str, dict[str, object]]] = []
    if now.target is not None:
        parts += [(f"to {plain(song.title)}", {"target": None}) for song in snapshot.songs_by_id([now.target])]
    if now.calmer:
        times = f" × {abs(now.calmer)}" if abs(now.calmer) > 1 else ""
        parts.append((f"{'calmer' if now.calmer > 0 else 'livelier'}{times}", {"calmer": 0}))
    if now.surprise != SURPRISE:
        parts.append(("more surprising", {"surprise": SURPRISE}))
    if parts:
        _show_removable(
            "Goes",
            [words for words, _ in parts],
            key="listen_direction",
            on_remove=lambda place: change(**parts[place][1]),  # type: ignore[arg-type]
        )


def _show_unknown(words: Words) -> None:
    if words.unknown:
        ignored = ", ".join(f"“{plain(word)}”" for word in words.unknown)
        st.caption(f":material/info: Nothing in this library matches {ignored}, so the search ignores it.")


def _show_removable(label: str, names: Sequence[str], *, key: str, on_remove: Callable[[int], None]) -> None:
    def remove() -> None:
        place = st.session_state[key]
        if place is not None:
            on_remove(place)
            IS_REMOVED.set(True)

    st.pills(
        f"{label} (click to remove)", range(len(names)), format_func=lambda i: f"{names[i]} ✕", key=key,
        on_change=remove, wrap=True,
    )  # fmt: skip


def show_chips(snapshot: Snapshot) -> None:
    """Show buttons that change the direction of the queue."""
    with st.popover("From here to…", key="listen_to"):
        find_song(
            "Lead to", key="listen_target", placeholder="Title", is_labelled=False,
            search=partial(song_matches, snapshot, kinds=ONLY_SONGS), on_pick=partial(_lead_to, snapshot),
        )  # fmt: skip
    calmer = LISTEN.get().calmer
    for label, step in (("Calmer", 1), ("Livelier", -1)):
        st.button(
            label, on_click=state.make_calmer, args=(step,),
            **off_if(
                calmer * step >= MAX_CALMER, f"No songs are {label.lower()} than these.",
                f"Plays only songs that are {label.lower()} than this one. Click again for even {label.lower()} songs.",
            ),
        )  # fmt: skip
    st.button(
        "More surprising", on_click=state.make_surprising,
        **off_if(
            state.is_most_surprising(), "The queue is as surprising as possible.",
            "Plays fewer of the nearest songs, and takes longer steps after them.",
        ),
    )  # fmt: skip


def _lead_to(snapshot: Snapshot, kind: MatchKind, value: str) -> None:
    for song_id in ids_of_match(snapshot, kind, value).tolist():
        change(target=song_id)
