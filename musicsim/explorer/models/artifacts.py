"""Files stored with a model: clusters, the map, the weights of the playlist walk, and the training report."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Float64Array, FloatingArray, Int64Array
from musicsim.explorer.models.schema import Report, read_json_file
from musicsim.library import atomic_path, save_arrays
from musicsim.library.db.cache import load_arrays

_log = logging.getLogger(__name__)


def save_clusters(folder: Path, song_ids: Int64Array, labels: Mapping[str, Int64Array]) -> None:
    """Save cluster labels, one (n_songs,) array for each number of clusters."""
    save_arrays(folder / "clusters.npz", song_ids=song_ids, **{f"labels_{k}": v for k, v in labels.items()})


def load_clusters(folder: Path) -> tuple[Int64Array, dict[str, Int64Array]]:
    """Load song ids (n_songs,) and labels for each number of clusters; empty if the file is missing or damaged."""
    arrays = readable_arrays(folder / "clusters.npz")
    ids = arrays.pop("song_ids", np.empty(0, dtype=np.int64))
    return ids, {name.removeprefix("labels_"): values for name, values in arrays.items()}


def save_map(folder: Path, song_ids: Int64Array, places: FloatingArray) -> None:
    """Save the places of songs on the map (n_songs, 2)."""
    save_arrays(folder / "map.npz", song_ids=song_ids, places=places.astype(np.float32))


def load_map(folder: Path) -> tuple[Int64Array, Float32Array]:
    """Load song ids (n_songs,) and places (n_songs, 2); empty if the file is missing or damaged."""
    arrays = readable_arrays(folder / "map.npz")
    empty = np.empty((0, 2), dtype=np.float32)
    return arrays.get("song_ids", np.empty(0, dtype=np.int64)), arrays.get("places", empty)


def readable_arrays(source: Path) -> dict[str, npt.NDArray[Any]]:
    """Load arrays that the next job can rebuild; return {} if the file is missing or damaged."""
    try:
        return load_arrays(source)
    except Exception as error:  # zipfile and numpy raise many types of errors for damaged files
        _log.warning("%s cannot be read; the next job will rebuild it: %r", source, error)
        return {}


@dataclass(frozen=True, slots=True)
class FittedWalk:
    """Fitted weights of the playlist walk, for all playlists and for each dialect."""

    names: list[str]  # edges with a non-negligible weight in at least one walk
    weights: Float64Array  # (1 + n_dialects, n_edges): the walk for all playlists, then the dialects
    # JSON values: `n_playlists`, `n_judged`, `gain`, and `dialects`, a list of mappings with `name`,
    # `n_playlists`, `gain` and `gain_global`
    facts: dict[str, Any]


def save_walk(folder: Path, walk: FittedWalk) -> None:
    """Save fitted walks."""
    save_arrays(
        folder / "walk.npz",
        names=np.array(walk.names, dtype=np.str_),
        weights=walk.weights,
        facts=np.array(json.dumps(walk.facts)),
    )


def load_walk(folder: Path) -> FittedWalk | None:
    """Load fitted walks; None if the file is missing or damaged."""
    arrays = readable_arrays(folder / "walk.npz")
    if "facts" not in arrays:
        return None
    return FittedWalk(arrays["names"].tolist(), arrays["weights"], json.loads(str(arrays["facts"])))


def drop_walk(folder: Path) -> None:
    """Delete the fitted walks."""
    (folder / "walk.npz").unlink(missing_ok=True)


def save_report(folder: Path, report: Mapping[str, Any]) -> None:
    """Save the training report, which consists of JSON values."""
    with atomic_path(folder / "report.json") as temporary:
        temporary.write_text(json.dumps(report, indent=1), encoding="utf-8")


def read_report(path: Path) -> dict[str, Any]:
    """Read a :class:`musicsim.explorer.models.schema.Report`; raises ValueError if it is invalid."""
    return read_json_file(Report, path).model_dump(exclude_unset=True)


def load_report(folder: Path) -> dict[str, Any]:
    """Load the training report; return {} if the model was not trained or the file is damaged."""
    path = folder / "report.json"
    try:
        return read_report(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        _log.warning("%s cannot be read: %r", path, error)
        return {}
