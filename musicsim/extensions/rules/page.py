"""The form for rules on the Playlists page: conditions, the number of songs that meet them now, and the first songs."""

from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from musicsim.audio import DESCRIPTORS
from musicsim.explorer import COMPARISON_WORDS, FIELD_CHOICES, FIELD_COMPARISONS, QUERY_FIELDS, Snapshot
from musicsim.extensions.rules.finding import RuleResult, find_songs
from musicsim.extensions.rules.form import CHOSEN, Form, FormLine, LineGroup
from musicsim.extensions.rules.page_actions import FORM, edit, show_buttons
from musicsim.extensions.rules.rule import MATCHES, MAX_SONGS, ORDERS, Rule, RuleRequest
from musicsim.ui.base import Key, choices_of, describe_option, off_if, plain, show_errors
from musicsim.ui.components import row_of, show_song_list, song_finder
from musicsim.wording import clock, count

_N_SHOWN = 20
_LABELS = {
    **{name: f"{name.capitalize()} ({descriptor.unit})" for name, descriptor in DESCRIPTORS.items()},
    "minutes": "Length (min)", "year": "Year", "rating": "Rating (1 to 5)",
    "plays": "Plays", "played": "Last played (days)", "added": "Date added (days)", "similar": "Similar to songs",
}  # fmt: skip
_PLACEHOLDERS = {
    "number": "such as 120", "names": "part of a name", "words": "such as slow piano 1960s", "days": "such as 30",
    "similar": "such as 100",
}  # fmt: skip
_ORDER_LABELS = {"random": "Random, new every day", "similar": "Similarity"}


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    st.caption(
        "A rule is a playlist of the songs that meet its conditions now. It changes when you listen, rate songs or add "
        "music."
    )
    _edit(snapshot)


@st.fragment
def _edit(snapshot: Snapshot) -> None:
    """Show the form and its songs; typing reruns only this part of the page."""
    form = _show_form(snapshot, FORM.get())
    FORM.set(form)
    rule, problems = form.rule()
    for problem in problems:
        st.warning(plain(problem), icon=":material/edit:")
    if form.is_untouched:
        st.caption("Fill in a condition, or change the order or a limit. Then the songs appear here.")
        return
    with show_errors():
        _show_songs(snapshot, form.name, rule)


def _show_form(snapshot: Snapshot, form: Form) -> Form:
    """Show the widgets, and return the form with their values."""
    match = form.match
    if len(form.groups) > 1:
        match = _choose_match("Songs must meet", "groups", f"{form.id}_groups", match)
    groups = tuple(_show_group(snapshot, group, len(form.groups) > 1) for group in form.groups)
    st.button(
        "Add a group", icon=":material/add_box:", key="rules_add_group", type="tertiary",
        on_click=edit, args=(Form.add_group,), help="A group is met if all, or any, of its conditions are met.",
    )  # fmt: skip
    return _show_limits(replace(form, match=match, groups=groups))


def _choose_match(label: str, things: str, key: str, match: Any) -> Any:
    return st.segmented_control(
        label, MATCHES, default=match, key=f"rules_match_{key}", required=True,
        format_func=lambda one: f"{one} of the {things}" if one == "all" else f"any of the {things}",
    )  # fmt: skip


def _show_group(snapshot: Snapshot, group: LineGroup, is_one_of_several: bool) -> LineGroup:
    with st.container(border=is_one_of_several):
        match = group.match
        if len(group.lines) > 1:
            match = _choose_match("Songs must meet", "conditions", str(group.id), match)
        lines = tuple(_show_line(snapshot, line) for line in group.lines)
        st.button(
            "Add a condition", icon=":material/add:", key=f"rules_add_{group.id}", type="tertiary",
            on_click=edit, args=(partial(Form.add_line, group_id=group.id),),
        )  # fmt: skip
    return replace(group, match=match, lines=lines)


def _show_line(snapshot: Snapshot, line: FormLine) -> FormLine:
    # a list of chosen songs below the value must not move the other widgets
    alignment: Any = "top" if line.field == "similar" else "bottom"
    with st.container(horizontal=True, vertical_alignment=alignment, key=f"rules_line_{line.id}"):
        field = st.selectbox(
            "Field", list(QUERY_FIELDS), list(QUERY_FIELDS).index(line.field), key=f"rules_field_{line.id}", width=210,
            format_func=lambda name: _LABELS.get(name, name.capitalize()),
        )  # fmt: skip
        line = line.use_field(field)
        kind = QUERY_FIELDS[field]
        words = FIELD_COMPARISONS[kind]
        comparison = st.selectbox(
            "Comparison", words, words.index(line.comparison), key=f"rules_comparison_{line.id}_{kind}", width=170,
            format_func=lambda word: COMPARISON_WORDS.get(word, word),
        )  # fmt: skip
        line = replace(line, comparison=comparison)
        with st.container(width="stretch"):
            line = _show_value(snapshot, line)
        st.button(
            "Remove", icon=":material/close:", key=f"rules_drop_{line.id}", type="tertiary",
            on_click=edit, args=(partial(Form.drop_line, line_id=line.id),),
        )  # fmt: skip
    return line


def _show_value(snapshot: Snapshot, line: FormLine) -> FormLine:
    kind = QUERY_FIELDS[line.field]
    if line.is_chosen:
        key: Key[list[str]] = Key(
            f"rules_names_{line.id}_{line.field}", lambda: list(line.names), "names of a condition"
        )
        field = "" if line.field in FIELD_CHOICES else CHOSEN[line.field]
        names = FIELD_CHOICES.get(line.field) or choices_of(snapshot).names.get(field, [])
        chosen = song_finder.find_names("Value", names, key=key, help="", placeholder="Any", field=field)
        return replace(line, names=tuple(chosen))
    placeholder = "such as 100 to 130" if line.comparison == "between" else _PLACEHOLDERS[kind]
    with st.container(horizontal=True):
        text = st.text_input(
            "Value", line.text, key=f"rules_text_{line.id}_{kind}", live=True, placeholder=placeholder, max_chars=200,
            width=110 if kind == "similar" else "stretch",
        )  # fmt: skip
        if kind == "similar":
            with st.container(width="stretch"):
                song_finder.find_songs(
                    snapshot, "Songs", key=f"rules_songs_{line.id}", chosen=line.songs,
                    on_change=lambda ids: edit(partial(Form.set_songs, line_id=line.id, songs=tuple(ids))),
                )  # fmt: skip
    return replace(line, text=text)


def _show_limits(form: Form) -> Form:
    direction = describe_option(RuleRequest, "descending")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        order = st.selectbox(
            **describe_option(RuleRequest, "order"), options=ORDERS, index=ORDERS.index(form.order),
            key=f"rules_order_{form.id}", width=210,
            format_func=_name_order,
        )  # fmt: skip
        descending = st.toggle(
            value=form.descending, key=f"rules_descending_{form.id}",
            **direction | off_if(order == "random", "A random order has no direction.", direction["help"]),
        )  # fmt: skip
        songs = st.number_input(
            **describe_option(RuleRequest, "songs"), min_value=1, max_value=MAX_SONGS, value=form.songs,
            key=f"rules_songs_{form.id}", width=150,
        )  # fmt: skip
        minutes = st.number_input(
            **describe_option(RuleRequest, "minutes"), min_value=1.0, value=form.minutes, step=5.0,
            key=f"rules_minutes_{form.id}", placeholder="no limit", width=150,
        )  # fmt: skip
    return replace(form, order=order, descending=descending, songs=songs, minutes=minutes)


def _name_order(order: str) -> str:
    return _ORDER_LABELS.get(order) or _LABELS[order].partition(" (")[0]


def _show_songs(snapshot: Snapshot, name: str, rule: Rule) -> None:
    found = find_songs(snapshot, rule)
    st.markdown(f"**{_count_words(snapshot, found)}**")
    show_buttons(snapshot, name, rule, found)
    songs = snapshot.songs_at(found.rows[:_N_SHOWN])
    if songs:
        show_song_list(snapshot.library, [row_of(song) for song in songs], key="rules_songs_found")
    if len(found.rows) > len(songs):
        st.caption(f"The first {len(songs)} of {count(len(found.rows), 'song')}.")


def _count_words(snapshot: Snapshot, found: RuleResult) -> str:
    n = found.n_matching
    meets = "meets" if n == 1 else "meet"
    words = f"{count(n, 'song')} {meets} the conditions"
    if n > len(found.rows):
        words += f"; {count(len(found.rows), 'song')} within the limits"
    seconds = float(snapshot.columns.duration_s[found.rows].sum())
    return f"{words} · {clock(seconds)}" if len(found.rows) else f"{words}"
