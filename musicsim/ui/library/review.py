"""Results of a scan to review: failed files, missing songs, duplicates and spellings."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import pandas as pd
import streamlit as st

from musicsim.explorer import Snapshot
from musicsim.explorer.snapshot.same_sound import agreements, groups
from musicsim.library import SKIPPED, Failure, Song, TagChange
from musicsim.library.stores.genres import genre_spellings
from musicsim.ui.base import BY_STATE, Key, off_if, plain
from musicsim.ui.components import BUSY, show_play_button, start_job, table_download
from musicsim.wording import capitalize, clean, clock, count

T = TypeVar("T")

_MAX_GROUPS = 25
_MAX_COPIES = 200  # songs
_MERGED: Key[tuple[str, list[TagChange]]] = Key(
    "genres_merged",
    lambda: ("", []),
    "name of the library in which genres were last merged, and the changes that undo the merge",
)


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs=BY_STATE)
def unusual_files(snapshot: Snapshot) -> tuple[list[Failure], list[Song], dict[int, list[Path]]]:
    """Return failed files, missing songs, and a dict from song id to identical files; slow with a million songs."""
    files = snapshot.library.files
    return files.failures(), snapshot.library.missing_songs(), files.copies()


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs=BY_STATE)
def count_to_tidy(snapshot: Snapshot) -> dict[str, int]:
    """Return the number of things to review in each tab of *Tidy up*."""
    failures, missing, copies = unusual_files(snapshot)
    n_same = len(snapshot.representative_of) + sum(len(paths) - 1 for paths in copies.values())
    artists, genres = _spellings(snapshot)
    sizes = {"failed": len(failures), "missing": len(missing), "same": n_same}
    return sizes | {"artists": len(artists), "genres": len(genres)}


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs=BY_STATE)
def _spellings(snapshot: Snapshot) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Return groups of spellings that probably name the same artist, and groups for the same genre."""
    library = snapshot.library
    return library.edits.suggestions(), genre_spellings(library.table().columns.genre.counts())


def pick_rows(rows: Sequence[int], items: Sequence[T]) -> list[T]:
    """Return the selected items of a table, or all items if none are selected."""
    return [items[row] for row in rows if row < len(items)] or list(items)


def _reason(failure: Failure) -> str:
    # remove the leading path, which has its own column
    reason = failure.reason.removeprefix(str(failure.path)).lstrip(": ")
    return clean(capitalize(reason))


def show_failures(snapshot: Snapshot, *, busy: bool) -> None:
    """Show the files that were not added, with reasons, and buttons to retry them or add them anyway."""
    failures, _, _ = unusual_files(snapshot)
    if not failures:
        st.caption("No failed files.")
        return
    rows = [
        (clean(f.path.name), "skipped" if f.kind in SKIPPED else f.kind, _reason(f), clean(f.path.parent))
        for f in failures
    ]
    table = pd.DataFrame(rows, columns=["file", "kind", "reason", "folder"])
    actions = st.container(horizontal=True, vertical_alignment="center")
    marked = st.dataframe(
        table, hide_index=True, key="library_failed", on_select="rerun", selection_mode="multi-row",
        column_config={"kind": st.column_config.TextColumn(width=80), "reason": st.column_config.TextColumn(width=600)},
    )  # fmt: skip
    chosen = pick_rows(marked.selection.rows, failures)
    broken = [str(f.path) for f in chosen if f.kind not in SKIPPED]
    skipped = [str(f.path) for f in chosen if f.kind in SKIPPED]
    with actions:
        st.button(
            f"Retry {len(broken)}", icon=":material/refresh:", key="library_retry",
            **off_if(not broken, "None of the selected files failed."),
            on_click=start_job, args=(snapshot.library, "add"), kwargs={"paths": broken, "retry": True},
        )  # fmt: skip
        if skipped:
            st.button(
                f"Add {len(skipped)} anyway", icon=":material/add:", key="library_anyway",
                on_click=start_job, args=(snapshot.library, "add"), kwargs={"paths": skipped, "anyway": True},
            )  # fmt: skip
        table_download("files not added", lambda: table, "library_failed_file")
        st.caption("The buttons act on the selected rows, or on all rows if none are selected.")


def show_missing(snapshot: Snapshot, *, busy: bool) -> None:
    """Show songs whose files are missing, and a button that removes them."""
    _, songs, _ = unusual_files(snapshot)
    if not songs:
        st.caption("No missing files.")
        return
    st.caption(
        "The files of these songs are missing or now excluded. Their plays, tags and playlist entries are kept. A song "
        "comes back when a scan finds its file again, in the same folder or elsewhere."
    )
    rows = [(clean(s.title), s.artist or "", clean(s.path)) for s in songs]
    table = pd.DataFrame(rows, columns=["title", "artist", "last seen at"])
    marked = st.dataframe(table, hide_index=True, key="library_missing", on_select="rerun", selection_mode="multi-row")
    chosen = pick_rows(marked.selection.rows, songs)

    def remove() -> None:
        n_songs = snapshot.library.files.forget_songs(song.id for song in chosen)
        st.toast(f"{count(n_songs, 'song')} removed.", icon=":material/check_circle:")

    with st.container(horizontal=True):
        st.button(
            "Scan again", icon=":material/refresh:", key="missing_scan",
            on_click=start_job, args=(snapshot.library, "scan"),
        )  # fmt: skip
        with st.popover(f"Remove {len(chosen)}", icon=":material/delete:", **off_if(busy, BUSY)):
            st.write("This also deletes the songs' plays, tags, thumbs and playlist entries. It can't be undone.")
            st.button("Remove them", type="primary", key="missing_forget", on_click=remove)
        table_download("missing songs", lambda: table, "library_missing_file")


def show_duplicates(snapshot: Snapshot, *, busy: bool) -> None:
    """Show identical files, and groups of songs that sound the same; the user can play and separate the songs."""
    library = snapshot.library

    def judge(song_ids: Sequence[int], is_same: bool) -> None:
        library.duplicates.judge(song_ids, is_same=is_same)

    pairs = library.duplicates.pairs()
    songs = {song.id: song for song in snapshot.songs_by_id({i for p in pairs for i in (p.first_id, p.second_id)})}
    duplicates = groups(list(songs.values()), pairs)
    if not duplicates and not unusual_files(snapshot)[2]:
        st.caption("No duplicates found.")
    _show_identical_files(snapshot)
    if duplicates:
        st.caption(
            "Each group is one recording in several files. Its songs may differ in format, volume, and silence at the "
            "ends. Search results, the map and playlists show only the first song of each group. Nothing is deleted."
        )
        st.caption(
            "Other performances, and copies at another pitch or speed, are separate songs. In our measurements with "
            "many such near misses, fewer than 1 in 100 reported pairs were wrong."
        )
    agreement_of = agreements(pairs)
    for group in duplicates[:_MAX_GROUPS]:
        with st.container(border=True):
            for place, song in enumerate(group):
                sound, facts = st.columns([1, 14], vertical_alignment="center")
                with sound:
                    show_play_button(
                        "", key=f"same_play_{song.id}", library=library, song_ids=[one.id for one in group],
                        start=place, help=f"Play {song.label}",
                    )  # fmt: skip
                agreement = agreement_of.get(frozenset((group[0].id, song.id)))
                role = " · **shown for the group**" if place == 0 else ""
                if agreement is not None:
                    role = f" · {agreement:.0%} match with the first"
                facts.markdown(
                    f"{plain(song.label)} · {clock(song.duration_s)}{role}  \n:small[:gray[{plain(song.path)}]]"
                )
            st.button(
                "These are different songs", icon=":material/call_split:", **off_if(busy, BUSY),
                key=f"same_part_{group[0].id}", on_click=judge, args=([song.id for song in group], False),
            )  # fmt: skip
    if len(duplicates) > _MAX_GROUPS:
        st.caption(f"{len(duplicates) - _MAX_GROUPS} more groups will appear when you have separated these.")
    separated = [p for p in pairs if not p.is_same and p.first_id in songs and p.second_id in songs]
    if separated:
        with st.expander(f"{count(len(separated), 'pair')} you marked as different"):
            for pair in separated:
                first, second = songs[pair.first_id], songs[pair.second_id]
                st.button(
                    f"Duplicates after all: {plain(first.label)} and {plain(second.label)}",
                    key=f"same_join_{first.id}_{second.id}",
                    on_click=judge, args=([first.id, second.id], True),
                )  # fmt: skip


def _show_identical_files(snapshot: Snapshot) -> None:
    _, _, copies = unusual_files(snapshot)
    if not copies:
        return
    n_files = sum(len(paths) - 1 for paths in copies.values())
    words = "file is an exact copy of another" if n_files == 1 else "files are exact copies of others"
    st.markdown(f"**{n_files:,} {words}**")

    def table(ids: Iterable[int]) -> pd.DataFrame:
        labels = {song.id: song.label for song in snapshot.songs_by_id(ids)}
        rows = [(clean(labels.get(i, "")), clean(path)) for i in ids for path in copies[i]]
        return pd.DataFrame(rows, columns=["song", "file"])

    listed = list(copies)[:_MAX_COPIES]
    st.dataframe(table(listed), hide_index=True, key="library_copies")
    if len(listed) < len(copies):
        st.caption(f"The first {len(listed):,} songs; the download contains all {len(copies):,}.")
    table_download("identical files", lambda: table(copies), "library_copies_file")
    st.caption("Identical files count as one song. To free disk space, delete the extra files and scan again.")


def _choose_spelling(kind: str, number: int, names: Sequence[str], merge: Callable[..., None]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox(
            f"One {kind}?", names, key=f"{kind}_name_{number}",
            label_visibility="collapsed",
        )  # fmt: skip
        st.button(
            f"Merge {len(names)} spellings", icon=":material/merge:", key=f"{kind}_merge_{number}",
            on_click=merge, args=(list(names), name), help=" · ".join(plain(spelling) for spelling in names),
        )  # fmt: skip


def show_artists(snapshot: Snapshot, *, busy: bool) -> None:
    """Offer to merge spellings that probably name the same artist, and to separate merged ones."""
    edits = snapshot.library.edits
    (suggestions, _), aliases = _spellings(snapshot), edits.aliases()
    if not suggestions:
        st.caption("No artist seems to have more than one spelling.")
    for number, names in enumerate(suggestions[:_MAX_GROUPS]):
        _choose_spelling("artist", number, names, edits.merge)
    for artist in sorted(set(aliases.values())):
        spellings = [plain(spelling) for spelling, alias in aliases.items() if alias == artist]
        st.button(
            f"Separate {plain(artist)} from {', '.join(spellings)}", icon=":material/undo:",
            key=f"artist_part_{artist}", on_click=edits.part, args=(artist,),
        )  # fmt: skip


def show_genres(snapshot: Snapshot, *, busy: bool) -> None:
    """Offer to merge the spellings of a genre, which charts and filters already treat as one."""
    library = snapshot.library

    def merge(names: Sequence[str], name: str) -> None:
        table = library.table()
        songs = library.songs(table.ids[table.columns.genre.is_in(set(names) - {name})].tolist())
        changes = [TagChange(song.id, {"genre": song.genre}, {"genre": name}) for song in songs]
        _MERGED.set((library.name, library.edits.change(changes)))

    def undo(changes: list[TagChange]) -> None:
        library.edits.change(changes)
        _MERGED.set(_MERGED.default())

    _, spellings = _spellings(snapshot)
    if not spellings:
        st.caption("No genre has more than one spelling.")
    for number, names in enumerate(spellings[:_MAX_GROUPS]):
        _choose_spelling("genre", number, names, merge)
    name, changes = _MERGED.get()
    if name == library.name:
        st.button("Undo the merge", icon=":material/undo:", key="genres_part", on_click=undo, args=(changes,))
