"""Import of listening data on the Library page: read files, preview the result, and save it on request."""

import hashlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from musicsim.errors import LibraryError
from musicsim.library import Library, importing
from musicsim.library.stores.listening import ImportEntry, Waiting
from musicsim.progress import Progress
from musicsim.ui.base import PAGES, Key, plain, show_errors
from musicsim.ui.components import start_job, table_download
from musicsim.wording import clean, count, count_are

_SUFFIXES = (*(suffix.lstrip(".") for suffix in importing.READ_SUFFIXES), "zip")
_MAX_LISTED = 500  # maximum number of rows in a table; a download has all rows
_PROGRESS_EVERY_S = 0.2
_NOTES = {0: "left out: none of its songs are in the library", 1: "one song: too few to learn from"}
_FOUND_BY = {
    "path": "file path",
    "path end": "end of the path",
    "confirmed": "your earlier choice",
    "mbid": "MusicBrainz id",
    "exact": "artist and title",
    "loose": "plain spelling",
}


@dataclass(frozen=True, slots=True)
class _Pending:
    """A preview of an import, for one revision of the library in the folder `library`; `token` identifies the files."""

    token: str
    library: Path
    revision: int
    preview: importing.ImportPreview


@dataclass(frozen=True, slots=True)
class _Result:
    """The report of an import into the library in the folder `library`, and the imported playlists."""

    library: Path
    report: importing.ImportReport
    lists: tuple[importing.SeenList, ...]


@dataclass(slots=True)
class _State:
    """The preview of an import, and the result of the last one; each new `round` empties the fields."""

    pending: _Pending | None = None
    result: _Result | None = None
    round: int = 0


_STATE: Key[_State] = Key("listening", _State, "imports of this session")


@contextmanager
def show_progress(text: str) -> Iterator[Progress]:
    """Show a progress bar while the block runs; it is updated a few times per second."""
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
    """Return the names of an import's formats as shown on the pages."""
    return " and ".join(importing.FORMATS.get(name, name) for name in names.split(" + "))


def import_panel(library: Library, *, busy: bool) -> None:
    """Show fields for files, then a preview of the import, then its result."""
    # containers that always exist, so that the page below does not move when messages appear and disappear
    with st.container():
        result = _STATE.get().result
        import_ids = [entry.id for entry in library.listening.imports()]
        if result is not None and result.library == library.folder and result.report.import_id in import_ids:
            _show_result(result)
    with st.form(f"listening_form_{_STATE.get().round}"):
        request = _request()
    with st.container():
        if request is not None:
            _load(library, *request)
        pending = _update_preview(library, busy=busy)
    with st.container():
        if pending is not None:
            _show_preview(library, pending)


def _update_preview(library: Library, *, busy: bool) -> importing.ImportPreview | None:
    pending = _STATE.get().pending
    if pending is None or pending.library != library.folder:
        return None
    if pending.revision != library.revision and not busy:  # a running job changes the revision every second
        revision = library.revision
        with show_progress("Matching songs") as progress:
            updated = importing.preview_import(library, pending.preview.batch, progress)
        pending = replace(pending, revision=revision, preview=updated)
        _STATE.get().pending = pending
    return pending.preview


def _request() -> tuple[Sequence[Any], str, str, str] | None:
    """Show the fields; when the user requests a preview, return files, path, format and listener ("" if not given)."""
    number = _STATE.get().round
    st.caption(
        "Histories from Last.fm, ListenBrainz, Spotify and other programs, playlists, or your own CSV files. *Format* "
        "lists everything. Archives are read without unpacking."
    )
    files = st.file_uploader(
        "Listening history files", type=_SUFFIXES, accept_multiple_files=True, key=f"listening_files_{number}"
    )
    path_column, format_column, listener_column = st.columns([2, 1, 1])
    path = path_column.text_input(
        "Or a file or folder on this machine", key=f"listening_path_{number}",
        placeholder="~/Downloads/my_spotify_data.zip", help="For exports that are too large to upload.",
    )  # fmt: skip
    fmt = format_column.selectbox(
        "Format", ["", *importing.FORMATS], key=f"listening_format_{number}",
        format_func=lambda name: importing.FORMATS.get(name, "automatic"),
    )  # fmt: skip
    listener = listener_column.text_input(
        "Listener", key=f"listening_listener_{number}", placeholder=importing.ME,
        help="The person who listened. Needed if the files do not name the listener; most exports do not.",
    )  # fmt: skip
    is_asked = st.form_submit_button("Preview", icon=":material/visibility:")
    path = path.strip().strip("'\"")
    if is_asked and not files and not path:
        st.error("Choose a file or enter its path.", icon=":material/error:")
        return None
    return (files or [], path, fmt, " ".join(listener.split())) if is_asked else None


def _load(library: Library, files: Sequence[Any], path_text: str, fmt: str, listener: str) -> None:
    """Read files and match their songs, unless these files were the last ones read; show errors."""
    digest = hashlib.blake2b(repr((path_text, fmt, listener)).encode("utf-8", "replace"), digest_size=16)
    for file in files:
        digest.update(file.name.encode("utf-8", "replace") + file.getbuffer())
    path = Path(path_text).expanduser().absolute() if path_text else None
    if path is not None and path.is_file():
        status = path.stat()
        digest.update(f"{status.st_size} {status.st_mtime_ns}".encode())
    before, token = _STATE.get().pending, digest.hexdigest()
    if before is not None and (before.token, before.library) == (token, library.folder):
        return
    _STATE.get().pending = None
    revision = library.revision
    with show_errors():
        with show_progress("Reading") as progress:
            batch = _read(files, path, fmt or None, listener or None, progress)
        with show_progress("Matching songs") as progress:
            preview = importing.preview_import(library, batch, progress)
            _STATE.get().pending = _Pending(token, library.folder, revision, preview)


def _read(
    files: Sequence[Any], path: Path | None, fmt: str | None, listener: str | None, progress: Progress
) -> importing.ImportBatch:
    with tempfile.TemporaryDirectory(prefix="musicsim-") as folder:
        uploads = []
        for number, file in enumerate(files):  # one folder per file, because two files may have the same name
            name = Path(clean(file.name).replace("\0", "_")).name[-80:] or "upload"
            upload = Path(folder, str(number), name)
            upload.parent.mkdir()
            upload.write_bytes(file.getbuffer())
            uploads.append(upload)
        try:
            return importing.read_listening([*([path] if path else []), *uploads], fmt, listener, progress)
        except LibraryError as error:
            message = str(error)
            for upload in uploads:
                message = message.replace(f"{upload.parent}/", "")  # the temporary folder would mean nothing to users
            raise LibraryError(message) from error


def _show_preview(library: Library, seen: importing.ImportPreview) -> None:
    with st.container(border=True):
        _show_facts(seen)
        _show_warnings(seen)
        _show_matches(library, seen)
        accepted = []
        if seen.proposals:
            st.markdown(f"**Close spellings: {len(seen.proposals):,}.** Select those that are the same song.")
            accepted = proposals_table(seen.proposals, f"listening_close_{_STATE.get().round}")
        lists = _accept_proposals(seen, accepted).lists
        if lists:
            show_lists(lists, "listening_lists", is_open=True)
        if seen.batch.skipped:
            with st.expander(f"Left out: {sum(s.count for s in seen.batch.skipped):,}"):
                rows = [
                    (clean(s.reason), s.count, clean("; ".join(s.places) + " …" * (s.count > len(s.places))))
                    for s in seen.batch.skipped
                ]
                table = pd.DataFrame(rows, columns=["reason", "rows", "where"])
                st.dataframe(table, hide_index=True, key="listening_skipped")
                table_download("left out", lambda: table, "listening_skipped_file")
        if seen.unmatched:
            place = nullcontext() if lists else st.expander(f"Not in the library: {len(seen.unmatched):,}")
            with place:
                show_waiting(seen.unmatched, "listening_unmatched", is_listed=not lists)
        with st.container(horizontal=True, vertical_alignment="center"):
            is_confirmed = st.button("Import", type="primary", icon=":material/download_done:", key="listening_import")
            if st.button("Discard", icon=":material/close:", key="listening_leave"):
                _finish(None)
            fate = "stay out of the playlists, even if you add them later" if lists else "are saved and matched later"
            st.caption(f"Nothing is saved until you press *Import*. Unmatched entries {fate}.")
        if is_confirmed:
            with st.spinner("Writing…"):
                report = importing.commit_import(library, seen, accepted)
            if any(entry.n_found for entry in lists):
                start_job(library, "walk")
            _finish(_Result(library.folder, report, lists))


def _accept_proposals(seen: importing.ImportPreview, accepted: Sequence[importing.Proposal]) -> importing.ImportPreview:
    ids = {p.song[:2]: p.song_id for p in accepted}
    songs = zip(seen.song_ids.tolist(), seen.batch.songs, strict=True)
    song_ids = [i if i >= 0 else ids.get(song[:2], -1) for i, song in songs]
    return replace(seen, song_ids=np.array(song_ids, dtype=np.int64)) if accepted else seen


def _finish(result: _Result | None) -> None:
    _STATE.set(_State(None, result, _STATE.get().round + 1))
    st.rerun()


def _show_facts(seen: importing.ImportPreview) -> None:
    batch = seen.batch
    st.markdown(f"**{plain(batch.name)}** · {plain(format_label(batch.format))}")
    numbers: dict[str, str] = {"Rows": f"{seen.n_rows:,}"}
    if batch.kind == "plays":
        numbers |= {"Plays": f"{seen.n_plays:,}", "Listeners": f"{len(seen.listeners):,}"}
    else:
        numbers |= {batch.kind.capitalize(): f"{len(batch.groups):,}"}
    share = f" ({seen.n_matched / seen.n_songs:.0%})" if seen.n_songs else ""
    numbers |= {"Songs": f"{seen.n_songs:,}", "In the library": f"{seen.n_matched:,}{share}"}
    with st.container(horizontal=True, gap="large"):
        for name, value in numbers.items():
            st.metric(name, value, width="content")
    first, last = importing.day_of(batch.first_at), importing.day_of(batch.last_at)
    facts = [f"from {first} to {last}"] if first and last else []
    facts += [f"listener: {plain(seen.listeners[0])}"] if len(seen.listeners) == 1 else []
    if facts:
        st.caption(" · ".join(facts))


def _import_label(entry: ImportEntry) -> str:
    return f"import {entry.id} ({plain(entry.name)}, {importing.day_of(entry.created_at)})"


def _show_warnings(seen: importing.ImportPreview) -> None:
    if seen.replaces:
        names = ", ".join(map(_import_label, seen.replaces))
        st.info(f"Replaces {names}.", icon=":material/find_replace:")
    if seen.overlaps:
        st.warning(
            f"Overlaps in time with {', '.join(map(_import_label, seen.overlaps))}, so shared plays would count twice. "
            "Undo the earlier import below if this is the same history.",
            icon=":material/content_copy:",
        )
    if not seen.n_matched:
        st.warning("None of these songs were found in the library.", icon=":material/search_off:")


def _show_matches(library: Library, seen: importing.ImportPreview) -> None:
    if not seen.songs_by:
        return
    unit = "plays" if seen.batch.kind == "plays" else "rows"
    facts = [
        f"{label}: **{seen.songs_by[name]:,}** ({seen.plays_by[name]:,} {unit})"
        for name, label in _FOUND_BY.items()
        if name in seen.songs_by
    ]
    st.markdown("Matched by " + ", ".join(facts))
    if not seen.loose:
        return
    with st.expander(f"Matched by plain spelling: {len(seen.loose):,}"):
        st.caption("Ignoring case, accents, guest artists and words such as “remastered”; most played songs first.")
        rows = seen.loose[:_MAX_LISTED]
        ids = seen.song_ids[list(rows)].tolist()
        labels = {song.id: song.label for song in library.songs(ids, missing=True)}
        imported = [f"{song.title} — {song.artist}" for song in (seen.batch.songs[row] for row in rows)]
        matched = [clean(labels.get(song_id, "")) for song_id in ids]
        table = pd.DataFrame({"in the files": imported, "in the library": matched})
        st.dataframe(table, hide_index=True, key="listening_loose")
        table_download("plain spelling", lambda: table, "listening_loose_file")


def proposals_table(proposals: Sequence[importing.Proposal], key: str) -> list[importing.Proposal]:
    """Show similar spellings, and return those that the user has selected."""
    # not selected at first, because one letter can mean a different song ("Prelude in A flat", "in B flat")
    rows = [(f"{p.song.title} — {p.song.artist}", clean(p.label), p.score, p.count) for p in proposals]
    table = pd.DataFrame(rows, columns=["in the files", "in the library", "similarity", "plays or tags"])
    event = st.dataframe(
        table, hide_index=True, key=key, on_select="rerun", selection_mode="multi-row",
        column_config={
            "similarity": st.column_config.ProgressColumn(min_value=0.8, max_value=1.0, format="%.2f", width=110),
            "plays or tags": st.column_config.NumberColumn(width=90),
        },
    )  # fmt: skip
    ticked = [proposals[row] for row in event.selection.rows if row < len(proposals)]
    st.caption(f"{len(ticked):,} of {len(proposals):,} selected")
    table_download("similar spellings", lambda: table, f"{key}_file")
    return ticked


def _waiting_table(songs: Sequence[Waiting]) -> pd.DataFrame:
    rows = [(clean(w.title), clean(w.artist), clean(w.album), w.count) for w in songs]
    return pd.DataFrame(rows, columns=["title", "artist", "album", "plays or tags"])


def show_waiting(songs: Sequence[Waiting], key: str, *, is_listed: bool = True) -> None:
    """Offer a CSV of songs that are not in the library; if `is_listed`, first show some of them in a table."""
    if is_listed:
        st.dataframe(_waiting_table(songs[:_MAX_LISTED]), hide_index=True)
        if len(songs) > _MAX_LISTED:
            st.caption(f"The first {_MAX_LISTED:,} of {len(songs):,}; the download has all of them.")
    table_download("not in the library", lambda: _waiting_table(songs), key)


def _show_result(result: _Result) -> None:
    report = result.report
    if result.lists:
        _show_imported_lists(result)
        return
    n_waiting = report.n_songs - report.n_matched
    waiting = f"; {n_waiting:,} {'is' if n_waiting == 1 else 'are'} saved and matched later" if n_waiting else ""
    st.success(
        f"Import {report.import_id}: {count(report.n_rows, 'row')}; {report.n_matched:,} of "
        f"{count_are(report.n_songs, 'song')} in the library{waiting}.",
        icon=":material/check_circle:",
    )
    if report.n_matched:
        to_teachers = {"section": "train"}
        st.page_link(PAGES["train"], label="Teach with this data", icon=":material/school:", query_params=to_teachers)


def _show_imported_lists(result: _Result) -> None:
    n_here, n_all = (sum(numbers) for numbers in zip(*((e.n_found, e.n_entries) for e in result.lists), strict=True))
    n_lost = sum(entry.n_found == 0 for entry in result.lists)
    n_kept = len(result.lists) - n_lost
    its = "its" if n_lost == 1 else "their"
    left_out = f"; {n_lost:,} left out because none of {its} songs are in the library" if n_lost else ""
    st.success(
        f"Import {result.report.import_id}: {n_kept:,} of {count(len(result.lists), 'playlist')}; {n_here:,} of "
        f"{count_are(n_all, 'entry')} in the library{left_out}.",
        icon=":material/check_circle:",
    )
    show_lists(result.lists, "listening_told", is_open=False)
    if not n_kept:
        return

    st.caption("New playlists will use these once *Learning from playlists* is done.")
    st.page_link(PAGES["playlist"], label="Generate a playlist", icon=":material/queue_music:")


def show_lists(lists: Sequence[importing.SeenList], key: str, *, is_open: bool) -> None:
    """Show which playlist entries are in the library, and why the others are not; `is_open` expands the tables."""
    part = lists[:_MAX_LISTED]
    with st.expander(f"Playlists: {len(lists):,}", expanded=is_open):
        rows = [(clean(e.name), clean(e.category), e.n_entries, e.n_found, _NOTES.get(e.n_found, "")) for e in part]
        frame = pd.DataFrame(rows, columns=["playlist", "kind", "entries", "here", "note"])
        frame = frame.drop(columns=[name for name in ("kind", "note") if not any(frame[name])])
        st.dataframe(frame, hide_index=True, key=key)
        table_download("playlists", lambda: frame, f"{key}_file")
        absent = [(entry.name, gone) for entry in lists for gone in entry.absent]
        if absent:
            more = f", the first {_MAX_LISTED:,}" if len(absent) > _MAX_LISTED else ""
            st.markdown(f"**Not in the library: {count(len(absent), 'entry')}**{more}")
            st.dataframe(_absent_table(absent[:_MAX_LISTED]), hide_index=True, key=f"{key}_absent")
            table_download("not in the library", lambda: _absent_table(absent), f"{key}_absent_file")
        if len(lists) > len(part):
            st.caption(f"The first {len(part):,} of {count(len(lists), 'playlist')}.")


def _absent_table(absent: Sequence[tuple[str, importing.Absent]]) -> pd.DataFrame:
    rows = [(clean(name), gone.position, clean(gone.label), gone.reason) for name, gone in absent]
    return pd.DataFrame(rows, columns=["playlist", "position", "song", "reason"])
