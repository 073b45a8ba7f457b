"""The Write file tags tab of the Library page: a preview, the button that writes, and undo."""

from typing import NamedTuple

import pandas as pd
import streamlit as st

from musicsim.explorer import Snapshot, list_changes
from musicsim.extensions.tag_writing.backups import Backups
from musicsim.extensions.tag_writing.plan import TagPreview, preview
from musicsim.extensions.tag_writing.request import Property, TagRequest
from musicsim.extensions.tag_writing.values import describe_values
from musicsim.library import Library
from musicsim.ui.base import AT_ONCE_S, Key, get_desk, off_if, plain, value_of, wait_for
from musicsim.ui.components import BUSY, start_job
from musicsim.wording import clean, count

_LABELS = {
    Property.TEMPO: "Tempo",
    Property.KEY: "Key",
    Property.REPLAYGAIN: "ReplayGain",
    Property.REGION: "Region of the map",
    Property.MOOD: "Mood",
}
_MAX_ROWS, _MAX_PROBLEMS, _MAX_RUNS = 1_000, 20, 10


class _Chosen(NamedTuple):
    properties: tuple[str, ...]
    request: TagRequest


_CHOSEN: Key[_Chosen | None] = Key("tags_chosen", lambda: None, "choice of the last preview", per_library=True)


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    st.caption(
        "musicsim changes music files only if you click *Write* here, or use `musicsim tags`. The old values are "
        "backed up in the library's folder, so every change can be undone."
    )
    with st.form("tags_form", border=False):
        chosen = st.pills("Properties", list(Property), format_func=_LABELS.__getitem__, selection_mode="multi",
                          key="tags_properties")  # fmt: skip
        words = st.text_input("Only songs that match these words", key="tags_words", placeholder="ambient 1990s")
        replaces = st.toggle("Replace values that the files already have", key="tags_replace")
        if st.form_submit_button("Preview", icon=":material/preview:"):
            request = TagRequest(words=words.strip(), replace=replaces)
            _CHOSEN.set(_Chosen(tuple(map(str, chosen)), request) if chosen else None)
            if not chosen:
                st.info("Choose at least one property.", icon=":material/info:")
    if (asked := _CHOSEN.get()) is not None:
        _draw_preview(snapshot, asked, busy=busy)
    _draw_runs(snapshot.library, busy=busy)


def _draw_preview(snapshot: Snapshot, asked: _Chosen, *, busy: bool) -> None:
    key = ("tags", snapshot.library.place, snapshot.revision, asked)
    task = get_desk("tags").ask(key, lambda progress: preview(snapshot, asked.properties, asked.request, progress))
    task.wait(AT_ONCE_S)
    wait_for([task])
    planned = value_of(task)
    if planned is None:
        return
    n_files = len(planned.files)
    words = f"{count(planned.n_values, 'value')} to {count(n_files, 'file')}"
    st.button(
        f"Write {words}", icon=":material/save:", type="primary", key="tags_write",
        **off_if(busy or not n_files, BUSY if busy else "There is nothing to write."),
        on_click=_write, args=(snapshot.library, asked),
    )  # fmt: skip
    unchanged = f"{count(planned.n_unchanged, 'file')} would not change. " if planned.n_unchanged else ""
    measured = "The loudness is measured when the file is written. " if "replaygain" in asked.properties else ""
    st.caption(unchanged + measured + "The modification times of changed files change.")
    if n_files:
        st.dataframe(_table(planned), hide_index=True, key="tags_preview")
    for problem in planned.problems[:_MAX_PROBLEMS]:
        st.caption(plain(problem))
    if len(planned.problems) > _MAX_PROBLEMS:
        st.caption(f"{len(planned.problems) - _MAX_PROBLEMS:,} more files cannot be written.")


def _table(planned: TagPreview) -> pd.DataFrame:
    rows = [
        (clean(file.song.title), clean(file.song.by), tag, clean(", ".join(old)), clean(describe_values(new)))
        for file in planned.files[:_MAX_ROWS]
        for tag, (old, new) in file.changes.items()
    ]
    return pd.DataFrame(rows, columns=["title", "by", "tag", "old value", "new value"])


def _write(library: Library, asked: _Chosen) -> None:
    _CHOSEN.set(None)
    start_job(library, "write_tags", properties=list(asked.properties), request=list_changes(asked.request))


def _draw_runs(library: Library, *, busy: bool) -> None:
    runs = Backups(library.folder).runs()
    if not runs:
        return
    st.header("Undo", anchor=False)
    for run in runs[:_MAX_RUNS]:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"{plain(run.name)} · {count(len(run.files()), 'file')}", width="stretch")
            st.button(
                "Undo", icon=":material/undo:", key=f"tags_undo_{run.name}", **off_if(busy, BUSY),
                on_click=start_job, args=(library, "undo_tags"), kwargs={"run": run.name},
            )  # fmt: skip
    st.caption("Files that have changed since are not restored, and stay in this list.")
