"""Factors in real music: how often the nearest pieces by timbre, rhythm or harmony alone are by the same composer.

P@1 and P@5 are the shares of pieces by the same composer among the nearest and the five nearest, for composers with
five or more pieces. Rankings are those of ``--factor``: distances in one factor, without hub reduction. The first row
is Sound, ranked the same way; the second is Sound as search ranks it. Leads over the first row are paired. Intervals
(95 %) are over the composers. A composer is not a ground truth for rhythm or harmony: the experiment only shows how
much of the similarity of a composer's pieces each factor contains.

Pieces: a library (``--library``). Labels are those of experiments.real_music (or ``--labels``). The model Sound is
fitted on the pieces, without shipped constants, which were learned from the same pieces.
"""

import numpy as np

from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, main
from experiments.support.game_music import LABELS
from experiments.support.pieces import Pieces, euclidean, labelled, open_copy, scores, with_proximity
from experiments.support.score_rows import score_row
from experiments.support.timbre import constants_of
from musicsim._arrays import Float64Array
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.snapshot.factors import Factors
from musicsim.explorer.snapshot.snapshot import take_snapshot

SOUND = "Sound"
_SHOWN = ("what", "P@1", "P@1 interval", "lead P@1", "P@5", "P@5 interval", "lead P@5")


def find_distances(factors: Factors, pieces: Pieces) -> dict[str, Float64Array]:
    """Return the distances of all pieces in Sound and in each factor, (n_pieces, n_pieces), infinite if unknown."""
    rows = factors.sound.rows_of([song.id for song in pieces.songs])
    plain = euclidean(factors.sound.vectors_at(rows).astype(np.float64))
    found = {SOUND: plain, f"{SOUND}, as search ranks": with_proximity(plain)}
    for name in factors.names:
        D = euclidean(factors.vectors(name, rows).astype(np.float64))
        found[name] = np.where(np.isnan(D), np.inf, D)
    return found


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure Sound and every factor."""
    with open_copy(settings) as library:
        with constants_of(library, ()):
            refresh(library, force=True)
        pieces = labelled(library, settings.labels or LABELS)
        distances = find_distances(Factors(take_snapshot(library)), pieces)
    settings.facts.update(pieces=len(pieces), queries=len(pieces.queries), composers=pieces.n_composers)
    found = {name: scores(D, pieces) for name, D in distances.items()}
    progress("rankings")
    rows = [score_row(name, of, found[SOUND], pieces, settings.seed) for name, of in found.items()]
    counts = np.array([np.sum(pieces.composers == name) for name in pieces.composers[pieces.queries]])
    chance = float(np.mean((counts - 1) / (len(pieces) - 1)))
    rows.append({"what": "chance", "P@1": chance, "P@5": chance})
    best = max(of.mean("P@1") for name, of in found.items() if not name.startswith(SOUND))
    claims = [at_least("P@1 of Sound, less that of the best factor", found[SOUND].mean("P@1") - best, 0.0)]
    return [{key: row[key] for key in _SHOWN if key in row} for row in rows], claims


if __name__ == "__main__":
    main("factors", __doc__.splitlines()[0], run, takes_library=True)
