"""Part of the Servers section for players in other programs: a switch, the token and the rules."""

from dataclasses import replace
from typing import Any

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer import Snapshot
from musicsim.extensions.player_engine.access import PlayerRules, answer_players, player_access, refuse_players
from musicsim.library import Library
from musicsim.ui.base import choices_of, describe_option, off_if, option_key, option_limits, plain, toast_errors
from musicsim.ui.components import find_names

_NAMES = ("no_folders", "no_artists", "no_tags")
_KEYS = {
    field: option_key(f"players_{field}", PlayerRules, field, per_library=True)
    for field in (*_NAMES, "duration_s", "per_artist", "jellyfin")
}


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    library = snapshot.library
    st.header("Players", anchor=False)
    try:
        access = player_access(library)
    except MusicsimError as error:
        st.error(plain(error), icon=":material/error:")
        return
    st.toggle(
        "Give players access", access is not None, key="players_on",
        on_change=lambda: _apply(library, PlayerRules() if st.session_state["players_on"] else None),
        help="While the app is running, OpenSubsonic players and plugins for Navidrome, Ampache and other servers can "
        "get similar songs, paths and similar artists from this library. They must send the token. To set them up, "
        "see docs/connect/players.md.",
    )  # fmt: skip
    if access is None:
        return
    st.caption("Token, also used as the password:")
    st.code(access.token, language=None)
    with st.expander("Rules for players", icon=":material/filter_alt:"):
        _draw_rules(snapshot, access.rules)


def _apply(library: Library, rules: PlayerRules | None) -> None:
    with toast_errors():
        if rules is None:
            refuse_players(library)
        else:
            answer_players(library, rules)


def _draw_rules(snapshot: Snapshot, rules: PlayerRules) -> None:
    choices = choices_of(snapshot)
    span = choices.ranges.get("duration_s")
    for field, key in _KEYS.items():
        if key.name not in st.session_state:
            value = getattr(rules, field)
            key.set(sorted(value) if field in _NAMES else value or "" if field == "jellyfin" else value)
    for field in _NAMES:
        names = sorted({*choices.names.get(field, ()), *getattr(rules, field)})  # rules can contain parent folders
        if names:
            find_names(**describe_option(PlayerRules, field), names=names, key=_KEYS[field], placeholder="None")
    if span:
        low, high = _KEYS["duration_s"].get() or span
        _KEYS["duration_s"].set((max(int(low), span[0]), min(int(high), span[1])))
        st.slider(
            **describe_option(PlayerRules, "duration_s"),
            key=_KEYS["duration_s"].name,
            min_value=span[0],
            max_value=span[1],
        )
    st.number_input(**option_limits(PlayerRules, "per_artist"), key=_KEYS["per_artist"].name)
    st.text_input(**describe_option(PlayerRules, "jellyfin"), key=_KEYS["jellyfin"].name, placeholder="/media/music")
    values: dict[str, Any] = {field: frozenset(_KEYS[field].get()) for field in _NAMES}
    values |= {"per_artist": _KEYS["per_artist"].get(), "jellyfin": _KEYS["jellyfin"].get().strip() or None}
    if span:
        values["duration_s"] = None if _KEYS["duration_s"].get() == span else _KEYS["duration_s"].get()
    new = replace(rules, **values)
    st.button(
        "Save", icon=":material/check:", key="players_save", on_click=_apply, args=(snapshot.library, new),
        **off_if(new == rules, "There are no changes to save."),
    )  # fmt: skip
