"""The models of a library: a card each with its actions, two side by side, and ways to get more of them."""

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer import jobs
from musicsim.explorer.models.files import FILE_ENDING, save_model_file
from musicsim.explorer.models.representations import CODEWORDS, offered, representations
from musicsim.explorer.refresh.add_music import keep_upload
from musicsim.explorer.refresh.fitting import RepresentationSettings, free_name
from musicsim.explorer.refresh.model_catalogue import stale_reason
from musicsim.explorer.refresh.model_text import facts, figures, kind_words, report_of
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library
from musicsim.library.stores.models import BUILT_IN, MAX_NAME, ModelRecord
from musicsim.ui.base.keys import MODEL, Key
from musicsim.ui.base.sections import tabs_of
from musicsim.ui.base.text import plain
from musicsim.ui.components.jobs_view import job_panel, start_job
from musicsim.ui.components.table_download import saved_table

_JOBS = ("represent", "take_model")
_COMPARED: Key[list[str]] = Key("models_compared", list, "ids of the two models that stand side by side")
_REPRESENTATION: Key[str] = Key("model_representation", lambda: "histogram", "what songs are described by")
_CODEWORDS: Key[int] = Key("model_codewords", lambda: 1024, "codewords of a representation to be made")
_TAU: Key[int] = Key("model_tau", lambda: 4, "codewords a frame is shared among")


# --- what can be done to a model ------------------------------------------------------------------


def _use(library: Library, record: ModelRecord) -> None:
    library.models.activate(record.id)
    MODEL.set(record.id)
    st.toast(f"{plain(record.name)} is in use now.", icon=":material/check_circle:")


def _rename(library: Library, record: ModelRecord, key: Key[str]) -> None:
    try:
        library.models.rename(record.id, key.get())
    except MusicsimError as error:
        st.toast(plain(error), icon=":material/warning:")


def _delete(library: Library, record: ModelRecord) -> None:
    try:
        library.models.delete(record.id)
    except MusicsimError as error:
        st.toast(plain(error), icon=":material/warning:")
        return
    st.toast(f"{plain(record.name)} was deleted.", icon=":material/check_circle:")


def use_button(library: Library, record: ModelRecord, *, where: str, is_primary: bool = False) -> None:
    """Put a model into use, for this session and for others that start."""
    st.button(
        "In use" if record.is_active else "Use it", icon=":material/check:", key=f"{where}_use_{record.id}",
        type="primary" if is_primary else "secondary", disabled=record.is_active,
        on_click=_use, args=(library, record),
    )  # fmt: skip


def rename_button(library: Library, record: ModelRecord, *, where: str) -> None:
    """Give a model another name."""
    is_built_in = record.kind in BUILT_IN
    key: Key[str] = Key(f"{where}_name_{record.id}", lambda: record.name, "the name a model is to have")
    with st.popover(
        "Rename", icon=":material/edit:", disabled=is_built_in,
        help="Built-in models cannot be renamed." if is_built_in else None,
    ):  # fmt: skip
        key.keep()
        st.text_input("Name", key=key.name, max_chars=MAX_NAME)
        st.button(
            "Rename it", key=f"{where}_rename_{record.id}", type="primary",
            on_click=_rename, args=(library, record, key),
        )  # fmt: skip


def delete_button(library: Library, record: ModelRecord, *, where: str, busy: bool, label: str = "Delete") -> None:
    """Delete a model once that is confirmed."""
    is_built_in = record.kind in BUILT_IN
    why = "Other models are built on this one." if is_built_in else None
    with st.popover(label, icon=":material/delete:", disabled=is_built_in or busy, help=why):
        after = " “Sound” will be used instead." if record.is_active else ""
        st.write(f"Deleting {plain(record.name)} can't be undone; you would have to train it again.{after}")
        st.button(
            "Delete it", key=f"{where}_delete_{record.id}", type="primary", on_click=_delete, args=(library, record)
        )


def _model_file(library: Library, record: ModelRecord) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / f"model{FILE_ENDING}"
        save_model_file(library, record.id, target)
        return target.read_bytes()


# --- the section ----------------------------------------------------------------------------------


def models_section(now: Snapshot, *, busy: bool) -> None:
    """All models of a library, and ways to get more."""
    library = now.library
    records = library.models.all()
    reports = {record.id: report_of(library, record) for record in records}
    st.subheader("Models", anchor=False)
    _job(library)
    for start in range(0, len(records), 2):
        for column, record in zip(st.columns(2), records[start : start + 2], strict=False):
            with column, st.container(border=True, height="stretch"):
                _card(library, record, reports[record.id], busy=busy)
    _comparison([record for record in records if reports[record.id]], reports)
    taking, describing = st.columns(2, gap="large")
    with taking:
        _taking_in(library, busy=busy)
        for tab in tabs_of("train", {}).values():
            st.markdown(f"**{tab.title}**")
            tab.draw(now)
    with describing:
        _describing(library, busy=busy)


def _job(library: Library) -> None:
    """A job of this section at work, or how the last one failed to end."""
    running = jobs.current(library)
    latest = next(iter(library.jobs.recent(1)), None)
    if latest is None or latest.kind not in _JOBS or latest.state == "done":
        return

    @st.fragment(run_every=1.0 if running else None)
    def watch() -> None:
        if running is not None and jobs.current(library) is None:
            st.rerun()
        job_panel(library, library.jobs.get(latest.id))

    watch()


def _card(library: Library, record: ModelRecord, report: dict[str, Any], *, busy: bool) -> None:
    in_use = " :green-badge[:material/check: in use]" if record.is_active else ""
    st.markdown(f"**{plain(record.name)}**{in_use}")
    st.caption(plain(kind_words(record)))
    stale = stale_reason(library, record)
    if stale is not None:
        st.caption(f":orange[:material/update: Should be refitted: {plain(stale)}.]")
    st.caption("  \n".join(plain(line) for line in facts(library, record, report)))
    with st.container(horizontal=True):
        use_button(library, record, where="card")
        rename_button(library, record, where="card")
        delete_button(library, record, where="card", busy=busy)
        st.download_button(
            "Download", lambda: _model_file(library, record), f"{record.name}{FILE_ENDING}",
            "application/zip", key=f"card_file_{record.id}", icon=":material/download:", on_click="ignore",
            help="One file to use in another library. It holds the model and its scores, no songs.",
        )  # fmt: skip


def _comparison(records: Sequence[ModelRecord], reports: dict[str, dict[str, Any]]) -> None:
    """The figures of two learned models side by side."""
    names = {record.id: record.name for record in records}
    if len(names) < 2:
        return
    _COMPARED.set([model_id for model_id in _COMPARED.get() if model_id in names])
    st.multiselect(
        "Compare two models", list(names), key=_COMPARED.name, format_func=names.__getitem__, max_selections=2,
        placeholder="Choose two",
    )  # fmt: skip
    chosen = _COMPARED.get()
    if len(chosen) < 2:
        return
    tables = [{row["measure"]: row for row in figures(reports[model_id])} for model_id in chosen]
    measures = [measure for measure in tables[0] if measure in tables[1]]
    columns: dict[str, list[str]] = {"measure": measures}
    for number, (model_id, table) in enumerate(zip(chosen, tables, strict=True), 1):
        columns[f"{names[model_id]}"] = [table[m]["after"] for m in measures]
        columns[f"vs. before{' ' * number}"] = [
            f"{table[m]['difference']} ({table[m]['95 % between']})"
            if table[m]["95 % between"]
            else table[m]["difference"]
            for m in measures
        ]
    saved_table(pd.DataFrame(columns), name="two models", key="train_compared")
    targets = set()
    for report in (reports[model_id] for model_id in chosen):
        target = (report["settings"][name] for name in ("supervision", "k", "threshold", "random_state"))
        targets.add((*target, report["n_songs"]))
    if len(targets) > 1:
        st.caption("Trained on different targets; scores are not comparable.")


# --- more models ----------------------------------------------------------------------------------


def _take(library: Library, name: str, data: bytes) -> None:
    try:
        path = keep_upload(library, name, data)
    except MusicsimError as error:
        st.toast(plain(error), icon=":material/warning:")
        return
    start_job(library, "take_model", path=str(path))


def _taking_in(library: Library, *, busy: bool) -> None:
    st.markdown("**Import a model**")
    file = st.file_uploader(
        f"A {FILE_ENDING} file", type=[FILE_ENDING.lstrip(".")], key="models_file",
        help="Saved with Download on a model's card, here or in another library. It is applied to all "
        "songs.",
    )  # fmt: skip
    if file is not None:
        st.button(
            "Import", icon=":material/input:", key="models_take", disabled=busy,
            on_click=_take, args=(library, file.name, file.getvalue()),
        )  # fmt: skip


def _represent(library: Library) -> None:
    settings = RepresentationSettings(_REPRESENTATION.get(), _CODEWORDS.get(), _TAU.get())
    start_job(library, "represent", name=free_name(library, settings.name), settings=asdict(settings))


def _describing(library: Library, *, busy: bool) -> None:
    for key in (_REPRESENTATION, _CODEWORDS, _TAU):
        key.keep()
    st.markdown("**Other song features**")
    kind = st.selectbox(
        "Features", offered(), key=_REPRESENTATION.name,
        format_func=lambda name: representations()[name].description,
        help="To compare with and to train on. Mixtures of Gaussians take longest: seconds per song.",
    )  # fmt: skip
    first, second = st.columns([4, 3])
    has_codewords = kind in CODEWORDS
    with first:
        st.segmented_control(
            "Codewords", [256, 512, 1024, 2048], key=_CODEWORDS.name, disabled=not has_codewords, required=True
        )
    with second:
        st.segmented_control(
            "Codewords per frame (top-τ)", [1, 2, 4, 8], key=_TAU.name, disabled=not has_codewords, required=True
        )
    st.button(
        "Compute", icon=":material/graphic_eq:", key="models_represent", disabled=busy,
        on_click=_represent, args=(library,),
    )  # fmt: skip
