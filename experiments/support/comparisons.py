"""Our values and the rivals' in the reports of benchmarks, by task, for the tables of docs/research/figures.md.

If a method was measured with several settings or in several forms, the best one counts. This applies to rivals and to
us.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.support.columns import Lines, drop_zeros, format_significant, group_rows
from experiments.support.results import Report

__all__ = ["COMPARED", "TOPICS", "Task", "first_where", "format_comparison"]

Row = Mapping[str, Any]

_ENOUGH = 0.95
"""Recall that a rival has to reach."""
_EXACT = 0.9995
"""Recall that is printed as 1."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task with the values of one run: ours, and each rival's (None if it did not run or reach the target).

    Lower is better (seconds, errors) unless `more_is_better`. A task without a unit is a measure of quality, and one
    without rivals is only measured.
    """

    name: str
    unit: str
    ours: float | None
    rivals: Mapping[str, float | None]
    more_is_better: bool = False

    @property
    def best(self) -> str | None:
        """The name of the best rival."""
        measured = {name: value for name, value in self.rivals.items() if value is not None}
        choose = max if self.more_is_better else min
        return choose(measured, key=measured.__getitem__) if measured else None

    @property
    def lead(self) -> float | None:
        """The factor by which we beat the best rival; below 1 the rival wins."""
        theirs = None if self.best is None else self.rivals[self.best]
        if theirs is None or self.ours is None:
            return None
        return self.ours / theirs if self.more_is_better else theirs / self.ours


def _least(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


# --- search -------------------------------------------------------------------------------------------------


def _ms_at_95(row: Row) -> float | None:
    """Return milliseconds at a recall of .95, or those of an index without a tuning parameter that reaches it."""
    if row.get("ms_95") is not None:
        return float(row["ms_95"])
    return row.get("ms") if (row.get("recall") or 0.0) >= _ENOUGH else None


def _search(report: Report) -> Iterator[Task]:
    # rivals are not measured in batches
    one_by_one = [row for row in report["rows"] if not row["setting"].endswith("batch")]
    for (data, n), rows in group_rows(one_by_one, "data", "rows"):
        quickest: dict[str, Row] = {}
        for row in rows:
            who = "musicsim" if row["index"].startswith("musicsim") else row["index"]
            before = quickest.setdefault(who, row)
            quickest[who] = min(before, row, key=lambda row: _ms_at_95(row) or math.inf)
        ours = quickest.pop("musicsim")
        of_them = {who: _ms_at_95(row) for who, row in quickest.items()}
        yield Task(
            f"ten nearest of {n:,} vectors ({data}), one query at a time, recall .95", "ms", _ms_at_95(ours), of_them
        )
        if ours.get("ms_95") is not None:  # brute force does not build an index
            built = {
                who: row.get("build_s") for who, row in quickest.items() if "failed" in row or row["ms_95"] is not None
            }
            yield Task("building that index", "s", ours["build_s"], built)


def _ten_million(report: Report) -> Iterator[Task]:
    tasks = {
        "building an index on disk": ("build", "s", "s"),
        "one query, recall .95": ("query at recall 0.95", "ms", "ms"),
        "one query, recall .99": ("query at recall 0.99", "ms", "ms"),
        "one query among a thousandth of the vectors, recall .95": ("of 0.1% of the songs", "ms", "ms"),
        "one query with hub reduction, recall .95": ("hubs reduced", "ms", "ms"),
        "memory of the process that searches": ("query at recall 0.95", "mb", "MB"),
    }
    for (n,), rows in group_rows(report["rows"], "rows"):
        for name, (what, column, unit) in tasks.items():
            of = {row["index"]: row.get(column) for row in rows if row["what"] == what}
            yield Task(f"{n:,} vectors: {name}", unit, of.pop("PartitionIndex", None), of)


def _hamming(report: Report) -> Iterator[Task]:
    for (n, bits), of_size in group_rows(report["rows"], "codes", "bits"):
        for column, what in (("top10_us", "ten nearest of"), ("radius2_us", "all within 2 bits of")):
            if column == "radius2_us" and bits > 32:
                continue  # too small to compare
            tasks = [
                _of_codes(f"{what} {n:,} codes of {bits} bits ({kind})", rows, column)
                for (kind,), rows in group_rows(of_size, "data")
            ]
            worst = min(tasks, key=lambda task: math.inf if task.lead is None else task.lead)
            kinds = f"; smallest lead among {len(tasks)} kinds of codes" if len(tasks) > 1 else ""
            yield Task(worst.name + kinds, worst.unit, worst.ours, worst.rivals)


def _of_codes(name: str, rows: Sequence[Row], column: str) -> Task:
    share = "recall" if column == "top10_us" else "within"
    ours: list[float | None] = []
    rivals: dict[str, float | None] = {}
    for row in rows:
        found = 1.0 if row.get(share) is None else row[share]
        if not row["index"].startswith("musicsim"):
            said = row["index"] if found >= _EXACT else f"{row['index']} (recall {found:.3f})"
            if "failed" in row or row[column] is not None:
                rivals[said] = row.get(column) if found >= _ENOUGH else None
        elif found >= _EXACT:
            ours.append(row[column])
    return Task(name, "µs", _least(ours), rivals)


# --- learning -----------------------------------------------------------------------------------------------


def _codebook(report: Report) -> Iterator[Task]:
    for (data, task), rows in group_rows(report["rows"], "data", "task"):
        frames = "frames of recordings" if data == "recordings" else f"{data} frames"
        ours = [row for row in rows if row["method"].startswith("musicsim")]
        if task == "fit":
            one_pass = [row for row in rows if "partial_fit" in row["method"]]
            (several,) = (row for row in rows if "several passes" in row["method"])
            yield Task(
                f"one pass of fitting 1,024 codewords ({frames})",
                "µs per frame",
                ours[0]["us_per_frame"],
                {"MiniBatchKMeans.partial_fit": _least(row["us_per_frame"] for row in one_pass)},
            )
            yield Task(
                "its error on held-out frames",
                "",
                ours[0]["error_held_out"],
                {
                    "MiniBatchKMeans.partial_fit": _least(row["error_held_out"] for row in one_pass),
                    "MiniBatchKMeans.fit, several passes": several["error_held_out"],
                },
            )
        else:
            rivals = {
                who: _least(row["ms_per_song"] for row in rows if row["method"].startswith(who))
                for who in ("numpy", "faiss IndexFlatL2")
            }
            # the slower of our two: rivals may pick their faster one
            slower = max(row["ms_per_song"] for row in ours)
            yield Task(f"top-8 histogram of a 30 s song ({frames})", "ms", slower, rivals)


def _mlr(report: Report) -> Iterator[Task]:
    methods = {(row["task"], row["method"]): row for row in report["rows"]}
    ours = methods["a", "bundle"]
    others = {"ADMM": methods["a", "admm"], "sub-gradients": methods["a", "subgradient"]}
    rivals: dict[str, float | None] = {}
    for name, row in others.items():
        above = f"{100.0 * (row['objective'] / ours['objective'] - 1.0):.0f}% above the optimum at the end"
        rivals |= _arrived(name, row["near_s"], above, row["wall_s"], ours["wall_s"])
    size = report["settings"]["a"].replace(" x ", " × ")
    name = f"metric learning to rank, {size}, to within 10⁻³ of the optimum (compared with the thesis's solvers)"
    yield Task(name, "s", ours["wall_s"], rivals)
    ours, nca, lmnn = (methods["b", name] for name in ("bundle", "NCA", "LMNN"))
    size = report["settings"]["b"].replace(" x ", " × ")
    yield from _learned(
        f"metric learning to rank, {size}, nearly separable",
        "cpu_s",
        (ours["cpu_s"], ours["auc"]),
        {"scikit-learn's NCA": nca, "metric-learn's LMNN": lmnn},
        "auc",
    )


def _arrived(name: str, reached: float | None, where: str, spent: float, ours: float) -> dict[str, float | None]:
    """Return a rival's seconds. If it never reached the target, return the time it spent if that exceeds ours."""
    if reached is not None:
        return {name: reached}
    return {f"{name} ({where})": spent if spent > ours else None}


def _learned(
    name: str, column: str, ours: tuple[float, float], rivals: Mapping[str, Row], quality: str
) -> Iterator[Task]:
    """Yield two tasks: seconds of a fit, with each rival's AUC, and the AUC itself."""
    seconds = {
        f"{who} (AUC {row[quality]:.3f})" if quality in row else who: row.get(column) for who, row in rivals.items()
    }
    yield Task(name, "s of CPU time", ours[0], seconds)
    held_out = {who: row.get(quality) for who, row in rivals.items()}
    yield Task("its AUC on held-out queries", "", ours[1], held_out, more_is_better=True)


def _lgmml(report: Report) -> Iterator[Task]:
    mean = [row for row in report["rows"] if row["part"] == "mean"][-1]
    yield Task(
        f"geometric mean of two matrices, d = {mean['d']:,}",
        "s of CPU time",
        mean["ours_s"],
        {"scipy's sqrtm": mean["rival_s"]},
    )
    methods = {row["method"]: row for row in report["rows"] if row["part"] == "rivals"}
    ours = methods["GMML"]
    yield from _learned(
        "geometric mean metric, 1,000 × 100, nearly separable",
        "rival_s",
        (ours["ours_s"], ours["AUC"]),
        {f"metric-learn's {name}": methods[name] for name in ("ITML", "LMNN")},
        "AUC",
    )


def _order(report: Report) -> Iterator[Task]:
    for row in report["rows"]:
        if "cleaning" in row:
            name = f"removing contradictions from {row['cleaning']:,} comparisons"
            yield Task(name, "s of CPU time", row["cpu_s"], {})
    embedded = [row for row in report["rows"] if "embedding" in row]
    largest = {row["structure"]: row["songs"] for row in sorted(embedded, key=lambda row: row["songs"])}
    for structure, n in largest.items():
        rows = {r["embedding"]: r for r in embedded if (r["structure"], r["songs"]) == (structure, n)}
        ours, t_ste = rows.pop("accelerated"), rows.pop("t-STE", None)
        rivals: dict[str, float | None] = {}
        for who, row in rows.items():
            above = f"{100.0 * row['above the best']:.0f}% above the optimum at the end"
            rivals |= _arrived(who, row["cpu_s to 1e-2"], above, row["cpu_s in all"], ours["cpu_s to 1e-2"])
        name = f"partial order embedding of {n:,} songs, {structure}, to within 1% of the optimum"
        yield Task(name, "s of CPU time", ours["cpu_s to 1e-2"], rivals)
        if t_ste is not None:
            yield Task(
                "its share of comparisons predicted",
                "",
                ours["in order"],
                {"t-STE": t_ste["in order"]},
                more_is_better=True,
            )


# --- the rest -----------------------------------------------------------------------------------------------


def _extraction(report: Report) -> Iterator[Task]:
    for who, column in (("librosa", "librosa_s"), ("bliss-audio", "bliss_s")):
        # librosa reads only a part of some formats
        read = [row for row in report["rows"] if row[column] and row.get(f"{who}_reads_whole", True)]
        if not read:
            yield Task("computing the features of a file", "ms of CPU time per minute of audio", None, {who: None})
            continue
        formats = ", ".join(sorted({row["format"] for row in read}))
        minutes = sum(row["minutes"] for row in read)
        ours, theirs = (1e3 * sum(row[name] for row in read) / minutes for name in ("ours_s", column))
        yield Task(
            f"computing the features of a file ({formats})", "ms of CPU time per minute of audio", ours, {who: theirs}
        )


def _ingest(report: Report) -> Iterator[Task]:
    ours, theirs = (next(row for row in report["rows"] if row["who"] == who) for who in ("musicsim", "librosa"))
    yield Task(
        "adding a folder of files several minutes long, two processes",
        "s of audio per second",
        ours["audio_s_per_s"],
        {"librosa, only MFCC and deltas,": theirs["audio_s_per_s"]},
        more_is_better=True,
    )
    for row in report["rows"]:
        if "peak_mb" in row:
            yield Task(f"memory of all processes while adding {row['files']:,} songs", "MB", row["peak_mb"], {})
        elif row["what"].startswith("musicsim scan"):
            yield Task(f"scanning {row['files']:,} unchanged songs, with startup", "s", row["wall_s"], {})


def _relevance(report: Report) -> Iterator[Task]:
    warm = [row for row in report["rows"] if row["method"].endswith(", once warm")]
    for (data,), rows in group_rows(warm, "data"):
        seconds = {row["method"].removesuffix(", once warm"): row["CPU s"] for row in rows}
        seconds["scipy's sparse product"] = seconds.pop("scipy")
        yield Task(
            f"similar items from {rows[0]['plays']:,} plays ({data})", "s of CPU time", seconds.pop("musicsim"), seconds
        )


def _playlist(report: Report) -> Iterator[Task]:
    ours = next(row for row in report["rows"] if row["method"] == "musicsim")
    theirs = next(row for row in report["rows"] if row["method"].startswith("L-BFGS"))
    size = f"{ours['playlists']:,} playlists with {ours['songs']:,} songs and {ours['edges']:,} edges"
    rivals = _arrived(
        "scipy's L-BFGS", theirs["reached_s"], "did not reach the same objective", theirs["ascent_s"], ours["ascent_s"]
    )
    yield Task(f"maximizing the likelihood of {size}", "s", ours["ascent_s"], rivals)
    yield Task("the complete fit of the playlist walk to them", "s", ours["wall_s"], {})
    yield Task("its memory, including all imported packages", "MB", ours["mb"], {})
    generated = "1,000 playlists of 20 songs"
    yield Task(f"generating {generated} from the fit", "s", report["settings"][f"seconds of {generated}"], {})


def _start(report: Report) -> Iterator[Task]:
    seconds = {row["what"]: row["median_s"] for row in report["rows"]}
    yield Task("starting the app", "s", seconds["musicsim app"], {"streamlit hello": seconds["streamlit hello"]})
    for command in ("--help", "info", "similar ID"):
        yield Task(
            f"`musicsim {command}`, {report['settings']['songs']:,} songs", "s", seconds[f"musicsim {command}"], {}
        )


TOPICS: dict[str, dict[str, Callable[[Report], Iterator[Task]]]] = {
    "analysis": {"extraction": _extraction, "ingest": _ingest, "codebook": _codebook},
    "learning": {"mlr": _mlr, "lgmml": _lgmml, "order": _order, "relevance": _relevance},
    "playlists": {"playlist": _playlist},
    "search": {"search": _search, "ten_million": _ten_million},
    "codes": {"hamming": _hamming},
    "start": {"start": _start},
}
"""By topic, which has a table, and by benchmark."""
COMPARED = {name: tasks for topic in TOPICS.values() for name, tasks in topic.items()}


# --- the tables of who is first ----------------------------------------------------------------------------


def first_where(reports: list[Report]) -> Lines:
    """Return one line per task: our value, the best rival's of the same run, the lead, and the winner."""
    yield "task", "musicsim", "best other program", "lead", "is musicsim best?"
    for report in reports:
        for task in COMPARED[report["name"]](report):
            yield format_comparison(task)


def format_comparison(task: Task) -> Sequence[str]:
    """Return the line of a task: its name, our result, the best rival, the lead, and who is first."""
    digits = 2 if task.unit else 3
    ours = "–" if task.ours is None else f"{format_significant(task.ours, digits)} {task.unit}".strip()
    rivals = [f"{name} –" for name, value in task.rivals.items() if value is None]
    theirs = None if task.best is None else task.rivals[task.best]
    if theirs is not None:
        rivals.insert(0, f"{task.best} {format_significant(theirs, digits)}")
    rival = drop_zeros("; ".join(rivals))
    if task.lead is None or task.ours is None or theirs is None:
        return task.name, ours, rival, "", ""
    lead = f"{format_significant(task.lead, 2)} times" if task.unit else drop_zeros(f"{task.ours - theirs:+.3f}")
    first = "both" if task.lead == 1.0 else "yes" if task.lead > 1.0 else "**no**"
    return task.name, ours, rival, lead, first
