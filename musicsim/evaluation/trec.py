"""Rankings and relevance as text in the format of TREC, which trec_eval and ranx read."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim._checks import check_type
from musicsim.evaluation.ranking import check_distances
from musicsim.relevance import Relevance

_SOURCE = "Relevance.from_labels and Relevance.from_lists create"


def to_qrels(relevance: Relevance, *, queries: Sequence[Any] | None = None, songs: Sequence[Any] | None = None) -> str:
    """Return the relevant songs of each query as lines ``query 0 song 1``; all other songs are irrelevant.

    Parameters
    ----------
    relevance : Relevance
    queries, songs : sequences of names without spaces, optional
        Names of the queries and of the songs of the database; by default, their row numbers.

    See Also
    --------
    to_run : The ranking that is measured with them.

    Examples
    --------
    >>> from musicsim.evaluation import to_qrels
    >>> from musicsim.relevance import Relevance
    >>> print(to_qrels(Relevance.from_labels(["jazz", "folk", "jazz"])).rstrip())
    0 0 2 1
    2 0 0 1
    """
    check_type("relevance", relevance, Relevance, _SOURCE)
    query_names = _names(queries, len(relevance), "queries")
    song_names = _names(songs, relevance.n_items, "songs")
    lines = [
        f"{name} 0 {song_names[song]} 1\n"
        for q, name in enumerate(query_names)
        for song in relevance.relevant(q).tolist()
    ]
    return "".join(lines)


def to_run(
    distances: npt.ArrayLike, relevance: Relevance, *, tag: str = "musicsim", queries: Sequence[Any] | None = None,
    songs: Sequence[Any] | None = None,
) -> str:  # fmt: skip
    """Return the ranking of songs for each query as lines ``query Q0 song rank score tag``.

    Songs that `relevance` excludes, such as the query itself, are left out. Scores fall from the number of songs to 1,
    because programs treat equal scores differently. Of equally distant songs, irrelevant ones come first, as in
    :func:`distance_scores`. So MAP and MRR are the same.

    Parameters
    ----------
    distances : array-like of shape (n_queries, n_songs), finite
    relevance : Relevance
    tag : str without spaces; the name of the system
    queries, songs : as in :func:`to_qrels`

    See Also
    --------
    to_qrels : The relevant songs.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.evaluation import to_run
    >>> from musicsim.relevance import Relevance
    >>> D = np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 3.0], [1.0, 3.0, 0.0]])
    >>> print(to_run(D, Relevance.from_labels(["jazz", "folk", "jazz"])).splitlines()[0])
    0 Q0 2 1 2 musicsim
    """
    D = check_distances(distances, relevance)
    (tag,) = _names([tag], 1, "tag")
    query_names = _names(queries, len(relevance), "queries")
    song_names = _names(songs, relevance.n_items, "songs")
    lines = []
    for q, name in enumerate(query_names):
        (judgments,) = relevance.judgments([q])
        ranked = np.lexsort((judgments, D[q]))
        ranked = ranked[judgments[ranked] >= 0].tolist()
        lines += [
            f"{name} Q0 {song_names[song]} {rank} {len(ranked) + 1 - rank} {tag}\n"
            for rank, song in enumerate(ranked, 1)
        ]
    return "".join(lines)


def _names(names: Sequence[Any] | None, n: int, argument: str) -> list[str]:
    texts = [str(name) for name in (range(n) if names is None else names)]
    if len(texts) != n or len(set(texts)) != n or any(len(text.split()) != 1 for text in texts):
        raise ValueError(f"{argument} must contain {n} different names without spaces.")
    return texts
