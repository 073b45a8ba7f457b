"""Table of the best methods of each task in the kept results, whoever made them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmarks.support.columns import KeptRow, Lines
from experiments.support.results import read

__all__ = ["tabulate_leaders"]

_FEWEST = 3  # methods of a board
_PLACES = ("first", "second", "third", "fourth")


@dataclass(frozen=True, slots=True)
class Board:
    """A task: rows of a result with the same values in `where`, compared by a column.

    Attributes
    ----------
    result : str
        Name of the experiment.
    task, measure : str
        Words for the reader.
    column, methods : str or tuple of str
        The column with the score, and that with the method. If `methods` has several names, each is a column of scores.
    where : dict
        Values of other columns. There is a board for each value of `by`.
    baseline : str
        The method that needs no learning.
    lowest_first : bool
    """

    result: str
    task: str
    measure: str
    column: str
    methods: str | tuple[str, ...]
    by: str
    baseline: str
    where: dict[str, Any] = field(default_factory=dict)
    lowest_first: bool = False


_HASHES = ("random projection", "Spectral Hashing", "RankNet", "LambdaRank", "LambdaRank, hidden units", "Euclid")
_BOARDS = (
    Board(
        "real_music", "find the composer, real recordings", "P@1", "P@1", "what", "set", "Sound", {"part": "peers"},
    ),
    Board("uci", "classify, UCI", "error, %", "error, %", "method", "set", "Euclidean", lowest_first=True),
    Board(
        "noise", "classify among 256 columns of noise", "error, %", "error, %", "method", "set", "Euclidean",
        {"noise": 256}, lowest_first=True,
    ),
    Board("letor", "rank documents", "NDCG@10", "NDCG@10", "method", "data", "Euclid, anchor a document"),
    Board(
        "hashing", "classify by 64 bits", "error, %", "", _HASHES, "set", "Euclid",
        {"bits": 64, "measure": "error of the vote, %"}, lowest_first=True,
    ),
    Board("playlists", "continue playlists", "log P per song", "log P", "model", "collection", "uniform shuffle"),
    Board("annotation", "propagate tags", "best F", "best F", "representation", "songs", "frequency of tags"),
)  # fmt: skip


def tabulate_leaders() -> Lines:
    """Return a line per task and data set: the best methods, and the one that learns nothing."""
    yield "task", "data", "measure", *_PLACES, "without learning", "result"
    for board in _BOARDS:
        report = read(board.result)
        if report is None:
            raise ValueError(f"leaders: there is no kept result of experiments.{board.result}.")
        rows = [row for row in report["rows"] if all(row.get(name) == value for name, value in board.where.items())]
        for data in dict.fromkeys(row[board.by] for row in rows if row.get(board.by) is not None):
            scores = dict(_best_scores(board, [row for row in rows if row.get(board.by) == data]))
            if len(scores) < _FEWEST:
                continue
            order = sorted(scores, key=scores.__getitem__, reverse=not board.lowest_first)
            best = [f"{name}: {_format(scores[name])}" for name in order[: len(_PLACES)]]
            baseline = f"{board.baseline}: {_format(scores[board.baseline])}" if board.baseline in scores else ""
            empty = [""] * (len(_PLACES) - len(best))
            yield board.task, str(data), board.measure, *best, *empty, baseline, f"`{board.result}`"


def _format(score: float) -> str:
    return f"{score:.3g}"


def _best_scores(board: Board, rows: list[KeptRow]) -> Iterator[tuple[str, float]]:
    """Yield each method with its score; of several settings, the best."""
    if isinstance(board.methods, tuple):
        found = [(name, row[name]) for row in rows for name in board.methods if row.get(name) is not None]
    else:
        found = [(row[board.methods], row[board.column]) for row in rows if row.get(board.column) is not None]
    choose = min if board.lowest_first else max
    for name in dict.fromkeys(name for name, _ in found):
        yield name, choose(float(score) for method, score in found if method == name)
