"""Daily mixes on the Playlists page, and the switch that watches a folder on the Library page."""

from datetime import datetime
from functools import partial
from pathlib import Path

import streamlit as st

from musicsim import addresses
from musicsim.explorer import PlaylistDraft, Snapshot
from musicsim.extensions.daily.mixes import (
    SOURCE,
    DailyMix,
    DailyState,
    MixRun,
    playlist_servers,
    read_state,
    summarize,
    undo_daily_mixes,
)
from musicsim.extensions.daily.options import (
    ANY,
    NONE,
    PLAYS_TO_START,
    DailyOptions,
    DailySettings,
    change_settings,
    read_settings,
    watch_folder,
)
from musicsim.extensions.daily.watching import start_mixes
from musicsim.library import OWN_PLAYLISTS
from musicsim.ui import PLAYLIST_NAME, open_draft
from musicsim.ui.base import describe_option, off_if, option_limits, plain, toast_errors
from musicsim.ui.components import BUSY, show_playlist_row, watch_job
from musicsim.wording import capitalize, clock, count


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """Draw the mixes of the day, the switch, and a menu."""
    library, state, settings = snapshot.library, read_state(snapshot.library), read_settings(snapshot.library)
    is_on = settings.has_mixes(library)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header("Today", anchor=False, width="content")
        st.toggle(
            **describe_option(DailyOptions, "automatic"), value=is_on, key="daily_automatic",
            on_change=lambda: change_settings(library, DailyOptions(automatic=st.session_state["daily_automatic"])),
        )  # fmt: skip
        st.button(
            "Make them now", icon=":material/today:", key="daily_make", type="tertiary", on_click=_make,
            args=(snapshot,), **off_if(busy, BUSY),
        )  # fmt: skip
        with st.popover("Options", icon=":material/more_horiz:", key="daily_more", type="tertiary"):
            _show_more(snapshot, state, settings, busy=busy)
    watch_job(library, kinds=("daily", "pickup"), revision=snapshot.revision)
    if state.current is not None:
        for number, mix in enumerate(state.current.mixes):
            _show_mix(snapshot, state.current, number, mix)
    elif is_on:
        st.caption("The first mixes are made soon, while the app is running.")
    else:
        n_left = PLAYS_TO_START - library.player_plays.count() if settings.automatic is None else 0
        begins = f" They start by themselves after {count(n_left, 'more play')}." if n_left else ""
        st.caption(
            "Mixes of about an hour: around last week, loved songs not played lately, and regions of your music."
            + begins
        )


def draw_folder(snapshot: Snapshot, *, busy: bool, folder: Path) -> None:
    """Draw the switch that watches a music folder."""
    library, settings = snapshot.library, read_settings(snapshot.library)
    key = f"daily_watch_{folder}"
    st.toggle(
        "Watch", settings.watches(folder), key=key,
        on_change=lambda: watch_folder(library, folder, is_on=st.session_state[key]),
        **off_if(
            addresses.is_address(folder), "Addresses are not watched, because listing them may cost money.",
            f"New, changed and missing files are noticed while the app is running, every {settings.every} minutes.",
        ),
    )  # fmt: skip


def _make(snapshot: Snapshot) -> None:
    with toast_errors():
        start_mixes(snapshot.library)


def _undo(snapshot: Snapshot) -> None:
    with toast_errors():
        before = undo_daily_mixes(snapshot.library)
        st.toast(
            f"These are the mixes of {before.day}." if before else "The mixes were removed.", icon=":material/undo:"
        )


def _show_more(snapshot: Snapshot, state: DailyState, settings: DailySettings, *, busy: bool) -> None:
    """Show the last run, the mixes that were not made, and the settings."""
    run = state.current
    if run is not None:
        made_at = datetime.fromtimestamp(run.made_at).strftime("%Y-%m-%d %H:%M")
        st.caption(f"Last run: {made_at} · {plain(summarize(run))}")
        for skipped in run.skipped:
            st.caption(f"Not made: {plain(skipped.name)}. {plain(skipped.reason)}")
        st.button(
            "Return to the day before", icon=":material/undo:", key="daily_undo", on_click=_undo, args=(snapshot,),
            **off_if(busy, BUSY),
        )  # fmt: skip
    _show_settings(snapshot, settings)


def _show_mix(snapshot: Snapshot, run: MixRun, number: int, mix: DailyMix) -> None:
    present = snapshot.present_ids(mix.song_ids)
    show_playlist_row(
        snapshot.library, capitalize(mix.name.removeprefix("Daily mix: ")),
        f"{count(len(present), 'song')} · {clock(mix.duration_s)} · {mix.why}", key=f"daily_{number}",
        song_ids=present, on_open=partial(_open, snapshot, mix),
        actions={"Save a copy": partial(_copy, snapshot, f"{mix.name}, {run.day}", mix)},
        nothing_to_play="" if present else "The songs are no longer in the library.",
    )  # fmt: skip


def _open(snapshot: Snapshot, mix: DailyMix) -> None:
    saved = next((one for one in snapshot.library.playlists(source=SOURCE) if one.name == mix.name), None)
    if saved is not None:  # others may have made or undone mixes in the meantime
        open_draft(snapshot, PlaylistDraft.from_saved(saved, snapshot))
        PLAYLIST_NAME.set(mix.name)


def _copy(snapshot: Snapshot, name: str, mix: DailyMix) -> None:
    with toast_errors():
        snapshot.library.add_playlists([(name, None, mix.song_ids, mix.details)], source=OWN_PLAYLISTS)
        st.toast(f"Saved as “{plain(name)}”.", icon=":material/check_circle:")


def _show_settings(snapshot: Snapshot, settings: DailySettings) -> None:
    servers = [*dict.fromkeys([*playlist_servers(snapshot.library), *settings.servers])]
    with st.form("daily_settings", border=False):
        hours = st.text_input(**describe_option(DailyOptions, "hours"), value=settings.hours or ANY, key="daily_hours")
        cpu = st.number_input(**option_limits(DailyOptions, "cpu"), value=settings.cpu, step=5, key="daily_cpu")
        every = st.number_input(**option_limits(DailyOptions, "every"), value=settings.every, key="daily_every")
        folder = st.text_input(
            **describe_option(DailyOptions, "folder"), value=settings.folder or NONE, key="daily_folder"
        )
        chosen = list(settings.servers)
        if servers:
            chosen = st.multiselect(
                **describe_option(DailyOptions, "servers"),
                options=servers,
                default=settings.servers,
                key="daily_servers",
            )
        if st.form_submit_button("Save settings", key="daily_save"):
            with toast_errors(ValueError):
                options = DailyOptions(
                    hours=hours.strip() or ANY, cpu=int(cpu), every=int(every), folder=folder.strip() or NONE,
                    servers=tuple(chosen) or (NONE,),
                )  # fmt: skip
                change_settings(snapshot.library, options)
                st.toast("The settings were saved.", icon=":material/check_circle:")
