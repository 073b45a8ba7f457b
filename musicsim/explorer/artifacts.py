"""What is kept beside a model: clusters, the map, the walk's weights, the report of its training."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim.library.arrays import atomic_path

__all__ = [
    "load_clusters",
    "load_map",
    "load_report",
    "load_walk",
    "save_clusters",
    "save_map",
    "save_report",
    "save_walk",
]


def _save(target: Path, **arrays: Any) -> None:
    with atomic_path(target) as temporary, temporary.open("wb") as stream:
        np.savez(stream, **arrays)


def _load(source: Path) -> dict[str, npt.NDArray[Any]]:
    if not source.exists():
        return {}
    with np.load(source, allow_pickle=False) as stored:
        return dict(stored)


def save_clusters(
    folder: Path, song_ids: npt.NDArray[np.int64], labels: Mapping[str, npt.NDArray[np.int64]]
) -> None:
    """Keep cluster labels (n_songs,) by the number of clusters."""
    _save(folder / "clusters.npz", song_ids=song_ids, **{f"labels_{k}": v for k, v in labels.items()})


def load_clusters(folder: Path) -> tuple[npt.NDArray[np.int64], dict[str, npt.NDArray[np.int64]]]:
    """Song ids (n_songs,) and their labels by the number of clusters; empty before the first."""
    arrays = _load(folder / "clusters.npz")
    ids = arrays.pop("song_ids", np.empty(0, dtype=np.int64))
    return ids, {name.removeprefix("labels_"): values for name, values in arrays.items()}


def save_map(folder: Path, song_ids: npt.NDArray[np.int64], places: npt.NDArray[np.floating]) -> None:
    """Keep the places of songs on the map (n_songs, 2)."""
    _save(folder / "map.npz", song_ids=song_ids, places=places.astype(np.float32))


def load_map(folder: Path) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Song ids (n_songs,) and their places (n_songs, 2); empty before the first map."""
    arrays = _load(folder / "map.npz")
    empty = np.empty((0, 2), dtype=np.float32)
    return arrays.get("song_ids", np.empty(0, dtype=np.int64)), arrays.get("places", empty)


def save_walk(folder: Path, names: Sequence[str], weights: npt.NDArray[np.float64], n_playlists: int) -> None:
    """Keep the fitted weights of the walk's edges by their names."""
    _save(
        folder / "walk.npz",
        names=np.array(names, dtype=np.str_),
        weights=weights,
        n_playlists=np.int64(n_playlists),
    )


def load_walk(folder: Path) -> tuple[dict[str, float], int]:
    """Weights by edge name, and how many playlists they were fitted on; empty before the first fit."""
    arrays = _load(folder / "walk.npz")
    if not arrays:
        return {}, 0
    pairs = zip(arrays["names"].tolist(), arrays["weights"].tolist(), strict=True)
    return dict(pairs), int(arrays["n_playlists"])


def save_report(folder: Path, report: Mapping[str, Any]) -> None:
    """Keep what a model's card says; JSON values."""
    with atomic_path(folder / "report.json") as temporary:
        temporary.write_text(json.dumps(report, indent=1), encoding="utf-8")


def load_report(folder: Path) -> dict[str, Any]:
    """What :func:`save_report` kept; empty for a model that was not learned."""
    try:
        return dict(json.loads((folder / "report.json").read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
