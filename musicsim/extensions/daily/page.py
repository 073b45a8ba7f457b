"""Daily mixes on the Playlist page: the mixes with the reason for each, the switch and the settings."""

from datetime import datetime

import streamlit as st

from musicsim.explorer import Snapshot
from musicsim.extensions.daily.mixes import DailyMix, MixRun, playlist_servers, read_state, summarize, undo_daily_mixes
from musicsim.extensions.daily.options import ANY, NONE, DailyOptions, DailySettings, change_settings, read_settings
from musicsim.extensions.daily.watching import start_mixes
from musicsim.library import OWN_PLAYLISTS
from musicsim.ui.base import describe_option, off_if, option_limits, plain, toast_errors
from musicsim.ui.components import BUSY, show_play_button, watch_job
from musicsim.wording import clock, count


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """Draw the switch, the mixes and the settings."""
    library, state = snapshot.library, read_state(snapshot.library)
    settings = read_settings(library)
    st.toggle(
        **describe_option(DailyOptions, "automatic"), value=settings.automatic, key="daily_automatic",
        on_change=lambda: change_settings(library, DailyOptions(automatic=st.session_state["daily_automatic"])),
    )  # fmt: skip
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.button(
            "Make today's mixes now", icon=":material/today:", key="daily_make", on_click=_make, args=(snapshot,),
            **off_if(busy, BUSY),
        )  # fmt: skip
        st.button(
            "Undo", icon=":material/undo:", key="daily_undo", on_click=_undo, args=(snapshot,),
            **off_if(
                busy or state.current is None, BUSY if busy else "There are no mixes yet.",
                "Return to the mixes of the day before.",
            ),
        )  # fmt: skip
    watch_job(library, kinds=("daily", "pickup"), revision=snapshot.revision)
    if state.current is None:
        st.caption("There are no daily mixes yet.")
    else:
        _show_run(snapshot, state.current)
    with st.expander("Settings", icon=":material/settings:"):
        _show_settings(snapshot, settings)


def _make(snapshot: Snapshot) -> None:
    with toast_errors():
        start_mixes(snapshot.library)


def _undo(snapshot: Snapshot) -> None:
    with toast_errors():
        before = undo_daily_mixes(snapshot.library)
        st.toast(
            f"These are the mixes of {before.day}." if before else "The mixes were removed.", icon=":material/undo:"
        )


def _show_run(snapshot: Snapshot, run: MixRun) -> None:
    made_at = datetime.fromtimestamp(run.made_at).strftime("%Y-%m-%d %H:%M")
    st.caption(f"Last run: {made_at} · {plain(summarize(run))}")
    for number, mix in enumerate(run.mixes):
        _show_mix(snapshot, run, number, mix)
    for skipped in run.skipped:
        st.caption(f"Not made: {plain(skipped.name)}. {plain(skipped.reason)}")


def _show_mix(snapshot: Snapshot, run: MixRun, number: int, mix: DailyMix) -> None:
    present = snapshot.songs_by_id(mix.song_ids)
    with st.container(border=True):
        st.markdown(
            f"**{plain(mix.name)}** · {count(len(present), 'song')} · {clock(mix.duration_s)}  \n{plain(mix.why)}"
        )
        with st.container(horizontal=True, gap="small"):
            show_play_button(
                "Play", key=f"daily_play_{number}", library=snapshot.library, song_ids=[song.id for song in present],
                disabled_because="" if present else "The songs are no longer in the library.",
            )  # fmt: skip
            st.button(
                "Save a copy", icon=":material/save:", key=f"daily_copy_{number}", on_click=_copy,
                args=(snapshot, f"{mix.name}, {run.day}", mix),
            )  # fmt: skip


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
