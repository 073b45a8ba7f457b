"""Importing what people listened to, on the Library page: files are read, looked at, and written when asked."""

import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from musicsim.errors import LibraryError
from musicsim.library import Library
from musicsim.library.importing import (
    FORMATS,
    ME,
    READ_SUFFIXES,
    Batch,
    ImportReport,
    Preview,
    Proposal,
    SeenList,
    commit,
    day_of,
    preview,
    read_listening,
)
from musicsim.library.stores.listening import ImportEntry, Waiting
from musicsim.progress import Progress
from musicsim.ui.base.frame import PAGES
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain, shown
from musicsim.ui.components.table_download import table_download
from musicsim.ui.library.listening_lists import learn_walk, show_lists

_SUFFIXES = (*(suffix.lstrip(".") for suffix in READ_SUFFIXES), "zip")
_LISTED = 500  # rows of a table: what is more is in the file to download
_PROGRESS_EVERY_S = 0.2
_FOUND_BY = {
    "path": "path of the file",
    "path end": "end of the path",
    "confirmed": "your earlier choice",
    "mbid": "MusicBrainz id",
    "exact": "artist and title",
    "loose": "plain spelling",
}


@dataclass(frozen=True, slots=True)
class Looked:
    """Files that were read, and what would come of them in a library at one revision."""

    token: str
    library: Path
    revision: int
    seen: Preview


@dataclass(frozen=True, slots=True)
class Told:
    """What came of an import into the library in a folder; with playlists, of each of them.

    `is_learning`: whether the walk is being fitted on the playlists.
    """

    library: Path
    report: ImportReport
    lists: tuple[SeenList, ...]
    is_learning: bool


_LOOKED: Key[Looked | None] = Key("listening_looked", lambda: None, "what would come of the files at hand")
_REPORT: Key[Told | None] = Key("listening_report", lambda: None, "what came of the last import")
_ROUND: Key[int] = Key("listening_round", int, "imports made or left: each begins with empty fields")


@contextmanager
def show_progress(text: str) -> Iterator[Progress]:
    """A progress bar while the work lasts, moved a few times a second."""
    bar, last = st.progress(0.0, text=text), 0.0

    def progress(message: str, done: int = 0, total: int = 0, /, **_: Any) -> None:
        nonlocal last
        if time.monotonic() - last > _PROGRESS_EVERY_S:
            last = time.monotonic()
            bar.progress(min(1.0, done / max(total, 1)), text=f"{text} · {plain(message)}")

    try:
        yield progress
    finally:
        bar.empty()


def format_label(names: str) -> str:
    """Formats of an import as people call them."""
    return " and ".join(FORMATS.get(name, name) for name in names.split(" + "))


def import_panel(library: Library, *, busy: bool) -> None:
    """Take files, show what would come of them, and import them when that is asked."""
    # containers that are there always: what is below keeps its place when messages and progress come and go
    with st.container():
        told = _REPORT.get()
        if told is not None and told.library == library.folder and _is_there(library, told.report.import_id):
            _tell(library, told, busy=busy)
    with st.form(f"listening_form_{_ROUND.get()}"):
        request = _request()
    with st.container():
        if request is not None:
            _look(library, *request)
        looked = _up_to_date(library, busy=busy)
    with st.container():
        if looked is not None:
            _dry_run(library, looked.seen)


def _is_there(library: Library, import_id: int) -> bool:
    return any(entry.id == import_id for entry in library.listening.imports())


def _up_to_date(library: Library, *, busy: bool) -> Looked | None:
    """What was looked at in this library, with songs and imports that have come or gone meanwhile."""
    looked = _LOOKED.get()
    if looked is None or looked.library != library.folder:
        return None
    if looked.revision != library.revision and not busy:  # a job at work changes it every second
        revision = library.revision
        with show_progress("Matching songs") as progress:
            looked = replace(looked, revision=revision, seen=preview(library, looked.seen.batch, progress))
        _LOOKED.set(looked)
    return looked


# --- reading ----------------------------------------------------------------------------------


def _request() -> tuple[Sequence[Any], str, str, str] | None:
    """The fields: files, path, format and listener ("" where nothing is said); None as long as nobody asks to look."""
    number = _ROUND.get()
    st.caption(
        "Files of Last.fm, ListenBrainz, Spotify, Libre.fm, Maloja, Pano Scrobbler or Spinitron, the "
        "Million Song Dataset, playlists (M3U, PLS, XSPF, JSPF), or CSV of your own. There is no need to "
        "unpack archives."
    )
    files = st.file_uploader(
        "Listening history files", type=_SUFFIXES, accept_multiple_files=True, key=f"listening_files_{number}"
    )
    path_place, format_place, who_place = st.columns([2, 1, 1])
    path = path_place.text_input(
        "Or a file or folder on this machine", key=f"listening_path_{number}",
        placeholder="~/Downloads/my_spotify_data.zip",
        help="For exports that are too large to upload.",
    )  # fmt: skip
    fmt = format_place.selectbox(
        "Format", ["", *FORMATS], key=f"listening_format_{number}",
        format_func=lambda name: FORMATS.get(name, "automatic"),
    )  # fmt: skip
    listener = who_place.text_input(
        "Listener", key=f"listening_listener_{number}", placeholder=ME,
        help="Who listened, if the files do not say; one person's history rarely does.",
    )  # fmt: skip
    asked = st.form_submit_button("Preview", icon=":material/visibility:")
    path = path.strip().strip("'\"")
    if asked and not files and not path:
        st.error("Drop a file or enter its path.", icon=":material/error:")
        return None
    return (files or [], path, fmt, " ".join(listener.split())) if asked else None


def _look(library: Library, files: Sequence[Any], path: str, fmt: str, listener: str) -> None:
    """Read the files, unless they are those that were read last, and match their songs; an error is shown."""
    digest = hashlib.blake2b(repr((path, fmt, listener)).encode("utf-8", "replace"), digest_size=16)
    for file in files:
        digest.update(file.name.encode("utf-8", "replace") + file.getbuffer())
    typed = Path(path).expanduser().absolute() if path else None
    if typed is not None and typed.is_file():
        status = typed.stat()
        digest.update(f"{status.st_size} {status.st_mtime_ns}".encode())
    before, token = _LOOKED.get(), digest.hexdigest()
    if before is not None and (before.token, before.library) == (token, library.folder):
        return
    _LOOKED.set(None)
    revision = library.revision
    try:
        with show_progress("Reading") as progress:
            batch = _read(files, typed, fmt or None, listener or None, progress)
        with show_progress("Matching songs") as progress:
            seen = preview(library, batch, progress)
    except LibraryError as error:
        st.error(plain(error), icon=":material/error:")
        return
    _LOOKED.set(Looked(token, library.folder, revision, seen))


def _read(files: Sequence[Any], typed: Path | None, fmt: str | None, listener: str | None, progress: Progress) -> Batch:
    with tempfile.TemporaryDirectory(prefix="musicsim-") as folder:
        paths = [typed] if typed else []
        for number, file in enumerate(files):  # each in a folder of its own: two may have one name
            name = Path(shown(file.name).replace("\0", "_")).name[-80:] or "upload"
            path = Path(folder, str(number), name)
            path.parent.mkdir()
            path.write_bytes(file.getbuffer())
            paths.append(path)
        try:
            return read_listening(paths, fmt, listener, progress)
        except LibraryError as error:
            words = str(error)
            for path in paths[len(paths) - len(files) :]:
                words = words.replace(f"{path.parent}/", "")  # nobody knows the folder that uploads lie in
            raise LibraryError(words) from error


# --- what would come of it --------------------------------------------------------------------


def _dry_run(library: Library, seen: Preview) -> None:
    with st.container(border=True):
        _facts(seen)
        _earlier(seen)
        _matches(library, seen)
        accepted = _close(seen.proposals)
        lists = _with_accepted(seen, accepted).lists
        if lists:
            show_lists(lists, "listening_lists", is_open=True)
        _left_out(seen)
        if seen.unmatched and lists:
            download_waiting(lambda: seen.unmatched, "listening_unmatched")
        elif seen.unmatched:
            with st.expander(f"Not in the library: {len(seen.unmatched):,}"):
                waiting_table(seen.unmatched)
                download_waiting(lambda: seen.unmatched, "listening_unmatched")
        with st.container(horizontal=True, vertical_alignment="center"):
            wanted = st.button("Import", type="primary", icon=":material/download_done:", key="listening_import")
            if st.button("Discard", icon=":material/close:", key="listening_leave"):
                _begin_again(None)
            waits = (
                "stay out of the playlists, even if they are added later" if lists else ("are kept and matched later")
            )
            st.caption(f"Nothing is saved until you press *Import*. Unmatched entries {waits}.")
        if wanted:
            with st.spinner("Writing…"):
                report = commit(library, seen, accepted)
            is_learning = any(entry.n_found for entry in lists) and learn_walk(library)
            _begin_again(Told(library.folder, report, lists, is_learning))


def _with_accepted(seen: Preview, accepted: Sequence[Proposal]) -> Preview:
    """The preview with close spellings that were ticked as songs that are here."""
    if not accepted:
        return seen
    ids = {p.song[:2]: p.song_id for p in accepted}
    known = zip(seen.song_ids.tolist(), seen.batch.songs, strict=True)
    song_ids = [i if i >= 0 else ids.get(song[:2], -1) for i, song in known]
    return replace(seen, song_ids=np.array(song_ids, dtype=np.int64))


def _begin_again(told: Told | None) -> None:
    _LOOKED.set(None)
    _REPORT.set(told)
    _ROUND.set(_ROUND.get() + 1)
    st.rerun()


def _facts(seen: Preview) -> None:
    batch = seen.batch
    st.markdown(f"**{plain(batch.name)}** · {plain(format_label(seen.format))}")
    facts: dict[str, str] = {"Rows": f"{seen.n_rows:,}"}
    if batch.kind == "plays":
        facts |= {"Plays": f"{seen.n_plays:,}", "Listeners": f"{len(seen.listeners):,}"}
    else:
        facts |= {batch.kind.capitalize(): f"{len(batch.groups):,}"}
    share = f" ({seen.n_matched / seen.n_songs:.0%})" if seen.n_songs else ""
    facts |= {"Songs": f"{seen.n_songs:,}", "In the library": f"{seen.n_matched:,}{share}"}
    with st.container(horizontal=True, gap="large"):
        for name, value in facts.items():
            st.metric(name, value, width="content")
    first, last = day_of(batch.first_at), day_of(batch.last_at)
    told = [f"from {first} to {last}"] if first and last else []
    told += [f"listener: {plain(seen.listeners[0])}"] if len(seen.listeners) == 1 else []
    if told:
        st.caption(" · ".join(told))


def _named(entry: ImportEntry) -> str:
    return f"import {entry.id} ({plain(entry.name)}, {day_of(entry.created_at)})"


def _earlier(seen: Preview) -> None:
    if seen.replaces:
        names = ", ".join(map(_named, seen.replaces))
        st.info(f"Replaces {names}.", icon=":material/find_replace:")
    if seen.overlaps:
        st.warning(
            f"Overlaps in time with {', '.join(map(_named, seen.overlaps))}: shared plays count twice. "
            "Undo the earlier import below if this is the same history.",
            icon=":material/content_copy:",
        )
    if not seen.n_matched:
        st.warning("None of these songs was found in the library.", icon=":material/search_off:")


def _matches(library: Library, seen: Preview) -> None:
    if not seen.songs_by:
        return
    unit = "plays" if seen.batch.kind == "plays" else "rows"
    how = [name for name in _FOUND_BY if name in seen.songs_by]
    st.markdown(
        "Found by "
        + ", ".join(f"{_FOUND_BY[name]}: **{seen.songs_by[name]:,}** ({seen.plays_by[name]:,} {unit})" for name in how)
    )
    if not seen.loose:
        return
    with st.expander(f"Found by plain spelling: {len(seen.loose):,}"):
        st.caption("Ignores case, accents, guest artists and words such as “remastered”; most played first.")
        rows = seen.loose[:_LISTED]
        ids = seen.song_ids[list(rows)].tolist()
        labels = {song.id: song.label for song in library.songs(ids, missing=True)}
        theirs = [seen.batch.songs[row] for row in rows]
        table = pd.DataFrame(
            {
                "in the files": [f"{song.title} — {song.artist}" for song in theirs],
                "in the library": [shown(labels.get(song_id, "")) for song_id in ids],
            }
        )
        st.dataframe(table, hide_index=True, key="listening_loose")
        table_download("plain spelling", lambda: table, "listening_loose_file")


def _close(proposals: Sequence[Proposal]) -> list[Proposal]:
    if not proposals:
        return []
    st.markdown(f"**Close spellings: {len(proposals):,}.** Tick those that are the same song.")
    return proposals_table(proposals, f"listening_close_{_ROUND.get()}")


def proposals_table(proposals: Sequence[Proposal], key: str) -> list[Proposal]:
    """Close spellings to be ticked, none at first; give back those that are."""
    # one letter can be another song ("Prelude in A flat", "in B flat"), so that no score ticks by itself
    table = pd.DataFrame(
        {
            "in the files": [f"{p.song.title} — {p.song.artist}" for p in proposals],
            "in the library": [shown(p.label) for p in proposals],
            "likeness": [p.score for p in proposals],
            "plays or tags": [p.count for p in proposals],
        }
    )
    event = st.dataframe(
        table, hide_index=True, key=key, on_select="rerun", selection_mode="multi-row",
        column_config={
            "likeness": st.column_config.ProgressColumn(min_value=0.8, max_value=1.0, format="%.2f", width=110),
            "plays or tags": st.column_config.NumberColumn(width=90),
        },
    )  # fmt: skip
    table_download("close spellings", lambda: table, f"{key}_file")
    return [proposals[row] for row in event.selection.rows if row < len(proposals)]


def _left_out(seen: Preview) -> None:
    if not seen.skipped:
        return
    with st.expander(f"Left out: {sum(s.count for s in seen.skipped):,}"):
        table = pd.DataFrame(
            {
                "reason": [shown(s.reason) for s in seen.skipped],
                "rows": [s.count for s in seen.skipped],
                "where": [shown("; ".join(s.places) + (" …" if s.count > len(s.places) else "")) for s in seen.skipped],
            }
        )
        st.dataframe(table, hide_index=True, key="listening_skipped")
        table_download("left out", lambda: table, "listening_skipped_file")


def waiting_table(songs: Sequence[Waiting]) -> None:
    """Songs that the library does not have, the first few hundred."""
    st.dataframe(_waiting(songs[:_LISTED]), hide_index=True)
    if len(songs) > _LISTED:
        st.caption(f"The first {_LISTED:,} of {len(songs):,}; the download has all.")


def _waiting(songs: Sequence[Waiting]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "title": [shown(w.title) for w in songs],
            "artist": [shown(w.artist) for w in songs],
            "album": [shown(w.album) for w in songs],
            "plays or tags": [w.count for w in songs],
        }
    )


def download_waiting(songs: Callable[[], Sequence[Waiting]], key: str) -> None:
    """A button that hands out songs as CSV; `songs` is called when it is pressed."""
    table_download("not in the library", lambda: _waiting(songs()), key)


def _tell(library: Library, told: Told, *, busy: bool) -> None:
    report = told.report
    if told.lists:
        _tell_lists(library, told, busy=busy)
        return
    n_waiting = report.n_songs - report.n_matched
    waiting = f"; {n_waiting:,} {'is' if n_waiting == 1 else 'are'} kept and matched later" if n_waiting else ""
    st.success(
        f"Import {report.import_id}: {report.n_rows:,} rows; {report.n_matched:,} of {report.n_songs:,} songs are in "
        f"the library{waiting}.",
        icon=":material/check_circle:",
    )
    if report.n_matched:
        st.page_link(PAGES["train"], label="Train a model on it", icon=":material/school:")


def _tell_lists(library: Library, told: Told, *, busy: bool) -> None:
    n_kept = sum(entry.n_found > 0 for entry in told.lists)
    n_here, n_all = (sum(numbers) for numbers in zip(*((e.n_found, e.n_entries) for e in told.lists), strict=True))
    lost = len(told.lists) - n_kept
    left_out = (
        f"; {lost:,} left out: none of its songs is here"
        if lost == 1
        else f"; {lost:,} left out: none of their songs is here"
        if lost
        else ""
    )
    st.success(
        f"Import {told.report.import_id}: {n_kept:,} of {len(told.lists):,} playlists, with {n_here:,} of {n_all:,} "
        f"entries that are in the library{left_out}.",
        icon=":material/check_circle:",
    )
    show_lists(told.lists, "listening_told", is_open=False)
    if not n_kept:
        return
    if told.is_learning:
        st.caption("New playlists use them once *Learning from playlists* is done.")
    else:
        st.button(
            "Learn from these playlists", icon=":material/school:", key="listening_learn", disabled=busy,
            on_click=_learn_now, args=(library, told),
            help="New playlists will use them. Unavailable while another job is running.",
        )  # fmt: skip
    st.page_link(PAGES["playlist"], label="Generate a playlist", icon=":material/queue_music:")


def _learn_now(library: Library, told: Told) -> None:
    if learn_walk(library):
        _REPORT.set(replace(told, is_learning=True))
