"""Tables of the documents, built from the saved results: between ``<!-- results: NAME -->`` and ``<!-- end -->``.

NAME is an experiment or a benchmark, followed by another word if a document has several of its tables. A table is a
list of lines, headers first. The line below each table describes its protocol. :mod:`experiments.support.comparisons`
says who is first in the saved results of all benchmarks, with a table for each topic.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.support.report import format_lead
from experiments.support.comparisons import COMPARED, TOPICS, Task, group_rows
from experiments.support.results import ROOT, Report, read
from musicsim.extensions.paper_tables.paper_tables import short_form

__all__ = ["BLOCK", "documents", "experiments_of", "tables", "updated"]

BLOCK = re.compile(r"<!-- results: (?P<name>[^>]*?) -->\n.*?<!-- end -->", re.DOTALL)

Row = Mapping[str, Any]
Lines = Iterator[Sequence[str]]

Maker = Callable[[list[Row]], Lines]

_TABLES: dict[str, tuple[Maker, tuple[str, ...]]] = {}
"""By name: what makes a table of rows, and the experiments whose rows these are."""
_FIRST = {f"benchmarks: {topic}": tuple(compared) for topic, compared in TOPICS.items()}
"""By name of a table of who is first: its benchmarks."""


def documents() -> list[Path]:
    """Return the paths of README and the pages of docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def updated(page: str) -> str:
    """Return a page with its tables updated from the saved results."""
    return BLOCK.sub(lambda block: _block(block["name"]), page)


def tables() -> list[str]:
    """Return the names of all tables."""
    return [*_TABLES, *_FIRST]


def experiments_of(table: str) -> tuple[str, ...]:
    """Return the experiments behind a table, with benchmarks as "benchmarks/NAME"."""
    return tuple(f"benchmarks/{name}" for name in _FIRST[table]) if table in _FIRST else _TABLES[table][1]


def _block(name: str) -> str:
    if name in _FIRST:
        reports = [report for result in experiments_of(name) if (report := read(result))]
        lines = first_where(reports)
        below = f"{_made_by(reports, 'benchmarks')}\n\n{_not_run(name, reports)}".strip()
    else:
        lines_of, experiments = _TABLES[name]
        reports = [_kept(experiment, name) for experiment in experiments]
        lines = lines_of([row for report in reports for row in report["rows"]])
        below = _made_by(reports, "benchmarks" if experiments[0].startswith("benchmarks/") else "experiments")
    head, *rest = lines
    table = [head, ["---"] * len(head), *rest]
    text = "\n".join(f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in line)}|" for line in table)
    return f"<!-- results: {name} -->\n{text}\n\n{below}\n<!-- end -->"


def _kept(experiment: str, table: str) -> Report:
    report = read(experiment)
    if report is None:
        raise ValueError(f"{table}: there is no kept result of experiments.{experiment} for this table.")
    return report


def _made_by(reports: list[Report], package: str) -> str:
    """Return the protocol of the results in italics: a line below the table."""
    full: list[str] = []
    short: list[str] = []
    for report in reports:
        settings = report["settings"]
        about = [f"seed {settings['seed']}", report["date"][:10]]
        if package == "benchmarks":  # their seconds depend on the machine
            about += [report["machine"]["cpu"], *_lacking(report)]
        run = f"`python -m {package}.{report['name']}` ({', '.join(about)})"
        if settings.get("protocol") == "full":
            full.append(run)
        else:
            short.append(f"{run}, short form: {short_form(report['name'], package)}.")
    sentences = [f"{', '.join(full)}: full protocol.", *short] if full else short
    return f"*{' '.join(sentences)}*"


def _lacking(report: Report) -> Iterator[str]:
    """Yield whatever a benchmark run lacked."""
    has = report["machine"]["versions"] | report["inputs"]
    absent = [name for name, what in has.items() if what in ("not installed", "absent")]
    if absent:
        yield f"without {', '.join(absent)}"
    if report["commit"].endswith("-dirty"):
        yield "with uncommitted changes"


def _not_run(table: str, reports: list[Report]) -> str:
    kept = {report["name"] for report in reports}
    left = ", ".join(f"`benchmarks.{name}`" for name in _FIRST[table] if name not in kept)
    return f"No results are stored for {left}." if left else ""


# --- contents of the tables -----------------------------------------------------------------------------


def _table(name: str, *experiments: str) -> Callable[[Maker], Maker]:
    def kept(lines_of: Maker) -> Maker:
        _TABLES[name] = lines_of, experiments or (name.partition(":")[0],)
        return lines_of

    return kept


def _one(rows: list[Row], **wanted: object) -> Row:
    """Return the first row with these values, or an empty one. In column names _ matches any non-letter."""
    names = {re.sub(r"\W", "_", name): name for row in rows for name in row}
    return next((row for row in rows if all(row.get(names[k]) == v for k, v in wanted.items())), {})


def _values(rows: list[Row], column: str) -> list[Any]:
    """Return the distinct values of a column."""
    return list(dict.fromkeys(row[column] for row in rows if column in row))


def _plain(value: float | None, digits: int = 1) -> str:
    """Format a number, rounding halves up; None is a dash."""
    if value is None:
        return "–"
    rounded = Decimal(str(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{rounded + 0:,}"  # + 0 avoids -0.00


def _share(value: float | None, digits: int = 2) -> str:
    """Format a number without the 0 before its decimal point."""
    return _pointed(_plain(value, digits))


def _pointed(text: str) -> str:
    """Remove the 0 before decimal points in a text."""
    return re.sub(r"(?<!\d)0\.(?=\d)", ".", text)


def _beside(value: str, paper: float | str | None) -> str:
    """Format a score with the paper's in parentheses."""
    return value if paper is None else f"{value} ({paper})"


# --- figures.md: benchmarks ---------------------------------------------------------------------------------


def first_where(reports: list[Report]) -> Lines:
    """Return one line per task: our value, the best rival's of the same run, the lead, and the winner."""
    yield "task", "musicsim", "best other program", "lead", "is musicsim best?"
    for report in reports:
        for task in COMPARED[report["name"]](report):
            yield format_comparison(task)


def format_comparison(task: Task) -> Sequence[str]:
    """Return the line of a task: its name, our result, the best rival, the lead, and who is first."""
    digits = 2 if task.unit else 3
    ours = "–" if task.ours is None else f"{_significant(task.ours, digits)} {task.unit}".strip()
    rivals = [f"{name} –" for name, value in task.rivals.items() if value is None]
    theirs = None if task.best is None else task.rivals[task.best]
    if theirs is not None:
        rivals.insert(0, f"{task.best} {_significant(theirs, digits)}")
    rival = _pointed("; ".join(rivals))
    if task.lead is None or task.ours is None or theirs is None:
        return task.name, ours, rival, "", ""
    lead = f"{_significant(task.lead, 2)} times" if task.unit else _pointed(f"{task.ours - theirs:+.3f}")
    first = "both" if task.lead == 1.0 else "yes" if task.lead > 1.0 else "**no**"
    return task.name, ours, rival, lead, first


def _significant(value: float, digits: int) -> str:
    """Format a number with significant digits; integers are unchanged."""
    places = digits - 1 - math.floor(math.log10(abs(value))) if value else 0
    return _share(value, max(places, 0))


# --- figures.md: experiments ------------------------------------------------------------------------------


@_table("quality", "real_music", "demo", "audio", "playlists", "hashing")
def _quality(rows: list[Row]) -> Lines:
    def of(column: str, **wanted: object) -> str:
        return _share(_one(rows, **wanted)[column])

    def learned(name: str, learning: str) -> str:
        three, ten = (of("AUC", k=k, representation=name, learning=learning, mutual_proximity=False) for k in (3, 10))
        return f"{three} ({ten})"

    def thesis(name: str, learning: str) -> str:
        return of("thesis AUC", k=3, representation=name, learning=learning, mutual_proximity=False)

    yield "measurement", "musicsim", "compared with"
    musly, statistics = (of("P@1", what=name) for name in ("one Gaussian, Jensen-Shannon (Musly)", "MFCC statistics"))
    yield (
        "how often the nearest song is by the same composer: 311 real recordings, 12 composers",
        of("P@1", what="Sound"),
        f"Musly's Jensen-Shannon {musly}, MFCC statistics {statistics}",
    )
    ours, codewords, statistics, chance = (
        of("style@10, artist filter", description=name) for name in ("Sound", "PPK", "statistics", "chance")
    )
    yield (
        "share of the 10 nearest songs with the same style: demo, without songs by the query's artist",
        ours,
        f"codewords {codewords}, MFCC statistics {statistics}, chance {chance}",
    )
    yield (
        "AUC on held-out artists, learned from plays: demo, with three (ten) similar artists. VQ histograms; PPK "
        "before, after MLR; tags before, after MLR",
        f"{learned('VQ histograms', 'native')}; {learned('PPK', 'native')}, {learned('PPK', 'MLR')}; "
        f"{learned('human tags', 'native')}, {learned('human tags', 'MLR')}",
        f"thesis, CAL10K: {thesis('VQ histograms', 'native')}; {thesis('PPK', 'native')}, {thesis('PPK', 'MLR')}; "
        f"{thesis('human tags', 'native')}, {thesis('human tags', 'MLR')}",
    )
    walk = "walk: tags, company, neighbors; songs by plays"
    ours, bigram, embedding = (of("log P", collection="yes_small", model=name) for name in (walk, "bigram", "LME"))
    yield (
        "predicting the next song in radio playlists: log P per transition (yes.com, small)",
        ours,
        f"bigram {bigram}; latent Markov embedding {embedding}",
    )
    digits = _one(rows, set="MNIST", bits=64)
    yield (
        "error (%) on 10,000 digits with learned codes of 64 bits: linear; with 256 hidden units",
        f"{_plain(digits['LambdaRank'])}; {_plain(digits['LambdaRank, hidden units'])}",
        f"Spectral Hashing {_plain(digits['Spectral Hashing'])}, random projections "
        f"{_plain(digits['random projection'])}, Euclidean distance {_plain(digits['Euclid'])}",
    )


@_table("extraction: formats", "benchmarks/extraction")
def _formats(rows: list[Row]) -> Lines:
    yield "CPU time in ms per minute of audio", "musicsim", "librosa", "bliss-audio", "share of decoding in musicsim"
    for name in _values(rows, "format"):
        of = [row for row in rows if row["format"] == name]
        minutes = sum(row["minutes"] for row in of)
        line = []
        for column in ("ours_s", "librosa_s", "bliss_s"):
            seconds = [row[column] for row in of]
            line.append(_plain(None if None in seconds else 1e3 * sum(seconds) / minutes, 0))
        yield name, *line, _share(sum(row["decoding_share"] for row in of) / len(of))


@_table("many_files", "benchmarks/many_files")
def _many_files(rows: list[Row]) -> Lines:
    yield "files", "adding, s", "files per s", "memory of adding, MB", "scanning again, s", "memory of scanning, MB"
    for row in rows:
        columns = ("files", "add_s", "files_per_s", "add_peak_mb", "scan_s", "scan_peak_mb")
        yield tuple(_significant(row[column], 2) for column in columns)


@_table("rules", "benchmarks/rules")
def _rules(rows: list[Row]) -> Lines:
    yield "conditions", "songs", "first evaluation, CPU s", "while a value is typed, CPU s"
    for row in rows:
        numbers = (_significant(row[column], 2) for column in ("songs", "first CPU s", "typed CPU s"))
        yield f"`{row['what']}`", *numbers


@_table("duplicates")
def _duplicates(rows: list[Row]) -> Lines:
    sets = {"generated": "generated songs", "piano": "solo piano", "real": "real recordings"}

    def matched(column: str, value: str) -> Iterator[str]:
        for name in sets:
            of = [row for row in rows if row["set"] == name and row[column] == value]
            found = sum(row["found"] * row["songs"] for row in of)
            yield f"{found:.0f} of {sum(row['songs'] for row in of)}" if of else ""

    def wrong(kind: str, total: str) -> Iterator[str]:
        for name in sets:
            row = _one(rows, set=name, kind=kind)
            yield f"{row['false pairs']} of {row[total]}" if row else ""  # a set may be absent

    yield "pairs that count as duplicates", *sets.values()
    yield "copies in other encodings, cut or edited", *matched("sort", "copy")
    yield "published copies", *matched("kind", "published copies, pairs")
    for kind in dict.fromkeys(row["kind"] for row in rows if row["sort"] == "near miss"):
        yield f"not copies: {kind.replace(' %', '%')}", *matched("kind", kind)
    yield "not copies: different songs", *wrong("every pair of originals compared", "songs")
    yield "false pairs among all reported pairs", *wrong("copies and near misses together", "pairs")


@_table("demo: leads", "demo")
def _demo_leads(rows: list[Row]) -> Lines:
    measures = {"style@10, artist filter": "same style among the ten nearest", "artist@1": "same artist at rank 1"}
    yield "lead, with its 95% interval", *measures.values()
    for lead in _values(rows, "lead"):
        of = [_one(rows, lead=lead, measure=measure) for measure in measures]
        said = lead.replace("PPK", "codewords").replace("statistics", "MFCC statistics")
        yield said, *(_pointed(format_lead(row["mean"], row["low"], row["high"])) for row in of)


@_table("real_music: leads", "real_music")
def _real_leads(rows: list[Row]) -> Lines:
    measures = {"P@1": "nearest song", "P@5": "five nearest songs", "within": "nearest song, within the package"}
    yield "lead of Sound over codewords", *measures.values()
    for said, row in {
        "settings chosen on all recordings": _one(rows, part="models", what="Sound"),
        "settings chosen on the other half of the composers": _one(rows, part="nested choice"),
    }.items():
        yield said, *(_lead(row[f"lead {measure}"]) for measure in measures)


def _lead(text: str) -> str:
    """Format a lead and its interval, without the spread over splits."""
    return _pointed(text.partition(", sd")[0])


@_table("real_learning: learned")
def _real_learned(rows: list[Row]) -> Lines:
    metrics = {
        "whitening (WCCN), g = .3": "WCCN, g = 0.3", "whitening (WCCN), g = .9": "WCCN, g = 0.9",
        "geometric mean metric (GMML)": "GMML, t = .3, reg = 1", "ranking (MLR, C = 10)": "MLR, C = 10",
        "ranking, in an equal mixture with the initial distance": "MLR, C = 10, half of it",
        "app: automatic choice": "automatic", "app: first result": "quick", "app: mean": "mean",
        "app: ranking near the plain metric": "ranking", "app: ranking with the trace": "ranking with the trace",
    }  # fmt: skip
    models = ("Codewords", "Sound")
    yield "change of the share of nearest songs by the same composer", *models
    for said, metric in metrics.items():
        of = [_one(rows, part="learning", what=f"{model}, {metric}, composers") for model in models]
        yield said, *(_lead(row["lead P@1"]) if row else "" for row in of)


@_table("real_learning: small")
def _real_small(rows: list[Row]) -> Lines:
    labels = {"folders only": "with folders", "artists only": "with artists", "nothing": "with neither"}
    small = [row for row in rows if row["part"] == "small libraries"]
    yield "lead over codewords in MAP, by the labels of the library", *labels.values()
    for size in dict.fromkeys(row["what"].partition(",")[0] for row in small):
        of = [_one(small, what=f"{size}, {name}") for name in labels]
        cells = (
            _lead(row["MAP over codewords"]) + ("" if row["kept"].startswith("the sound alone") else ", learned")
            for row in of
        )
        yield size.replace("pieces", "recordings"), *cells


@_table("descriptors")
def _descriptors(rows: list[Row]) -> Lines:
    sets = {
        "spotify_msd": "Spotify's descriptors, by artist", "gtzan": "GTZAN, by genre", "fma_ntds": "FMA, by genre",
        "cal500": "CAL500, by tags", "lastfm": "Last.fm 2k, by listeners",
    }  # fmt: skip
    yield "AUC", "not learned", "MLR", "gain of MLR (95% interval)", "LDA", "automatic choice"
    for name, said in sets.items():
        plain, mlr, lda, automatic = (_one(rows, set=name, method=m) for m in ("native", "MLR", "LDA", "automatic"))
        gain = re.sub(r"\d+\.\d+", lambda number: _plain(float(number[0]), 3), mlr["lead AUC"])
        figures = (_share(row["AUC"], 3) for row in (plain, mlr))
        choice = f"{_share(automatic['AUC'], 3)} ({automatic['chosen most often']})"
        yield said, *figures, _pointed(gain), _share(lda.get("AUC"), 3), choice


@_table("noise")
def _noise(rows: list[Row]) -> Lines:
    methods = ("MLR-MAP, bundle", "LMNN", "ITML")
    columns = _values(rows, "noise")
    yield "error in %: MLR / LMNN / ITML", *(f"{n} columns of noise" if n else "without noise" for n in columns)
    for name in _values(rows, "set"):
        of = ([_one(rows, set=name, noise=n, method=method) for method in methods] for n in columns)
        yield name, *(" / ".join(_plain(row["error, %"]) for row in cell) for cell in of)


@_table("mlr: sizes", "benchmarks/mlr")
def _mlr_sizes(rows: list[Row]) -> Lines:
    yield "songs × dimensions", "s", "CPU s", "cuts", "proven gap", "memory, MB"
    for row in rows:
        size = row["task"].removeprefix("large, ")
        if " x " in size:
            said = size.replace(" x ", " × ") + (", samples of queries" if row["method"].endswith("sampled") else "")
            gap = _share(row.get("gap"), 3)
            yield said, _plain(row["wall_s"]), _plain(row["cpu_s"]), str(row["cuts"]), gap, _plain(row.get("mb"), 0)


@_table("playlists: dialects", "playlists")
def _dialects(rows: list[Row]) -> Lines:
    yield (
        "gain over shuffling, demo", "one walk for all playlists", "one walk per kind",
        "kinds that gain at least as much from their own walk", "the same in the thesis",
    )  # fmt: skip
    for row in rows:
        if "edges" in row:
            edges = row["edges"].replace("all of", "all edges of").replace(", conj", ", with conj")
            figures = (_share(row[column], 3) for column in ("G, walk of all lists", "G, dialects"))
            yield edges, *figures, *(row[k] or "" for k in row if k.endswith("at least level"))


# --- sound.md ---------------------------------------------------------------------------------------------


_PIECES = {
    "Codewords, all": "Codewords with moments of all songs (an earlier built-in model)",
    "Codewords": "Codewords",
    "MFCC statistics": "MFCC statistics",
    "one Gaussian, symmetrised KL": "one Gaussian, symmetrized Kullback-Leibler",
    "one Gaussian, Jensen-Shannon (Musly)": "one Gaussian, Jensen-Shannon (Musly)",
    "block-level features": "block-level features (Seyerlehner)",
    "bliss": "bliss",
    "timbre alone, no slopes, no curvatures": "timbre without slopes and curvatures",
    "Sound, timbre alone, all": "timbre with moments of all songs",
    "Sound, timbre alone": "timbre",
    "Sound, fluctuation alone": "fluctuation",
    "Sound, spectral shape alone": "spectral shape",
    "Sound of feature version 3": "*Sound* before version 4 of the audio features",
    "Sound without spectral shape": "timbre and fluctuation",
    "Sound, vectors of any length": "*Sound* without unit lengths",
    "Sound, no whitening within songs": "*Sound*, not whitened within songs",
    "Sound": "*Sound*: timbre, fluctuation and spectral shape",
    "Sound, with the program's constants, which know these pieces": "*Sound* with its built-in constants",
}


@_table("real_music")
def _real_music(rows: list[Row]) -> Lines:
    measures = {"P@1": "P@1", "P@5": "P@5", "package": "same package at rank 1", "within": "within"}
    yield "", *measures.values(), "skewness of the ten-occurrence", "lead in P@1 over the first row"
    for name, said in _PIECES.items():
        row, remark = _one(rows, part="models", what=name), ""
        if not row:  # the name ends with the number of files that were read
            row = next(row for row in rows if re.fullmatch(rf"{name} \(.* read\)", row["what"]))
            remark = row["what"].removeprefix(name)
        yield (
            said + remark,
            *(_share(row[m]) for m in measures),
            _share(row["skew"]),
            _pointed(row.get("lead P@1", "")),
        )


@_table("real_music: peers", "real_music")
def _real_peers(rows: list[Row]) -> Lines:
    yield from _scores([row for row in rows if row["part"] == "peers" and "P@1" in row])


@_table("ear")
def _ear(rows: list[Row]) -> Lines:
    yield from _scores([row for row in rows if row["part"] == "quality"])


@_table("ear: cost", "ear")
def _ear_cost(rows: list[Row]) -> Lines:
    yield "", "CPU seconds per minute of music", "time of the ear relative to the analysis"
    for row in rows:
        if row["part"] == "cost":
            yield row["what"], _plain(row["CPU s per minute"], 2), _share(row["cost of the ear / analysis"])


def _scores(rows: list[Row]) -> Lines:
    """Yield the scores of rankings with their intervals, and the leads over Sound."""
    measures = {"P@1": "P@1", "P@5": "P@5", "package": "same package at rank 1", "within": "within"}
    yield "set", "", *measures.values(), "skewness", "lead in P@1 over Sound", "lead in P@5 over Sound"
    if not rows:
        yield "not measured yet", *[""] * (len(measures) + 4)
    for row in rows:
        cells = (_with_interval(_share(row[m], 3), row.get(f"{m} interval")) for m in measures)
        leads = (_pointed(row.get(f"lead {m}", "")) for m in ("P@1", "P@5"))
        yield row["set"].removeprefix("set "), row["what"], *cells, _share(row["skew"]), *leads


def _with_interval(value: str, interval: str | None) -> str:
    return f"{value} ({_pointed(interval)})" if interval else value


@_table("families")
def _families(rows: list[Row]) -> Lines:
    rankings = ("Sound, plain distances", "Sound, as search ranks", "Sound and ear, as search ranks")
    yield "", "songs", "artists", "chance", "plain distances", "as search ranks", "with an ear", "own family"
    shown = [row for row in rows if row["set"] in ("all sets", "demo")]
    for name, songs, other in dict.fromkeys((row["set"], row["songs"], row["confused with"]) for row in shown):
        found = [_one(shown, set=name, songs=songs, confused_with=other, ranking=ranking) for ranking in rankings]
        cells = (_with_interval(_share(row.get("share"), 3), row.get("interval")) for row in found)
        pair = f"{other} among the nearest to {songs}{'' if name == 'all sets' else f' ({name})'}"
        first, search = found[:2]
        counts = f"{first['queries']}", f"{first['artists']}"
        yield pair, *counts, _share(first["chance"]), *cells, _share(search["own"])


@_table("sound_changes")
def _sound_changes(rows: list[Row]) -> Lines:
    measures = ("P@1", "P@5", "within")
    yield "set", "", *measures, "skewness", "lead in P@1 over *Sound*", "lead in P@5 over *Sound*"
    for row in rows:
        is_chosen = row.get("is chosen", True)  # Sound itself is not a change
        if is_chosen:
            leads = (_pointed(row.get(f"lead {m}", "")) for m in measures[:2])
            cells = (*(_share(row[m]) for m in measures), _share(row["skew"]))
            yield row["set"].removeprefix("set "), _pointed(row["what"]), *cells, *leads


_DEMO = {
    "Sound": "*Sound*",
    "PPK": "Codewords (PPK)",
    "statistics": "MFCC statistics",
    "raw histograms": "raw histograms",
}


@_table("demo")
def _demo(rows: list[Row]) -> Lines:
    yield "", "same style among the ten nearest", "same artist at rank 1", "skewness of the ten-occurrence"
    for name, said in (_DEMO | {"chance": "chance"}).items():
        row = _one(rows, description=name)
        figures = (row["style@10, artist filter"], row["artist@1"], row["hubness"])
        yield said, *(_share(figure) for figure in figures)


@_table("codewords")
def _codewords(rows: list[Row]) -> Lines:
    columns = {
        "VQ histograms": "native", "TF-IDF": "TF-IDF", "PPK": "PPK", "VQ histograms, MLR": "native, MLR",
        "PPK, MLR": "PPK, MLR",
    }  # fmt: skip
    yield "codewords, tau", *columns.values(), "components"
    for size in _values(rows, "codewords"):
        of = [_one(rows, codewords=size, tau=tau) for tau in (1, 8)]
        figures = (", ".join(_share(row[column], 3) for row in of) for column in columns)
        yield f"{size:,.0f}, 1 and 8", *figures, ", ".join(_plain(row["dimensions"], 0) for row in of)


@_table("annotation")
def _annotation(rows: list[Row]) -> Lines:
    songs = {
        "demo": "demo: codewords (PPK), split by artist, synthetic tags",
        "cal500": "CAL500: 68 descriptors, 174 tags except negated ones",
        "gtzan": "GTZAN: 57 descriptors, ten genres",
    }
    yield "k = 1, 10, 30", "not learned", "learned", "Gaussians", "overall tag frequency"
    for name, said in songs.items():
        plain = "PPK" if name == "demo" else "descriptors"
        line = []
        for kind in (plain, f"{plain}, learned", "Gaussians, KL"):
            of = [_one(rows, songs=name, representation=kind, k=k).get("best F") for k in (1, 10, 30)]
            line.append("" if None in of else ", ".join(map(_share, of)))
        yield said, *line, _share(_one(rows, songs=name, representation="frequency of tags")["best F"])


@_table("robustness")
def _robustness(rows: list[Row]) -> Lines:
    names = list(dict.fromkeys(row["set"] for row in rows))
    titles = ("song is first", "nearest ten kept", "P@5", "difference")
    yield "", *(f"{'demo' if name == 'demo' else 'real'}: {title}" for name in names for title in titles)
    for change in dict.fromkeys(row["change"] for row in rows):
        found = [_one(rows, set=name, model="Sound", change=change) for name in names]
        yield (
            change.replace(" %", "%"),
            *(
                cell
                for row in found
                for cell in (*(_share(row[part]) for part in ("found", "kept", "P@5")), row.get("difference P@5", ""))
            ),
        )


# --- mlr.md -----------------------------------------------------------------------------------------------


@_table("uci")
def _uci(rows: list[Row]) -> Lines:
    sets = _values(rows, "set")
    yield "", *(f"{name} (different training rows)" if name == "IsoLet" else name for name in sets)
    for method in _values(rows, "method"):
        of = [_one(rows, set=name, method=method) for name in sets]
        columns = ("error, %", "at best", "paper")
        said = "NCA, metric-learn" if method == "NCA" else method
        yield said, *(" / ".join(_plain(row.get(column)) for column in columns) for row in of)


@_table("admm")
def _admm(rows: list[Row]) -> Lines:
    yield (
        "", "test AUC (sd)", "projections (thesis)", "cuts", "splits that converged", "GTZAN: error, % ± sd (Graz-02)",
        "CPU s (Graz-02)", "splits that converged",
    )  # fmt: skip
    for method in _values(rows, "figure 4.4"):
        song, kernels = _one(rows, figure_4_4=method), _one(rows, table_4_1=method)
        line = [
            f"{_share(song['AUC'], 3)} ({_share(song['AUC sd'], 3)})",
            _beside(
                _plain(song["projections"], 0), song["thesis projections"] and _plain(song["thesis projections"], 0)
            ),
            _plain(song["cuts"], 0),
            f"{song['arrived']} of {song['splits']}",
        ]
        if kernels:
            error, seconds, sd = (kernels[name] for name in ("thesis error, %", "thesis CPU s", "error, % sd"))
            ours = _plain(kernels["error, %"]) + ("" if sd is None else f" ± {_plain(sd)}")
            line += [
                _beside(ours, error and _plain(error)),
                _beside(_plain(kernels["CPU s"]), seconds and _plain(seconds, 0)),
                f"{kernels['arrived']} of {kernels['splits']}",
            ]
        yield method, *(line + [""] * 3)[:7]


@_table("sampled_queries")
def _sampled_queries(rows: list[Row]) -> Lines:
    yield "songs", "queries per cut", "cuts", "% above the optimum: median of five runs", "range"
    for row in rows:
        figures = (_plain(row[name]) for name in ("least", "most"))
        numbers = (_plain(row[name], 0) for name in ("songs", "queries a cut", "cuts"))
        yield *numbers, _plain(row["above the optimum, %, median"]), " to ".join(figures)


# --- hashing.md -------------------------------------------------------------------------------------------

_LEARNED_BITS = ("random projection", "Spectral Hashing", "RankNet", "LambdaRank")


def _digits(value: float) -> str:
    return _share(value, 2) if abs(value) < 1 else _plain(value)


@_table("hashing")
def _hashing(rows: list[Row]) -> Lines:
    more_columns = {
        "LambdaRank as printed": "LambdaRank, as printed",
        "LambdaRank with hidden units": "LambdaRank, hidden units",
        "LambdaRank with the tag": "LambdaRank, hierarchy",
    }
    yield "", *_LEARNED_BITS, *more_columns, "Euclidean distance"
    for row in rows:
        paper = (row["paper, in this order"] or "").split(", ")
        papers = [_digits(float(p)) for p in paper] if len(paper) == len(_LEARNED_BITS) else [None] * 4
        figures = [_beside(_digits(row[name]), of) for name, of in zip(_LEARNED_BITS, papers, strict=True)]
        if spread := row["sd of LambdaRank over splits"]:
            figures[-1] += f" ± {_plain(spread)}"
        others = [row[key] for key in more_columns.values()]
        ours, theirs = row["Euclid"], row["Euclid in the paper"]
        euclid = "" if ours is None else _beside(_plain(ours), theirs and _plain(theirs))
        said = f"{row['set']}, {row['bits']} bits: {row['measure']}"
        yield said, *figures, *("" if value is None else _plain(value) for value in others), euclid


@_table("hashing_tables")
def _hashing_tables(rows: list[Row]) -> Lines:
    yield "bits", *_LEARNED_BITS
    for row in rows:
        if "tables 4, 5" in row:
            figures = (_beside(_digits(row[name]), _digits(row[f"paper {name}"])) for name in _LEARNED_BITS)
            yield f"{row['tables 4, 5']}, {row['bits']}", *figures


# --- lgmml.md ---------------------------------------------------------------------------------------------


@_table("feedback")
def _feedback(rows: list[Row]) -> Lines:
    spaces, marks = _values(rows, "space"), _values(rows, "marks")
    yield "thumbs", *spaces
    for n in marks:
        of = [_one(rows, space=space, marks=n) for space in spaces]
        yield str(n), *(f"{_share(row['before'], 3)} / {_share(row['both'], 3)}" for row in of)
    figures = (f"{_share(row['query moves'], 3)} / {_share(row['metric'], 3)}" for row in of)
    yield f"{n}, only the query moves (Rocchio) / only the metric changes", *figures


@_table("letor")
def _letor(rows: list[Row]) -> Lines:
    mq, other = "MQ2008, fold 1", "LightGBM's example"
    yield (
        f"{mq}:", "NDCG@1", "@3", "@5", "@10 (95% interval)", "MAP", "lead over linear RankNet, NDCG@10",
        "fit, seconds", f"{other}: NDCG@10", "paper, MSLR-WEB10K",
    )  # fmt: skip
    for row in rows:
        if row["data"] == mq and "NDCG@1" in row:
            paper = row["paper, MSLR-WEB10K"]
            yield (
                row["method"],
                *(_share(row[f"NDCG@{k}"], 3) for k in (1, 3, 5)),
                f"{_share(row['NDCG@10'], 3)} ({_pointed(row['NDCG@10, 95 %'])})",
                _share(row["MAP"], 3),
                _pointed(row.get("lead on linear", "")),
                f"{row['fit_s']:.2f}",
                _share(_one(rows, data=other, method=row["method"])["NDCG@10"], 3),
                "" if paper is None else _share(paper, 3),
            )


@_table("lgmml: fits", "benchmarks/lgmml")
def _lgmml_fits(rows: list[Row]) -> Lines:
    yield "", "seconds per fit", "AUC", "MAP"
    for row in rows:
        if row["part"] == "rivals":
            name, seconds = row["method"], row.get("ours_s", row.get("rival_s"))
            if "chosen" in row:
                name = f"{name}, {row['chosen']} (at t = 1/2, the AUC is {_share(row['AUC at t = 1/2'], 3)})"
            spent = "" if seconds is None else _significant(seconds, 2)
            yield _pointed(name), spent, _share(row["AUC"], 3), _share(row["MAP"], 3)


@_table("local_metrics: gain")
def _local_gain(rows: list[Row]) -> Lines:
    shares = {0.5: "half as many metrics as centers", 1: "as many", 2: "twice as many", 4: "four times as many"}
    yield "generated classes: MAP of one metric", *(f"gain with {said}" for said in shares.values())
    for name in _values(rows, "figure 2"):
        n_centres = int(name.rpartition("-")[2])
        of = [_one(rows, figure_2=name, metrics=share * n_centres) for share in shares]
        figures = (f"{_share(row['gain over one'], 3)} (sd {_share(row['gain sd'], 3)})" for row in of)
        yield f"{n_centres} centers: {_share(_one(rows, figure_2=name, metrics=1)['MAP'], 3)}", *figures


@_table("local_metrics: documents")
def _local_documents(rows: list[Row]) -> Lines:
    at = [row for row in rows if "figure 3" in row]
    numbers = _values(at, "metrics")
    yield "MQ2008, NDCG@10 (standard deviation over seeds); number of metrics:", *map(str, numbers)
    for share, said in (
        (0.05, "each metric uses a twentieth of the columns"),
        (1.0, "each metric uses all columns, as in the paper"),
    ):
        of = [_one(at, share_of_the_columns=share, metrics=n) for n in numbers]
        yield said, *(f"{_share(row['NDCG@10'], 3)} ({_share(row['NDCG@10 sd'], 3)})" for row in of)


_MUSIC = {
    ("PPK", 3): "PPK",
    ("VQ histograms", 3): "VQ histograms",
    ("GMM space", 3): "mixtures as vectors",
    ("human tags", 3): "tags by listeners",
    ("PPK", 10): "PPK, ten similar artists",
}


@_table("audio")
def _audio(rows: list[Row]) -> Lines:
    kinds = {"native": "native", "MLR": "MLR", "MLR, L2,1": "R-MLR", "GMML": "GMML", "L-GMML": "L-GMML by example"}
    yield "AUC / MAP", *kinds.values()
    for (name, k), said in _MUSIC.items():
        line = []
        for kind in kinds:
            row = _one(rows, k=k, representation=name, learning=kind, mutual_proximity=False)
            seconds = f" ({row['seconds']:.2g} s)" if row.get("seconds") else ""
            line.append(f"{_share(row['AUC'], 3)} / {_share(row['MAP'], 3)}{seconds}")
        yield said, *line


# --- playlist_walk.md -----------------------------------------------------------------------------------------------


@_table("reasons")
def _reasons(rows: list[Row]) -> Lines:
    yield (
        "", "steps", "changed without the stated edge", "without one of that size", "without one that both songs share",
        "lead over one of that size (95%)", "lead over a shared one (95%)",
    )  # fmt: skip
    for row in rows:
        changed = (row[f"changed, {edge}"] for edge in ("stated", "of that size", "shared"))
        leads = (row[f"ahead of one {edge}"] for edge in ("of that size", "shared"))
        yield row["collection"], f"{row['steps']:,}", *(_plain(share, 3) for share in changed), *leads


@_table("coherence")
def _coherence(rows: list[Row]) -> Lines:
    yield "", "feature", "lists", "people's", "the walk's", "the walk's minus people's", "greedy", "shuffled"
    for row in rows:
        parts = ("people's", "the walk's", "walk ahead", "greedy", "shuffled")
        yield row["lists"], row["feature"], f"{row['n']:,}", *(row[part] for part in parts)


@_table("station: the walk")
def _station(rows: list[Row]) -> Lines:
    yield (
        "", "songs", "surprise", "median rank without the seed", "around the seed", "difference (95%)",
        "in the nearest fifth without the seed", "around the seed",
    )  # fmt: skip
    for row in rows:
        if row["part"] == "walk":
            ranks = (f"{row[way]:.0f}" for way in ("free", "around"))
            shares = (_share(row[f"near, {way}"]) for way in ("free", "around"))
            yield row["library"], str(row["songs"]), f"{row['surprise']:g}", *ranks, row["ahead"], *shares


@_table("station: lists")
def _station_lists(rows: list[Row]) -> Lines:
    yield "share of the walk near the first song", "log P per step", "gain over the walk on all songs (95%)"
    for row in rows:
        if row["part"] == "lists":
            yield f"{row['weight']:g}", _plain(row["log P"], 3), row["gain"]


# --- pooling.md -------------------------------------------------------------------------------------------------


@_table("pooling")
def _pooling(rows: list[Row]) -> Lines:
    yield "libraries", "number", "measure", "pools", "mean tau", "mean covered", "next library covered"
    for row in rows:
        if row["part"] != "one song":
            simulated = f"simulated, tau {_share(row.get('true tau'))}"
            name = simulated if row["part"] == "simulated" else f"{row['set']}, {row['how']}"
            figures = (_share(row["tau"], 3), _share(row["mean covered"], 3), _share(row["next covered"], 3))
            yield name, str(row["libraries"]), row.get("measure", ""), f"{row['pools']:,}", *figures


@_table("pooling: one song")
def _one_song(rows: list[Row]) -> Lines:
    yield "set", "songs", "same file", "all numbers within one step", "median move of a number, in steps"
    for row in rows:
        if row["part"] == "one song":
            figures = (row["same"], row["in step"], row["median move in steps"])
            yield row["set"], f"{row['songs']:,}", *map(_share, figures)


# --- descriptors.md ---------------------------------------------------------------------------------------------


@_table("audible")
def _audible(rows: list[Row]) -> Lines:
    yield (
        "",
        "data",
        "songs",
        "share with a value",
        "share of these that are right",
        "also counting half or double tempo; MIREX score",
        "offset, standard deviation",
    )
    for row in rows:
        away = (row.get("offset"), row.get("spread"))
        figures = (row.get("said"), row.get("right"), row.get("right or octave", row.get("MIREX")))
        line = ("" if figure is None else _share(figure) for figure in figures)
        yield (
            row["what"],
            row["material"],
            str(row["songs"]),
            *line,
            "" if None in away else ", ".join(map(_share, away)),
        )


# --- mixing.md ----------------------------------------------------------------------------------------------------


@_table("mixing")
def _mixing(rows: list[Row]) -> Lines:
    yield (
        "material",
        "fade",
        "fades",
        "share on the beat",
        "share that coincides",
        "the same, of those on the beat",
        "median distance (ms)",
    )
    for row in rows:
        distances = (row["median distance, ms"], row["median distance on the beat, ms"])
        said = f"{distances[0]:.0f}" if distances[1] is None else f"{distances[0]:.0f}; on the beat {distances[1]:.0f}"
        shares = (row["on the beat"], row["coincide"], row["coincide, on the beat"])
        yield row["material"], row["way"], str(row["fades"]), *("" if s is None else _share(s) for s in shares), said


# --- kernels.md, order.md, playlists.md, neighbors.md, listening_tests.md ----------------------------------------


@_table("audio_kernels")
def _audio_kernels(rows: list[Row]) -> Lines:
    yield "combination", "kernels", "AUC", "MAP", "P@10", "MAP minus that of timbre (95% interval)"
    for row in rows:
        kernels = row["kernels"].replace("timbre, harmony in any key, rhythm", "sound")
        weights = f" ({row['chosen most often']})" if ":" in row["chosen most often"] else ""
        figures = (f"{row[name]:.2f}" for name in ("AUC", "MAP", "P@10"))
        yield row["combination"] + weights, kernels, *figures, row.get("lead MAP over timbre") or ""


@_table("order_synthetic")
def _order_synthetic(rows: list[Row]) -> Lines:
    wrong = ("0% of comparisons wrong", "10% of comparisons wrong", "30% of comparisons wrong")
    methods = {
        "sum of kernels as it is": "sum of kernels, not learned",
        "sum of kernels, diagonal": "sum of kernels, diagonal", "sum of kernels, full": "sum of kernels, full",
        "best view alone, diagonal": "best view alone, diagonal",
        "MKPOE, diagonal": "MKPOE, diagonal", "MKPOE, full": "MKPOE, full",
        "MKPOE, full, cleaned, not reduced": "MKPOE, full, without cycles",
        "MKPOE, full, cleaned": "MKPOE, full, without cycles, reduced",
    }  # fmt: skip
    yield "", "0% wrong", "10% wrong", "30% wrong", "thesis, fig. 2.5 (different data: images)"
    for method, said in methods.items():
        of = [next(row for row in rows if row.get(share) == method) for share in wrong]
        line = []
        for row in of:
            noise = row["weight of noise"]
            text = f"{_share(row['in order'])} / {_share(row['new songs'])}"
            line.append(text if noise is None else f"{text} ({100 * noise:.2g}%)")
        yield said, *line, "" if of[0]["thesis, images"] is None else _share(of[0]["thesis, images"], 3)


@_table("order: sizes", "benchmarks/order")
def _order_sizes(rows: list[Row]) -> Lines:
    methods = {
        "accelerated": "accelerated, to 1e-2 (certified)", "sub-gradient": "sub-gradient, to 1e-2 (certified)",
        "one by one": "one outer product per comparison", "t-STE": "t-STE, to its own 1e-2",
    }  # fmt: skip
    yield "songs, comparisons, structure", *methods.values(), "in order: accelerated, t-STE", "peak memory"
    fits = [row for row in rows if row.get("embedding")]
    for (songs, structure), own in group_rows(fits, "songs", "structure"):
        of = {name: _one(own, embedding=name) for name in methods}
        ours = of["accelerated"]
        in_order = (_share(row["in order"]) for row in (ours, of["t-STE"]) if row)
        yield (
            f"{songs:,}, {ours['comparisons']:,}, {structure}",
            *(_seconds_to_near(row) if row else "" for row in of.values()),
            ", ".join(in_order),
            f"{_share(ours['mb'] / 1000, 1)} GB",
        )


def _seconds_to_near(row: Row) -> str:
    reached, certified = row["cpu_s to 1e-2"], row["certified"]
    if reached is None:
        return f"not reached after {_significant(row['cpu_s in all'], 2)} ({row['above the best']:.0%} above)"
    text = _significant(reached, 2)
    return text if certified is None else f"{text} ({_significant(certified, 2)})"


@_table("listeners: songs")
def _listeners_songs(rows: list[Row]) -> Lines:
    yield "", "by question", "by song"
    for method in _values(rows, "songs, by question"):
        line = []
        for kind in ("songs, by question", "songs, by song"):
            row = next(row for row in rows if row.get(kind) == method)
            figures = (
                f"{_share(row[name], 3)} ± {_share(row[f'{name}, standard error'], 3)}"
                for name in ("odd one named", "in order")
            )
            line.append(" / ".join(figures))
        yield method.replace(" as it is", ", not learned"), *line


@_table("listeners: artists")
def _listeners_artists(rows: list[Row]) -> Lines:
    yield "", "held-out comparisons", "new artists (in the thesis, with biographies)"
    for method in _values(rows, "artists, by comparison"):
        known, new = (_one(rows, **{kind: method}) for kind in ("artists__by_comparison", "artists__by_artist"))
        thesis = new.get("thesis, biographies")
        figure = _beside(_in_order(new), thesis and _share(thesis, 3)) if new else ""
        yield method.replace(" as they are", ", not learned"), _in_order(known), figure


def _in_order(row: Row) -> str:
    return f"{_share(row['in order'], 3)} ± {_share(row['in order, standard error'], 3)}"


@_table("subgraphs")
def _subgraphs(rows: list[Row]) -> Lines:
    yield "", "splits", "standard deviation over subgraphs", "held-out comparisons in order", "comparisons kept"
    for (space,), own in group_rows(rows, "space"):
        spread = [row["sd over subgraphs"] for row in own]
        in_order, kept = (fmean(row[name] for row in own) for name in ("held-out ones in order", "comparisons kept"))
        spreads = f"{_share(min(spread), 3)} to {_share(max(spread), 3)}"
        yield space, str(len(own)), spreads, _share(in_order), _plain(kept, 0)


_BOTH = "company, neighbors"
_MODELS = {
    "uniform shuffle": ("uniform shuffle",),
    "popularity": ("popularity",),
    "stationary: no memory": (
        f"stationary: tags, {_BOTH}", f"stationary: {_BOTH}", "stationary: all of the thesis, conjunctions",
    ),
    "bigram, modified Kneser-Ney": ("bigram",),
    "latent Markov embedding, 16 dimensions, one bias per song": ("LME",),
    "walk: tags": ("walk: tags",),
    "walk: tags, conjunctions": ("walk: tags, conjunctions",),
    "walk: all edges of the thesis, conjunctions": ("walk: all of the thesis, conjunctions",),
    "walk: also with clusters of shared playlists": ("walk: tags, company", "walk: company"),
    "walk: also with neighborhoods on shared playlists": (
        f"walk: tags, {_BOTH}", f"walk: {_BOTH}", "walk: all of the app, conjunctions",
    ),
    "walk: also with songs weighted by plays": (
        f"walk: tags, {_BOTH}; songs by plays", f"walk: {_BOTH}; songs by plays",
        "walk: all of the app, conjunctions; songs by plays",
    ),
    "the same, with family shares from held-out playlists": (
        f"walk: tags, {_BOTH}; songs by plays, held-out shares", f"walk: {_BOTH}; songs by plays, held-out shares",
    ),
}  # fmt: skip


@_table("playlists")
def _playlists(rows: list[Row]) -> Lines:
    sets = {"yes_small": "yes small", "yes_big": "yes big", "aotm": "Art of the Mix", "demo": "demo"}
    yield "log P per transition", *sets.values()
    for said, models in _MODELS.items():
        line = []
        for name in sets:
            row: Row = next((row for row in (_one(rows, collection=name, model=m) for m in models) if row), {})
            line.append(_plain(row["log P"], 3) if row else "")
        yield said, *line


@_table("spill")
def _spill(rows: list[Row]) -> Lines:
    n_rows = next(row["rows"] for row in rows if row.get("at equal share") == "generated")
    yield ("recall@100, PCA", "thesis, 890,205 songs of the Million Song Dataset", f"ours, {n_rows:,} generated songs")
    for tau, depth in ((0.0, 7), (0.1, 13)):
        row = _one(rows, rule="pca", tau=tau, depth=depth)
        theirs = 100 * row["thesis rows examined"] / 890_205
        yield (
            f"tau {tau:g}, depth {depth}",
            f"{_share(row['thesis recall@100'])} at {theirs:.1f}% of the data",
            f"{_share(row['recall@100'])} at {row['share examined, %']:.1f}% of the data",
        )
    for tau in _values(rows, "timed, tau"):
        of = [row for row in rows if row.get("timed, tau") == tau]
        ours = [row["times faster"] for row in of]
        theirs = of[0]["thesis times faster"]
        yield (
            f"speedup over a full scan, tau {tau:g}",
            f"{theirs:g} times",
            f"{min(ours):.0f} to {max(ours):.0f} times",
        )


_SEARCH = {
    "`PartitionIndex`": "musicsim PartitionIndex", "`SpillForest`": "musicsim SpillForest", "annoy": "annoy",
    "faiss IVF": "faiss IVF", "faiss HNSW": "faiss HNSW", "voyager (HNSW)": "voyager",
}  # fmt: skip


def _of_search(rows: list[Row]) -> Iterator[tuple[str, list[list[Row]]]]:
    """Yield, for each data set, its name and the rows of each kind of index."""
    for data in _values(rows, "data"):
        of = [row for row in rows if row["data"] == data]
        yield (
            f"{data}; {of[0]['rows']:,}",
            [[row for row in of if row["index"] == index] for index in _SEARCH.values()],
        )


@_table("search:queries", "benchmarks/search")
def _search_queries(rows: list[Row]) -> Lines:
    yield "ms per query at a recall of .90, .95, .98", *_SEARCH
    for data, kinds in _of_search(rows):
        cells = []
        for kind in kinds:
            times = ([row[column] for row in kind if row[column]] for column in ("ms_90", "ms_95", "ms_98"))
            cells.append(", ".join(_significant(min(some), 3) if some else "–" for some in times))
        yield data, *cells


@_table("search:building", "benchmarks/search")
def _search_building(rows: list[Row]) -> Lines:
    yield "s to build, MB in addition to the rows", *_SEARCH
    for data, kinds in _of_search(rows):
        there = ([row for row in kind if row["ms_95"]] for kind in kinds)
        best = [min(kind, key=itemgetter("ms_95")) if kind else {} for kind in there]
        cells = (f"{_significant(row['build_s'], 2)}, {_significant(row['mb'], 2)}" if row else "–" for row in best)
        yield data, *cells


@_table("ten_million: indexes", "benchmarks/ten_million")
def _large_indexes(rows: list[Row]) -> Lines:
    yield (
        "vectors, index", "build: s, CPU s", "a query at a recall of .95, ms", "at a recall of .99, ms",
        "memory while searching, MB",
    )  # fmt: skip
    for (n, index), of_index in group_rows(rows, "rows", "index"):
        own = {row["what"]: row for row in of_index}
        build, queries = own["build"], [own.get(f"query at recall 0.{level}") for level in (95, 99)]
        yield (
            f"{n:,}, {index}",
            f"{_plain(build['s'], 0)}, {_plain(build['cpu_s'], 0)}",
            *(f"{_significant(row['ms'], 2)} ({_share(row['recall'], 3)})" if row else "–" for row in queries),
            _plain(own["open"]["mb"], 0),
        )


@_table("ten_million: steps", "benchmarks/ten_million")
def _large_steps(rows: list[Row]) -> Lines:
    yield "PartitionIndex", *(f"{n:,} vectors" for n in _values(rows, "rows"))
    for (what,), of_sizes in group_rows([row for row in rows if row["index"] == "PartitionIndex"], "what"):
        yield what, *map(_step, of_sizes)


def _step(row: Row) -> str:
    if row.get("ms") is None:
        return f"{_significant(row['s'], 2)} s"
    recall = "" if row.get("recall") is None else f"; recall {_share(row['recall'], 3)}"
    return f"{_significant(row['ms'], 2)} ms; 95% take less than {_significant(row['ms_p95'], 2)} ms{recall}"


@_table("blind_radio")
def _blind_radio(rows: list[Row]) -> Lines:
    yield (
        "difference in skips", "songs to a verdict, median", "80% of listeners", "any verdict", "false verdict",
        "interval ever misses", "usual 95% interval ever excludes 0",
    )  # fmt: skip
    for row in rows:
        songs = ("" if row[name] is None else f"{row[name]:,}" for name in ("songs, median", "songs, 80%"))
        shares = (row[name] for name in ("verdicts", "false", "interval misses", "usual interval"))
        none = {"equal": "none", "varying": "none, varying", "alternating": "none on average, alternating"}
        yield none.get(row["listener"], row["listener"]), *songs, *(f"{share:.1%}" for share in shares)


@_table("verdict")
def _verdict(rows: list[Row]) -> Lines:
    methods = _values(rows, "method")
    yield "“Better”, before / now, of all runs", *methods
    for (evidence, strength), same in group_rows(rows, "evidence", "strength"):
        counts = {row["method"]: row for row in same}
        words = f"{evidence}, strength {strength:g}" if strength else evidence
        yield words, *(_before_and_now(counts[method]) if method in counts else "" for method in methods)


def _before_and_now(row: Row) -> str:
    before = "" if row["before"] is None else f"{row['before']} / "
    return f"{before}{row['better']} of {row['runs']}"


@_table("shuffled_evidence")
def _shuffled_evidence(rows: list[Row]) -> Lines:
    yield "", "method", "before", "gain (95%)", "shuffled", "gain above shuffled (95%)"
    for row in rows:
        measure = "AUC" if row["evidence"] == "plays" else "in order"
        gain, above = ([row[f"{name}{end}"] for end in ("", " from", " to")] for name in ("lead", "above"))
        figures = (_pointed(text) for text in (format_lead(*gain), f"{row['shuffled']:+.3f}", format_lead(*above)))
        yield f"{row['evidence']}, {measure}: {row['data']}", row["method"], _share(row["before"], 3), *figures


@_table("taste_bands")
def _taste_bands(rows: list[Row]) -> Lines:
    yield (
        "",
        "answers",
        "coverage (± standard error)",
        "lowest",
        "mean width",
        "coverage, undecided",
        "width, undecided",
    )
    for row in rows:
        name, n = next((words, row[words]) for words in row if words.endswith(("answers", "answers per set")))
        words = row.get("survey") or row.get("method") or name.partition(":")[0]
        words = f"{words}: agreement" if "survey" in row else words
        words += f" ({row['set']})" if row.get("set", "simulated songs") != "simulated songs" else ""
        coverage = row.get("coverage", row.get("agreement"))
        if "widest band" in row:
            widths = (_share(row[f"widest band{questions}"]) for questions in ("", ", random questions"))
            words += " (widest band {}; with random questions {})".format(*widths)
        names = ("lowest", "mean width", "coverage, undecided", "mean width, undecided")
        figures = (_share(row[one], 3) if one in row else "" for one in names)
        yield words, f"{n:,}", f"{_share(coverage, 3)} ± {_share(row['standard error'], 3)}", *figures


@_table("two_ears")
def _two_ears(rows: list[Row]) -> Lines:
    yield (
        "listeners", "answers", "difference shown", "precision", "random triples", "lead",
        "worse off: list for both", "average list", "own lists",
    )  # fmt: skip
    for row in rows:
        figures = (_share(row[name], 3) for name in ("worse off, both", "worse off, average", "worse off, one's own"))
        precision = "–" if row["precision"] is None else _share(row["precision"], 3)
        shown = f"{row['shown']} of {row['pairs']} pairs"
        lead = _pointed(row["lead"]) if row["lead"] else "–"
        yield row["listeners"], f"{row['answers']}", shown, precision, _share(row["random"], 3), lead, *figures


@_table("listening_test")
def _listening_test(rows: list[Row]) -> Lines:
    yield (
        "true difference", "better model found", "95% interval", "worse model found",
        "interval contains the difference", "either model found if each grade is a block",
    )  # fmt: skip
    for row in rows:
        figures = (_share(row[name], 3) for name in ("the other one", "interval holds it", "by grade"))
        interval = _pointed(row["95 % interval"])
        yield f"{row['true difference']:g}", _share(row["the better one"], 3), interval, *figures
