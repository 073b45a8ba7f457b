"""Albums: how often the most similar album is by the same composer, for three distances between albums.

P@1 and P@5 are the shares of albums by the same composer among the nearest and the five nearest. Queries are by
composers with two or more albums; the 95 % intervals are over these composers. P@5 cannot reach 1 for composers with
few albums. Chance is the share among all other albums. "adjusted" means mutual proximity of the distances between
albums.

"by tags": the albums of the library, whose composer made more than half of the pieces. They share their production,
too. "dealt": the pieces of each composer are dealt at random into albums of three or five.

Pieces: a library (``--library``). Labels are those of experiments.real_music (or ``--labels``), or with ``--music``,
the folder of the library's music, the artist tags. The model Sound is fitted on the pieces, without shipped constants.
"""

from collections import Counter

import numpy as np

from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, main
from experiments.support.game_music import LABELS
from experiments.support.pieces import Pieces, euclidean, labelled, open_copy, tagged, with_proximity
from experiments.support.timbre import constants_of, model_vectors
from musicsim._arrays import Float64Array, Int64Array
from musicsim.evaluation import bootstrap_pairs
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.albums.catalogue import list_albums
from musicsim.library import Library

SIZES = (3, 5)
MEAN = "mean vectors"
CHOSEN = f"{MEAN}, adjusted"
"""The distance that the app uses."""

Albums = list[tuple[str, Int64Array]]
"""The composer, empty if unknown, and the rows of the pieces of each album."""


def distances(X: Float64Array, albums: Albums) -> dict[str, Float64Array]:
    """Return the distances between albums, (n_albums, n_albums), of each kind."""
    D, rows = euclidean(X), [own for _, own in albums]
    blocks = [[D[np.ix_(a, b)] for b in rows] for a in rows]
    return {
        MEAN: euclidean(np.stack([X[own].mean(axis=0) for own in rows])),
        "mean of all pairs": np.array([[block.mean() for block in line] for line in blocks]),
        "mean of nearest pieces, both ways": np.array(
            [[(block.min(axis=0).mean() + block.min(axis=1).mean()) / 2 for block in line] for line in blocks]
        ),
    }


def precisions(D: Float64Array, composers: np.ndarray) -> np.ndarray:
    """Return P@1, P@5 and chance of each album, (n_albums, 3); nan for composers with a single album."""
    n = len(D)
    order = np.argsort(D + np.diag(np.full(n, np.inf)), axis=1, kind="stable")[:, : n - 1]
    same = composers[order] == composers[:, None]
    values = np.column_stack([same[:, 0], same[:, :5].mean(axis=1), same.mean(axis=1)])
    values[(composers == "") | ~same.any(axis=1)] = np.nan
    return values


def _read_tagged(library: Library, pieces: Pieces) -> Albums:
    row_of = {song.id: row for row, song in enumerate(pieces.songs)}
    albums = []
    for album in list_albums(take_snapshot(library)):
        rows = np.array([row_of[i] for i in album.song_ids if i in row_of], dtype=np.int64)
        if len(rows):
            ((name, n),) = Counter(pieces.composers[rows].tolist()).most_common(1)
            albums.append((name if 2 * n > len(rows) else "", rows))
    return albums


def _deal(pieces: Pieces, size: int, rng: np.random.Generator) -> Albums:
    albums = []
    for name in np.unique(pieces.composers[pieces.composers != ""]).tolist():
        rows = rng.permutation(np.flatnonzero(pieces.composers == name))
        albums += [(name, rows[start : start + size]) for start in range(0, len(rows) - size + 1, size)]
    return albums


def _rows(part: str, X: Float64Array, deals: list[Albums], seed: int) -> list[Row]:
    """Return a row per kind of distance, over all deals together."""
    found: dict[str, list[np.ndarray]] = {}
    composers = [np.array([name for name, _ in albums]) for albums in deals]
    for albums, names in zip(deals, composers, strict=True):
        for kind, D in distances(X, albums).items():
            found.setdefault(kind, []).append(precisions(D, names))
            found.setdefault(f"{kind}, adjusted", []).append(precisions(with_proximity(D), names))
    groups = np.concatenate(composers).tolist()
    n_albums = sum(map(len, deals)) // len(deals)
    rows: list[Row] = []
    for kind, parts in found.items():
        values = np.concatenate(parts)
        is_query = np.isfinite(values[:, 0])
        n_composers = len({name for name, asked in zip(groups, is_query, strict=True) if asked})
        row = {"part": part, "albums": n_albums, "composers": n_composers, "distance": kind}
        row["chance"] = round(float(np.nanmean(values[:, 2])), 3)
        for place, measure in enumerate(("P@1", "P@5")):
            ours = values[:, place]
            mean, low, high = bootstrap_pairs(ours, np.zeros(len(ours)), groups, random_state=seed)
            row[measure] = f"{mean:.3f} ({low:.3f} to {high:.3f})"
        rows.append(row | {"mean": float(np.nanmean(values[:, 0]))})
    return rows


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure every part and kind of distance."""
    with open_copy(settings) as library:
        with constants_of(library, ()):
            refresh(library, force=True)
        pieces = tagged(library, settings.music) if settings.music else labelled(library, settings.labels or LABELS)
        native = library.models.native()
        assert native is not None
        X, by_tags = model_vectors(library, pieces, native.id), _read_tagged(library, pieces)
    settings.facts.update(pieces=len(pieces))
    rng, n_deals = np.random.default_rng(settings.seed), 50 if settings.full else 10
    parts = {"by tags": [by_tags]}
    parts |= {f"dealt, {size} pieces": [_deal(pieces, size, rng) for _ in range(n_deals)] for size in SIZES}
    rows: list[Row] = []
    claims: list[Claim] = []
    for part, deals in parts.items():
        found = _rows(part, X, deals, settings.seed)
        best = max(float(row["mean"]) for row in found)
        ours = next(float(row["mean"]) for row in found if row["distance"] == CHOSEN)
        claims.append(at_least(f"{part}: P@1 of the adjusted mean vectors, less that of the best", ours - best, -0.05))
        rows += [{key: value for key, value in row.items() if key != "mean"} for row in found]
        progress(part)
    return rows, claims


if __name__ == "__main__":
    main(
        "albums", __doc__.splitlines()[0], run, takes_library=True, takes_music=True,
        short="10 of 50 random divisions of the pieces into albums",
    )  # fmt: skip
