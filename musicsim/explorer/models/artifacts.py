"""What is kept beside a model: clusters, the map, the walk's weights, the report of its training."""

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
from musicsim.library.db.cache import load_arrays, save_arrays
from musicsim.library.disk.arrays import atomic_path

_log = logging.getLogger(__name__)


def save_clusters(folder: Path, song_ids: Int64Array, labels: Mapping[str, Int64Array]) -> None:
    """Keep cluster labels (n_songs,) by the number of clusters."""
    save_arrays(folder / "clusters.npz", song_ids=song_ids, **{f"labels_{k}": v for k, v in labels.items()})


def load_clusters(folder: Path) -> tuple[Int64Array, dict[str, Int64Array]]:
    """Song ids (n_songs,) and their labels by the number of clusters; empty before the first, and of a damaged file."""
    arrays = readable_arrays(folder / "clusters.npz")
    ids = arrays.pop("song_ids", np.empty(0, dtype=np.int64))
    return ids, {name.removeprefix("labels_"): values for name, values in arrays.items()}


def save_map(folder: Path, song_ids: Int64Array, places: FloatingArray) -> None:
    """Keep the places of songs on the map (n_songs, 2)."""
    save_arrays(folder / "map.npz", song_ids=song_ids, places=places.astype(np.float32))


def load_map(folder: Path) -> tuple[Int64Array, Float32Array]:
    """Song ids (n_songs,) and their places (n_songs, 2); empty before the first map, and of a damaged file."""
    arrays = readable_arrays(folder / "map.npz")
    empty = np.empty((0, 2), dtype=np.float32)
    return arrays.get("song_ids", np.empty(0, dtype=np.int64)), arrays.get("places", empty)


def readable_arrays(source: Path) -> dict[str, npt.NDArray[Any]]:
    """Arrays of a file that the next job makes again; none where there is no file, or a damaged one."""
    try:
        return load_arrays(source)
    except Exception as error:  # zipfile and numpy raise nearly anything at a damaged file
        _log.warning("%s cannot be read, the next job rebuilds it: %r", source, error)
        return {}


@dataclass(frozen=True, slots=True)
class FittedWalk:
    """Weights of the walk of all playlists and of each dialect, as they were fitted."""

    names: list[str]  # edges that have a weight worth keeping in some of the walks
    # (1 + n_dialects, n_edges): the walk of all playlists first, then the dialects
    weights: Float64Array
    # JSON values: `n_playlists`, `n_judged`, `gain`, and `dialects`, a list of mappings with `name`,
    # `n_playlists`, `gain`, `gain_global`
    facts: dict[str, Any]


def save_walk(folder: Path, walk: FittedWalk) -> None:
    """Keep what was fitted, edges by their names."""
    save_arrays(
        folder / "walk.npz",
        names=np.array(walk.names, dtype=np.str_),
        weights=walk.weights,
        facts=np.array(json.dumps(walk.facts)),
    )


def load_walk(folder: Path) -> FittedWalk | None:
    """What :func:`save_walk` kept; None before the first fit, and of a damaged file."""
    arrays = readable_arrays(folder / "walk.npz")
    if "facts" not in arrays:
        return None
    return FittedWalk(arrays["names"].tolist(), arrays["weights"], json.loads(str(arrays["facts"])))


def drop_walk(folder: Path) -> None:
    """Forget what was fitted."""
    (folder / "walk.npz").unlink(missing_ok=True)


def save_report(folder: Path, report: Mapping[str, Any]) -> None:
    """Keep what a model's card says; JSON values."""
    with atomic_path(folder / "report.json") as temporary:
        temporary.write_text(json.dumps(report, indent=1), encoding="utf-8")


def read_report(path: Path) -> dict[str, Any]:
    """A report as :class:`musicsim.explorer.models.schema.Report` has it; ValueError if it is none."""
    return read_json_file(Report, path).model_dump(exclude_unset=True)


def load_report(folder: Path) -> dict[str, Any]:
    """What :func:`save_report` kept; empty for a model that was not learned, and of a damaged file."""
    path = folder / "report.json"
    try:
        return read_report(path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        _log.warning("%s cannot be read: %s", path, error)
        return {}
    except ValueError as error:
        _log.warning("%s cannot be read: %r", path, error)
        return {}
