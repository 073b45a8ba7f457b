"""The models of a library: a card with actions for each, a comparison of two, and ways to add more."""

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from musicsim.explorer import (
    MODEL_FILE_ENDING,
    RepresentationSettings,
    Snapshot,
    free_name,
    representations,
    stale_reason,
)
from musicsim.explorer.models.files import save_model_file
from musicsim.explorer.models.representations import CODEWORDS, list_addable
from musicsim.explorer.refresh.add_music import keep_upload
from musicsim.explorer.refresh.model_text import facts, figures, kind_words, report_of
from musicsim.library import BUILT_IN, Library, ModelRecord
from musicsim.library.stores.models import MAX_NAME
from musicsim.ui.base import Key, download, off_if, plain, toast_errors
from musicsim.ui.base.sections import tabs_of
from musicsim.ui.components import BUSY, show_table, start_job, use_button, watch_job

_COMPARED: Key[list[str]] = Key("models_compared", list, "ids of the two models to compare")
_REPRESENTATION: Key[str] = Key("model_representation", lambda: "histogram", "kind of representation to add")
_CODEWORDS: Key[int] = Key("model_codewords", lambda: 1024, "number of codewords of the representation to add")
_TAU: Key[int] = Key("model_tau", lambda: 4, "codewords per frame of the representation to add")


def _rename_button(library: Library, record: ModelRecord) -> None:
    key: Key[str] = Key(f"card_name_{record.id}", lambda: record.name, "new name of a model")

    def rename() -> None:
        with toast_errors():
            library.models.rename(record.id, key.get())

    is_off = off_if(record.kind in BUILT_IN, "Built-in models cannot be renamed.")
    with st.popover("Rename", icon=":material/edit:", **is_off):
        st.text_input("Name", **key.widget(), max_chars=MAX_NAME)
        st.button("Rename it", key=f"card_rename_{record.id}", type="primary", on_click=rename)


def _delete_button(library: Library, record: ModelRecord, *, busy: bool) -> None:
    is_built_in = record.kind in BUILT_IN

    def delete() -> None:
        with toast_errors():
            library.models.delete(record.id)
            st.toast(f"{plain(record.name)} was deleted.", icon=":material/check_circle:")

    reason = "Other models are built on this one." if is_built_in else BUSY
    with st.popover("Delete", icon=":material/delete:", **off_if(is_built_in or busy, reason)):
        after = " “Sound” will replace it." if record.is_active else ""
        st.write(
            f"Deleting {plain(record.name)} can't be undone. To get it back, you would have to train it again.{after}"
        )
        st.button("Delete it", key=f"card_delete_{record.id}", type="primary", on_click=delete)


def _model_file(library: Library, record: ModelRecord) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / f"model{MODEL_FILE_ENDING}"
        save_model_file(library, record.id, target)
        return target.read_bytes()


def show_models(snapshot: Snapshot, *, busy: bool) -> None:
    """Show all models of a library, and ways to add more."""
    library = snapshot.library
    records = library.models.all()
    reports = {record.id: report_of(library, record) for record in records}
    watch_job(library, kinds=("represent", "take_model"))
    for start in range(0, len(records), 2):
        for column, record in zip(st.columns(2), records[start : start + 2], strict=False):
            with column, st.container(border=True, height="stretch"):
                _show_card(library, record, reports[record.id], busy=busy)
    _show_comparison([record for record in records if reports[record.id]], reports)
    with st.expander("Add a model", icon=":material/add:"):
        left, right = st.columns(2, gap="large")
        with left:
            _show_import(library)
            for tab in tabs_of("models", {}).values():
                st.markdown(f"**{tab.title}**")
                tab.draw(snapshot)
        with right:
            _show_representations(library, busy=busy)


def _show_card(library: Library, record: ModelRecord, report: dict[str, Any], *, busy: bool) -> None:
    in_use = " :green-badge[:material/check: in use]" if record.is_active else ""
    st.markdown(f"**{plain(record.name)}**{in_use}")
    st.caption(plain(kind_words(record)))
    stale = stale_reason(library, record)
    if stale is not None:
        st.caption(f":orange[:material/update: Needs refitting: {plain(stale)}.]")
    with st.expander("Details"):
        st.caption("  \n".join(plain(line) for line in facts(library, record, report)))
    with st.container(horizontal=True):
        use_button(library, record, where="card")
        _rename_button(library, record)
        _delete_button(library, record, busy=busy)
        download(
            "Download", lambda: _model_file(library, record), f"{record.name}{MODEL_FILE_ENDING}",
            "application/zip", key=f"card_file_{record.id}",
            help="Download one file for use in other libraries. It contains the model and its scores, but no songs.",
        )  # fmt: skip


def _show_comparison(records: Sequence[ModelRecord], reports: dict[str, dict[str, Any]]) -> None:
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
        columns[names[model_id]] = [table[m]["after"] for m in measures]
        intervals = [f" ({table[m]['95% interval']})" if table[m]["95% interval"] else "" for m in measures]
        columns[f"vs. before{' ' * number}"] = [
            table[m]["difference"] + interval for m, interval in zip(measures, intervals, strict=True)
        ]
    show_table(pd.DataFrame(columns), name="two models", key="train_compared")
    targets = set()
    for report in (reports[model_id] for model_id in chosen):
        target = (report["settings"].get(name) for name in ("supervision", "k", "threshold", "overlap", "random_state"))
        targets.add((*target, report["n_songs"]))
    if len(targets) > 1:
        st.caption("These models were trained on different targets, so their scores are not comparable.")


def _show_import(library: Library) -> None:
    st.markdown("**Import a model**")
    file = st.file_uploader(
        f"A {MODEL_FILE_ENDING} file", type=[MODEL_FILE_ENDING.lstrip(".")], key="models_file",
        help="A file downloaded from a model's card in any library. The model is applied to all songs.",
    )  # fmt: skip
    if file is None:
        return

    def take() -> None:
        with toast_errors():
            start_job(library, "take_model", path=str(keep_upload(library, file.name, file.getvalue())))

    st.button("Import", icon=":material/input:", key="models_take", on_click=take)


def _show_representations(library: Library, *, busy: bool) -> None:
    st.markdown("**Other song features**")
    kind = st.selectbox(
        "Features", list_addable(), **_REPRESENTATION.widget(),
        format_func=lambda name: representations()[name].description,
        help="Models to compare or to train on. Gaussian mixtures take the longest: seconds per song.",
    )  # fmt: skip
    left, right = st.columns([4, 3])
    options: dict[str, Any] = {"disabled": kind not in CODEWORDS, "required": True}
    left.segmented_control("Codewords", [256, 512, 1024, 2048], **_CODEWORDS.widget(), **options)
    right.segmented_control("Codewords per frame (top-τ)", [1, 2, 4, 8], **_TAU.widget(), **options)

    def represent() -> None:
        settings = RepresentationSettings(_REPRESENTATION.get(), _CODEWORDS.get(), _TAU.get())
        start_job(library, "represent", name=free_name(library, settings.name), settings=asdict(settings))

    st.button("Compute", icon=":material/graphic_eq:", key="models_represent", on_click=represent)
