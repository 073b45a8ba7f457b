"""Small realistic libraries of some pieces: with folders only, artists only, or neither."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.report import Claim, Settings, at_most, format_lead
from experiments.support.halves import Gains, gains_of
from experiments.support.parts import Rows
from experiments.support.pieces import Pieces, euclidean, scores, with_proximity
from experiments.support.timbre import constants_of, model_vectors
from musicsim._arrays import BoolArray, Float64Array
from musicsim.errors import ModelError
from musicsim.explorer.learning.search_ranking import score_search
from musicsim.explorer.learning.verdict import VERDICT_MEASURES, Lead, find_losses, leads_of
from musicsim.explorer.models.artifacts import load_report
from musicsim.explorer.refresh.learned_model import learn
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.requests.training import LearningSettings
from musicsim.library import Library
from musicsim.relevance import Relevance

__all__ = ["KNOWN", "SIZES", "app_gains", "small_claims", "small_rows"]

SIZES = (30, 50, 80, 110, 150)
FOLDERS, ARTISTS, NOTHING = "folders only", "artists only", "nothing"
KNOWN = (FOLDERS, ARTISTS, NOTHING)
BEFORE, ALONE = "codewords", "the sound alone"
_KIND = {FOLDERS: "folder", ARTISTS: "artist"}
_ROOT = Path("/music")


class _Quiet:
    """Silent progress of a training."""

    def __call__(self, message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None:
        """Ignore the message."""

    def trace(self, point: dict[str, Any]) -> None:
        """Ignore the point."""

    def is_enough(self) -> bool:
        """Never stop early."""
        return False


def small_rows(library: Library, pieces: Pieces, size: int, known: str, settings: Settings) -> Rows:
    """Run the app's automatic learning on one small library and evaluate it on composers with hidden labels.

    Returns
    -------
    list of one dict
        ``worse`` lists the measures that fell beyond their intervals, by reference.
    """
    rows, hidden = choose_rows(pieces, size, settings.seed)
    others = [song for row, song in enumerate(pieces.songs) if row not in set(rows)]
    with constants_of(library, others), make_small_library(library, pieces, rows, known, hidden) as (small, some):
        row, leads = evaluate_library(small, some, known, hidden)
    worse = {against: find_losses(found) for against, found in leads.items()}
    return [{"part": "small libraries", "what": f"{size} pieces, {known}"} | row | {"worse": worse}]


def small_claims(rows: Rows) -> list[Claim]:
    """Return claims about the number of small libraries that became worse."""
    return [
        at_most(
            f"small libraries where what the app does is worse than {against} beyond its interval",
            sum(bool(row["worse"][against]) for row in rows),
            0,
        )
        for against in (BEFORE, ALONE)
    ]


def app_gains(library: Library, pieces: Pieces, is_out: BoolArray, known: str, **options: Any) -> tuple[Gains, str]:
    """Return the gain of the app's learning over the sound alone on hidden composers, and the model it kept.

    The options are those of LearningSettings.
    """
    hidden = set(pieces.composers[is_out].tolist())
    everything = list(range(len(pieces)))
    with constants_of(library, ()), make_small_library(library, pieces, everything, known, hidden) as (small, some):
        alone, _, kept, said = _learned(small, some, known, **options)
    before, after = (scores(with_proximity(euclidean(X)), some) for X in (alone, kept))
    return gains_of(after, before, is_out), said


def choose_rows(pieces: Pieces, size: int, seed: int) -> tuple[list[int], set[str]]:
    """Choose the rows of some packages, and half of their composers."""
    rng = np.random.default_rng([seed, size])
    rows: list[int] = []
    for package in rng.permutation(np.unique(pieces.packages)):
        own = rng.permutation(np.flatnonzero(pieces.packages == package))
        rows += own[: max(2, size // 4)].tolist()  # no package dominates a library
        if len(rows) >= size:
            break
    rows = sorted(rows[:size])
    names, counts = np.unique(pieces.composers[rows], return_counts=True)
    several = rng.permutation(names[(names != "") & (counts > 1)])
    return rows, set(several[: (len(several) + 1) // 2].tolist())


@contextmanager
def make_small_library(
    library: Library, pieces: Pieces, rows: list[int], known: str, hidden: set[str]
) -> Iterator[tuple[Library, Pieces]]:
    """Yield a library of some pieces, labeled except for the hidden composers."""
    folder = library.folder.parent / "small"
    # hard links suffice: frames are never overwritten in place
    shutil.copytree(library.folder / "frames", folder / "frames", copy_function=os.link)
    shutil.copy2(library.folder / "library.sqlite", folder)
    try:
        with Library.open(folder) as small:
            with small.write() as connection:
                execute = connection.exec_driver_sql
                ids = ", ".join(str(pieces.songs[row].id) for row in rows)
                execute(f"DELETE FROM songs WHERE id NOT IN ({ids})")
                for table in ("models", "duplicates", "roots"):
                    execute(f"DELETE FROM {table}")
                execute("INSERT INTO roots (path, added_at) VALUES (?, 0)", (str(_ROOT),))
                for row in rows:
                    song, composer = pieces.songs[row], str(pieces.composers[row])
                    is_known = composer not in hidden
                    artist = composer or None if is_known and known == ARTISTS else None
                    parent = _ROOT / pieces.packages[row] if is_known and known == FOLDERS else _ROOT
                    path = parent / f"{song.id}{song.path.suffix}"
                    execute("UPDATE songs SET artist = ?, album_artist = NULL WHERE id = ?", (artist, song.id))
                    # several files may have the same sound
                    execute("DELETE FROM files WHERE song_id = ? AND path <> ?", (song.id, str(song.path)))
                    execute(
                        "UPDATE files SET path = ?, folder = ? WHERE song_id = ?", (str(path), str(parent), song.id)
                    )
            refresh(small, force=True)
            here = {song.id: song for song in small.songs()}
            some = Pieces(
                tuple(here[pieces.songs[row].id] for row in rows), pieces.composers[rows], pieces.packages[rows]
            )
            yield small, some
    finally:
        shutil.rmtree(folder)


def _learned(
    small: Library, pieces: Pieces, known: str, **options: Any
) -> tuple[Float64Array, Float64Array, Float64Array, str]:
    """Return vectors by the sound alone, by codewords, and by the model that learning keeps; and its name."""
    native, codewords = small.models.native(), small.models.codewords()
    assert native is not None
    assert codewords is not None
    kept, said = native.id, "the sound alone, as nothing says what is similar"
    if known != NOTHING:
        try:
            kept = learn(small, LearningSettings(_KIND[known], **options), "learned", _Quiet())
            report = load_report(small.models.path(kept))
            said = report["setting"] if "setting" in report else f"C = {report['C']:g}"
        except ModelError as error:
            said = f"the sound alone: {error}"
    alone, by_codewords, now = (model_vectors(small, pieces, model_id) for model_id in (native.id, codewords.id, kept))
    return alone, by_codewords, now, said


def evaluate_library(
    small: Library, pieces: Pieces, known: str, hidden: set[str]
) -> tuple[dict[str, Any], dict[str, dict[str, Lead]]]:
    """Return a row of the table, and the leads of automatic learning over codewords and over the sound alone."""
    alone, by_codewords, now, said = _learned(small, pieces, known)
    relevance = Relevance.from_labels(pieces.composers.tolist())
    queries, database = np.flatnonzero(np.isin(pieces.composers, list(hidden))), np.arange(len(pieces))
    judgments, reduce_hubs = relevance.restrict(queries, database), small.settings["hub_reduction"]
    of_codewords, of_sound, after = (
        score_search(X, queries, database, judgments, reduce_hubs=reduce_hubs) for X in (by_codewords, alone, now)
    )
    composers = pieces.composers[queries].tolist()
    leads = {
        against: leads_of(before, after, composers) for against, before in ((BEFORE, of_codewords), (ALONE, of_sound))
    }
    row: dict[str, Any] = {"kept": said[:80], "queries": len(queries), "composers": len(hidden)}
    for against, found in leads.items():
        for name, lead in found.items():
            row[f"{VERDICT_MEASURES[name]} over {against}"] = format_lead(lead.mean, lead.low, lead.high)
    return row, leads
