"""Snapshot files: what one holds of a library, and how one is served by many processes of one machine."""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from musicsim.explorer.models.artifacts import load_report
from musicsim.explorer.playlists.song_labels import play_counts
from musicsim.explorer.progress import Tell
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.bundles.bundle_file import SnapshotFileReport, save_snapshot_file
from musicsim.library import Library
from musicsim.library.stores.models import BUILT_IN, ModelRecord


def write_snapshot_file(
    library: Library, target: Path, tell: Tell, *, models: Iterable[str] = (), with_excerpts: bool = False
) -> SnapshotFileReport:
    """Write what strangers may have of a library as one file; see :func:`save_snapshot_file`.

    It has the model in use and the built-in ones, those named in `models`, and those that they share features with.

    Raises NotFoundError if there is no model of a name, or none at all.
    """
    records = _chosen(library, models)
    reports = {record.id: _report_of(library, record) for record in records}
    plays = play_counts(take_snapshot(library))
    low, high = np.quantile(plays, [1 / 3, 2 / 3]) if len(plays) else (0.0, 0.0)
    return save_snapshot_file(
        library, target, tell, reports=reports, thirds=(float(low), float(high)), with_excerpts=with_excerpts
    )


def _chosen(library: Library, names: Iterable[str]) -> list[ModelRecord]:
    store = library.models
    chosen = [store.get(), *(store.named(name) for name in names)]
    chosen += [record for record in store.all() if record.kind in BUILT_IN]
    with_bases = {record.id: record for record in chosen}
    for record in chosen:
        with_bases[record.features_of] = store.get(record.features_of)
    return list(with_bases.values())


def _report_of(library: Library, record: ModelRecord) -> bytes | None:
    """The report of a model without who said what it was learned from."""
    report = load_report(library.models.path(record.id))
    if not report:
        return None
    report["detail"] = ""
    report["settings"]["listener"] = ""
    return json.dumps(report).encode()
