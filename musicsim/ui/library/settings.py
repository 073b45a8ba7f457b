"""Folders and settings of a library."""

from pathlib import Path
from typing import Any

import streamlit as st

from musicsim.addresses import is_address
from musicsim.explorer import INDEXED_FROM, Snapshot
from musicsim.explorer.snapshot.neighbors import CHOSEN_FROM
from musicsim.library import Library
from musicsim.library.archive.backups import backups_of, new_backup_path
from musicsim.library.db.settings import INDEX_KINDS
from musicsim.library.scan.files import IGNORE_FILE
from musicsim.ui.base import off_if, plain
from musicsim.ui.base.sections import draw_sections
from musicsim.ui.components import BUSY, start_job
from musicsim.ui.library.add_music import show_new_library
from musicsim.wording import count


def show_folders(snapshot: Snapshot, *, busy: bool) -> None:
    """Show the music folders; each can be scanned again or removed."""
    library = snapshot.library
    roots = library.files.roots()

    def remove(root: Path) -> None:
        n_songs = library.files.forget_root(root)
        st.toast(f"{count(n_songs, 'song')} removed.", icon=":material/check_circle:")

    st.button(
        "Scan all folders again", icon=":material/refresh:", key="scan_all",
        on_click=start_job, args=(library, "scan"),
        **off_if(
            not roots, "Add a folder first.",
            "Finds new, changed, moved and missing files. Unchanged files are not opened.",
        ),
    )  # fmt: skip
    for number, root in enumerate(roots):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(plain(root) + ("" if is_address(root) or root.exists() else " · :red[not found]"))
            draw_sections("folder", snapshot, folder=root)
            st.button(
                "Scan again", icon=":material/refresh:", key=f"scan_{number}",
                on_click=start_job, args=(library, "scan"), kwargs={"folders": [str(root)]},
            )  # fmt: skip
            with st.popover("Remove", icon=":material/delete:", **off_if(busy, BUSY)):
                st.write(
                    "The folder's songs are removed from this library, with their plays, tags and thumbs. Your music "
                    "files are not changed."
                )
                st.button("Remove folder", type="primary", key=f"forget_{number}", on_click=remove, args=(root,))
    st.caption(f"Files and folders listed in a {IGNORE_FILE} file (gitignore syntax) are ignored, like hidden files.")


_NUMBERS = (
    (
        ("shortest_s", "Shortest song (seconds)", 3600,
         "Shorter files are skipped and listed under Failed, where you can add them anyway."),
        ("n_workers", "Worker processes", 64, "0 = one per core. Use fewer to keep the machine responsive."),
    ),
    (
        ("file_seconds", "Time limit per file (seconds)", 86_400, "A file that takes longer is skipped."),
        ("file_memory_mb", "Memory limit per file (MB)", 65_536, "A file that needs more is skipped."),
    ),
)  # fmt: skip
"""Name, label, maximum and help of the number settings in each column."""
_TOGGLES = (
    ("keep_frames", "Store audio features",
     "Takes 2.7 kB per second of music. Without stored features, fitting a codebook has to decode every song again."),
    ("aspects", "Analyze harmony and rhythm",
     "Takes 2 kB more per song and about 10% more analysis time. The next scan of a folder adds these features to "
     "songs without them."),
    ("hub_reduction", "Hub reduction",
     "A few songs are close to very many others and would appear in most results. With hub reduction, two songs are "
     "similar only if each is close to the other, compared with the rest of the library."),
    ("learned_ear", "Describe songs with a learned ear",
     "If MusiCNN is installed, the app describes all songs with it in the background once there is a map. Then it "
     "compares songs by Sound and MusiCNN, unless you have chosen another model."),
    ("keep_plays", "Store plays",
     "A play counts after 30 seconds or half of the song. Songs that you often skip appear less in queues and "
     "playlists. Plays and skips stay in this library."),
)  # fmt: skip
"""Name, label and help text of each on/off setting."""


def show_settings(snapshot: Snapshot, *, busy: bool) -> None:
    """Show the settings for scans, search and the model, and backups."""
    library = snapshot.library

    def save(name: str) -> dict[str, Any]:
        """Return the key of a widget for a setting, and the callback that saves its value."""
        key = f"setting_{name}"
        return {"key": key, "on_change": lambda: library.set_setting(name, st.session_state[key])}

    *columns, last = st.columns(len(_NUMBERS) + 1, gap="large")
    for column, numbers in zip(columns, _NUMBERS, strict=True):
        for name, label, max_value, words in numbers:
            column.number_input(label, 0, max_value, int(library.settings[name]), help=words, **save(name))
    last.selectbox(
        "Search index", INDEX_KINDS, INDEX_KINDS.index(library.settings["index_kind"]), format_func=str.capitalize,
        help=f"“Automatic” compares all songs in libraries of up to {INDEXED_FROM:,}, and uses a partition in larger "
        f"ones. A partition needs at least {CHOSEN_FROM:,} songs. Research > Evaluate > Search measures both kinds.",
        **save("index_kind"),
    )  # fmt: skip
    for name, label, words in _TOGGLES:
        st.toggle(label, library.settings[name], help=words, **save(name))
    st.button(
        "Refit the model", icon=":material/model_training:", on_click=start_job, args=(library, "refresh"),
        kwargs={"force": True}, **off_if(not snapshot.n_songs, "There are no songs yet."),
    )  # fmt: skip
    st.caption(f"This library is stored in {plain(library.folder)}.")
    show_new_library()
    _show_backups(library)


def _show_backups(library: Library) -> None:
    st.button(
        "Back up the library", icon=":material/archive:", key="back_up",
        on_click=lambda: start_job(library, "backup", path=str(new_backup_path(library))),
        help="Writes one file with everything except the music and server passwords. You can keep working.",
    )  # fmt: skip
    backups, copies = backups_of(library), library.copies.all()
    if backups:
        st.caption(
            f"The latest backup is {plain(backups[0])} ({backups[0].stat().st_size / 1e6:,.1f} MB). Copy it to another "
            "disk. `musicsim restore` turns it back into a library."
        )
    if copies:
        st.caption(
            "Plays, playlists, answers and edits are backed up each day that they change. The latest copy is "
            f"{plain(copies[-1].name)}; `musicsim restore --small` restores it."
        )
