"""What a scan leaves to be looked at: files not added, missing songs, the same sound twice, spellings."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pandas as pd
import streamlit as st

from musicsim.explorer.snapshot.same_sound import groups
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Failure, Library, Song
from musicsim.library.stores.files import SKIPPED
from musicsim.library.stores.genres import genre_spellings
from musicsim.library.stores.tag_edits import TagChange
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain, shown
from musicsim.ui.components.jobs_view import start_job
from musicsim.ui.components.listening import play_songs
from musicsim.ui.components.song_list import clock
from musicsim.ui.components.table_download import table_download

T = TypeVar("T")

_GROUPS_SHOWN = 25
_COPIES_SHOWN = 200  # songs
_MERGED: Key[tuple[str, list[TagChange]] | None] = Key(
    "genres_merged", lambda: None, "the library whose genres were last merged, and what takes it back"
)


def chosen_or_all(rows: Sequence[int], items: Sequence[T]) -> list[T]:
    """What is marked in a table, or without marks all of it."""
    return [items[row] for row in rows if row < len(items)] or list(items)


def _without_name(failure: Failure) -> str:
    """The reason without the path it begins with: the file stands in a column of its own."""
    reason = failure.reason.removeprefix(str(failure.path)).lstrip(": ")
    return shown(reason[:1].upper() + reason[1:])


def _forget(library: Library, songs: Sequence[Song]) -> None:
    n_songs = library.files.forget_songs(song.id for song in songs)
    st.toast(f"{n_songs:,} song{'s' * (n_songs != 1)} removed.", icon=":material/check_circle:")


def _judge(library: Library, song_ids: Sequence[int], is_same: bool) -> None:
    library.duplicates.judge(song_ids, is_same=is_same)


def failures_review(library: Library, failures: Sequence[Failure], *, busy: bool) -> None:
    """Files that were not added, each with its reason; some or all can be tried again, or taken anyway."""
    if not failures:
        st.caption("No failed files.")
        return
    table = pd.DataFrame(
        {
            "file": [shown(f.path.name) for f in failures],
            "kind": ["skipped" if f.kind in SKIPPED else f.kind for f in failures],
            "reason": [_without_name(f) for f in failures],
            "folder": [shown(f.path.parent) for f in failures],
        }
    )
    actions = st.container(horizontal=True, vertical_alignment="center")
    marked = st.dataframe(
        table, hide_index=True, key="library_failed", on_select="rerun", selection_mode="multi-row",
        column_config={"kind": st.column_config.TextColumn(width=80), "reason": st.column_config.TextColumn(width=600)},
    )  # fmt: skip
    chosen = chosen_or_all(marked.selection.rows, failures)
    broken = [str(f.path) for f in chosen if f.kind not in SKIPPED]
    skipped = [str(f.path) for f in chosen if f.kind in SKIPPED]
    with actions:
        st.button(
            f"Try {len(broken)} again", icon=":material/refresh:", disabled=busy or not broken, key="library_retry",
            on_click=start_job, args=(library, "add"), kwargs={"paths": broken, "retry": True},
        )  # fmt: skip
        if skipped:
            st.button(
                f"Add {len(skipped)} anyway", icon=":material/add:", disabled=busy, key="library_anyway",
                on_click=start_job, args=(library, "add"), kwargs={"paths": skipped, "anyway": True},
            )  # fmt: skip
        table_download("files not added", lambda: table, "library_failed_file")
        st.caption("Select rows to act on only those; with no selection the buttons act on all.")


def missing_review(library: Library, songs: Sequence[Song], *, busy: bool) -> None:
    """Songs whose files have gone: they wait for them, or are forgotten."""
    if not songs:
        st.caption("No missing files.")
        return
    st.caption(
        "The files of these songs are missing or now excluded. Their plays, tags and playlist entries "
        "are kept; they come back when a scan finds the file again, here or elsewhere."
    )
    table = pd.DataFrame(
        {
            "title": [shown(s.title) for s in songs],
            "artist": [s.artist or "" for s in songs],
            "last seen at": [shown(s.path) for s in songs],
        }
    )
    marked = st.dataframe(table, hide_index=True, key="library_missing", on_select="rerun", selection_mode="multi-row")
    chosen = chosen_or_all(marked.selection.rows, songs)
    with st.container(horizontal=True):
        st.button(
            "Scan again", icon=":material/refresh:", disabled=busy, key="missing_scan",
            on_click=start_job, args=(library, "scan"),
        )  # fmt: skip
        with st.popover(f"Remove {len(chosen)}", icon=":material/delete:", disabled=busy):
            st.write("Their plays, tags, thumbs and playlist entries are deleted too. This can't be undone.")
            st.button("Remove them", type="primary", key="missing_forget", on_click=_forget, args=(library, chosen))
        table_download("missing songs", lambda: table, "library_missing_file")


def duplicates_review(now: Snapshot, copies: Mapping[int, Sequence[Path]], *, busy: bool) -> None:
    """Songs that hold the same sound: heard side by side, parted where they are two songs after all; identical files.

    Parameters
    ----------
    copies : mapping of song id to sequence of Path
        Files that hold the very same bytes.
    """
    library = now.library
    pairs = library.duplicates.pairs()
    here = {song.id: song for song in now.songs_by_id({i for p in pairs for i in (p.first_id, p.second_id)})}
    found = groups(list(here.values()), pairs)
    if not found and not copies:
        st.caption("No duplicates found.")
    _identical_files(now, copies)
    if found:
        st.caption("Search results, the map and playlists show only the first song of each group. Nothing is deleted.")
    for group in found[:_GROUPS_SHOWN]:
        with st.container(border=True):
            for place, song in enumerate(group):
                sound, facts = st.columns([1, 14], vertical_alignment="center")
                sound.button(
                    "", icon=":material/play_arrow:", key=f"same_play_{song.id}", help="Play",
                    on_click=play_songs, args=(library, group, place),
                )  # fmt: skip
                role = " · **shown for the group**" if place == 0 else ""
                facts.markdown(
                    f"{plain(song.label)} · {clock(song.duration_s)}{role}  \n:small[:gray[{plain(shown(song.path))}]]"
                )
            st.button(
                "These are different songs", icon=":material/call_split:", disabled=busy,
                key=f"same_part_{group[0].id}", on_click=_judge, args=(library, [song.id for song in group], False),
            )  # fmt: skip
    if len(found) > _GROUPS_SHOWN:
        st.caption(f"{len(found) - _GROUPS_SHOWN} more groups appear once these are reviewed.")
    parted = [p for p in pairs if not p.is_same and p.first_id in here and p.second_id in here]
    if parted:
        with st.expander(f"{len(parted)} pair{'s' * (len(parted) != 1)} you marked as different"):
            for pair in parted:
                first, second = here[pair.first_id], here[pair.second_id]
                st.button(
                    f"Duplicates after all: {plain(first.label)} and {plain(second.label)}",
                    key=f"same_join_{first.id}_{second.id}",
                    on_click=_judge, args=(library, [first.id, second.id], True),
                )  # fmt: skip


def _identical_files(now: Snapshot, copies: Mapping[int, Sequence[Path]]) -> None:
    """Files with the very same bytes, which are one song."""
    if not copies:
        return
    n_files = sum(len(paths) - 1 for paths in copies.values())
    words = "file is an exact copy" if n_files == 1 else "files are exact copies"
    st.markdown(f"**{n_files:,} {words} of another**")
    listed = list(copies)[:_COPIES_SHOWN]
    labels = {song.id: song.label for song in now.songs_by_id(listed)}

    def table(ids: Iterable[int], labels: Mapping[int, str]) -> pd.DataFrame:
        rows = [(shown(labels.get(i, "")), shown(path)) for i in ids for path in copies[i]]
        return pd.DataFrame(rows, columns=["song", "file"])

    st.dataframe(table(listed, labels), hide_index=True, key="library_copies")
    if len(listed) < len(copies):
        st.caption(f"Of the first {len(listed):,} songs; a download has all {len(copies):,}.")
    table_download(
        "identical files",
        lambda: table(copies, {song.id: song.label for song in now.songs_by_id(copies)}),
        "library_copies_file",
    )
    st.caption("All of them are one song here. To free their room, delete all but one and scan again.")


def artists_review(library: Library) -> None:
    """Artists that are very likely one, spelt in several ways, offered for merging."""
    suggestions, merged = library.edits.suggestions(), library.edits.aliases()
    if not suggestions:
        st.caption("No artist seems to have two spellings.")
    for number, group in enumerate(suggestions[:_GROUPS_SHOWN]):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            name = st.selectbox(
                "One artist?", group.names, index=group.names.index(group.suggested), key=f"artist_name_{number}",
                label_visibility="collapsed",
            )  # fmt: skip
            st.button(
                f"Merge {len(group.names)} spellings", icon=":material/merge:", key=f"artist_merge_{number}",
                on_click=library.edits.merge, args=(list(group.names), name),
                help=" · ".join(plain(spelling) for spelling in group.names),
            )  # fmt: skip
    for artist in sorted(set(merged.values())):
        spellings = [plain(spelling) for spelling, stands_for in merged.items() if stands_for == artist]
        st.button(
            f"Separate {plain(artist)} from {', '.join(spellings)}", icon=":material/undo:",
            key=f"artist_part_{artist}", on_click=library.edits.part, args=(artist,),
        )  # fmt: skip


def genres_review(now: Snapshot) -> None:
    """Genres in several spellings, offered for merging; in figures and filters they count as one already."""
    found = genre_spellings(now.library.table().columns.genre.counts())
    if not found:
        st.caption("No genre has two spellings.")
    for number, group in enumerate(found[:_GROUPS_SHOWN]):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            name = st.selectbox("One genre?", group.names, key=f"genre_name_{number}", label_visibility="collapsed")
            st.button(
                f"Merge {len(group.names)} spellings", icon=":material/merge:", key=f"genre_merge_{number}",
                on_click=_merge_genres, args=(now, group.names, name),
                help=" · ".join(plain(spelling) for spelling in group.names),
            )  # fmt: skip
    merged = _MERGED.get()
    if merged is not None and merged[0] == now.library.name:
        st.button(
            "Undo the merge", icon=":material/undo:", key="genres_part", on_click=_part_genres, args=(now.library,)
        )


def _merge_genres(now: Snapshot, names: Sequence[str], name: str) -> None:
    others = set(names) - {name}
    table = now.library.table()
    songs = now.library.songs(table.ids[table.columns.genre.among(others)].tolist())
    changes = [TagChange(song.id, {"genre": song.genre}, {"genre": name}) for song in songs]
    _MERGED.set((now.library.name, now.library.edits.change(changes)))


def _part_genres(library: Library) -> None:
    merged = _MERGED.get()
    if merged is not None:
        library.edits.change(merged[1])
    _MERGED.set(None)
