"""Folders and settings of a library."""

from pathlib import Path

import streamlit as st

from musicsim.addresses import is_address
from musicsim.explorer.health.backups import backups_of, new_backup_path
from musicsim.explorer.snapshot.neighbours import CHOSEN_FROM, INDEXED_FROM, TITLES
from musicsim.library import Library
from musicsim.library.scan.files import IGNORE_FILE
from musicsim.ui.base.text import plain, shown
from musicsim.ui.components.jobs_view import start_job


def _forget(library: Library, root: Path) -> None:
    n_songs = library.files.forget_root(root)
    st.toast(f"{n_songs:,} song{'s' * (n_songs != 1)} removed.", icon=":material/check_circle:")


def folders(library: Library, *, busy: bool) -> None:
    """Where the music lies: each folder can be looked through again, or taken out of the library."""
    roots = library.files.roots()
    st.button(
        "Scan all folders again", icon=":material/refresh:", disabled=busy or not roots, key="scan_all",
        on_click=start_job, args=(library, "scan"),
        help="Finds new, changed, moved and missing files. Unchanged files are not opened.",
    )  # fmt: skip
    for number, root in enumerate(roots):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(plain(shown(root)) + ("" if is_address(root) or root.exists() else " · :red[not found]"))
            st.button(
                "Scan again", icon=":material/refresh:", disabled=busy, key=f"scan_{number}",
                on_click=start_job, args=(library, "scan"), kwargs={"folders": [str(root)]},
            )  # fmt: skip
            with st.popover("Remove", icon=":material/delete:", disabled=busy):
                st.write(
                    "Its songs are removed from this library, with their plays, tags and thumbs. The "
                    "music files are not touched."
                )
                st.button(
                    "Remove folder", type="primary", key=f"forget_{number}", on_click=_forget, args=(library, root)
                )
    st.caption(f"Files and folders listed in a {IGNORE_FILE} file (gitignore syntax) are left out; so are hidden ones.")


def _number(library: Library, name: str, label: str, most: int, help_text: str) -> None:
    st.number_input(
        label, 0, most, int(library.settings[name]), key=f"setting_{name}", help=help_text,
        on_change=lambda: library.set_setting(name, st.session_state[f"setting_{name}"]),
    )  # fmt: skip


def _index_choice(library: Library) -> None:
    kinds = list(TITLES)
    st.selectbox(
        "Search index", kinds, kinds.index(library.settings["index_kind"]), key="setting_index_kind",
        format_func=TITLES.__getitem__,
        on_change=lambda: library.set_setting("index_kind", st.session_state["setting_index_kind"]),
        help=f"Automatic compares every song up to {INDEXED_FROM:,} songs and uses a partition above. Another choice "
        f"applies from {CHOSEN_FROM:,} songs. Evaluate > Search measures each kind on this library.",
    )  # fmt: skip


def settings(library: Library, *, busy: bool, has_songs: bool) -> None:
    """Settings of scans and of the model."""
    first, second, third = st.columns(3, gap="large")
    with first:
        _number(
            library, "shortest_s", "Shortest song (seconds)", 3600,
            "Shorter files are skipped and listed under Failed, where you can add them anyway.",
        )  # fmt: skip
        _number(
            library, "n_workers", "Worker processes", 64, "0 = one per core. Fewer leave more of the machine to you."
        )
    with second:
        _number(
            library, "file_seconds", "Time limit per file (seconds)", 86_400, "A file that takes longer is skipped."
        )
        _number(library, "file_memory_mb", "Memory limit per file (MB)", 65_536, "A file that needs more is skipped.")
    with third:
        _number(
            library, "index_memory_mb", "Memory limit for search (MB)", 1_048_576,
            "A library of a million songs needs about 700. Above the limit, search uses bit codes of 32 "
            "bytes per song and keeps the vectors on disk.",
        )  # fmt: skip
        _index_choice(library)
    st.toggle(
        "Store audio features", library.settings["keep_frames"], key="library_keep_frames",
        on_change=lambda: library.set_setting("keep_frames", st.session_state["library_keep_frames"]),
        help="2.2 kB per second of music. Without them a new codebook has to decode every song again.",
    )  # fmt: skip
    st.toggle(
        "Analyse harmony and rhythm", library.settings["aspects"], key="library_aspects",
        on_change=lambda: library.set_setting("aspects", st.session_state["library_aspects"]),
        help="2 kB more per song, and about 10 % more analysis time. Songs without them are read again "
        "by the next scan of their folder.",
    )  # fmt: skip
    st.toggle(
        "Hub reduction", library.settings["hub_reduction"], key="library_hub_reduction",
        on_change=lambda: library.set_setting("hub_reduction", st.session_state["library_hub_reduction"]),
        help="A few songs are close to very many others and would crowd every result list. With hub "
        "reduction, two songs count as close only if each is close to the other, compared with the "
        "rest.",
    )  # fmt: skip
    st.button(
        "Refit the model", icon=":material/model_training:", on_click=start_job, args=(library, "refresh"),
        kwargs={"force": True}, disabled=busy or not has_songs,
    )  # fmt: skip
    st.caption(f"This library is in {plain(library.folder)}.")
    _backups(library, busy=busy)


def _back_up(library: Library) -> None:
    start_job(library, "backup", path=str(new_backup_path(library)))


def _backups(library: Library, *, busy: bool) -> None:
    """A button that makes a backup, and where the latest one lies."""
    st.button(
        "Back up the library", icon=":material/archive:", key="back_up", on_click=_back_up, args=(library,),
        disabled=busy, help="One file with all but the music itself and the passwords of servers. Nothing has to wait.",
    )  # fmt: skip
    made, daily = backups_of(library), library.copies.all()
    if made:
        st.caption(
            f"The latest backup is {plain(made[0])} ({made[0].stat().st_size / 1e6:,.1f} MB). Copy it to another disk; "
            "`musicsim restore` makes a library of it."
        )
    if daily:
        st.caption(
            f"Plays, lists, answers and edits are copied every day in which something changes; the latest copy is "
            f"{plain(daily[-1].name)}. `musicsim restore --small` brings it back."
        )
