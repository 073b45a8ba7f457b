"""Families of sound: how often the nearest songs are from a family that no listener confuses with the song's.

The share of each song's ten nearest that belong to such a family: orchestral pieces near metal, for example. Each row
is one direction of a pair. "Chance" is the share of the other family among all other songs, and "own" is the share of
the song's own family among the ten nearest. Rankings: plain distances of Sound, Sound as search ranks it (mutual
proximity), and the same for Sound joined with the ear of experiments.ear. Leads are paired differences to plain
distances; negative ones mean fewer confusions. 95 % intervals are over artists, or packages of pieces without one.

Labels of real music are in ``experiments/families.csv``, each with its evidence: tags, file names, folders, or the
composer's own words. The first row that matches a piece counts; other pieces have no family, but are ranked. Both sets
of experiments.real_music have too little solo piano, choir and speech, so these pairs are from the demo collection,
whose styles are known because it is generated. A family needs ten pieces in a set. "all sets" are those of real music.

Sets, options and cache are those of experiments.ear. Without the ear's package or runtime, its rows are left out.
"""

import csv
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import permutations
from pathlib import Path

import numpy as np

from benchmarks.libraries import demo_library
from benchmarks.support.columns import SHARE_3, KeptRows, Lines, Table, find_row, format_share
from benchmarks.support.report import Claim, Progress, Row, Settings, Skipped, at_most, format_lead, main
from experiments.support.ear_vectors import USUAL_EVERY, USUAL_SHARE, join, pooled_vectors, prepare_network, standardize
from experiments.support.game_music import CACHE, FetchError
from experiments.support.music_sets import MusicSet, music_sets
from experiments.support.parts import Rows
from experiments.support.pieces import Pieces, euclidean, with_proximity
from experiments.support.score_rows import with_interval
from experiments.support.timbre import sound_vectors
from musicsim._arrays import Float64Array
from musicsim.evaluation import bootstrap_pairs
from musicsim.library import Library

LABELS = Path(__file__).with_suffix(".csv")
PLAIN, SOUND, EAR = "Sound, plain distances", "Sound, as search ranks", "Sound and ear, as search ranks"
PAIRS = (
    ("metal and rock", "orchestral"), ("metal and rock", "noises"), ("orchestral", "noises"),
    ("metal and rock", "choir"), ("solo piano", "choir"),
)  # fmt: skip
K = 10
MAX_SHARE = 0.01
_STYLES = {"Rock": "metal and rock", "Choral": "choir", "Solo Piano": "solo piano"}

Directions = dict[tuple[str, str], dict[str, Float64Array]]
"""The values of each piece by direction (its family, the other family) and name, nan for pieces of other families."""


@dataclass(frozen=True, slots=True)
class Label:
    """A row of the table of labels; `files` is a pattern of the last folder and the name."""

    family: str
    package: str
    files: str
    evidence: str


def read_labels(table: Path = LABELS) -> list[Label]:
    with table.open(encoding="utf-8", newline="") as stream:
        return [Label(**row) for row in csv.DictReader(stream)]


def find_families(paths: Sequence[Path], labels: Sequence[Label]) -> np.ndarray:
    """Return the family of the first label that matches each file, or an empty string."""

    def family(path: Path) -> str:
        name = f"{path.parent.name}/{path.name}"
        return next((of.family for of in labels if of.package in path.parts and fnmatchcase(name, of.files)), "")

    return np.array([family(path) for path in paths])


def confusions(distances: dict[str, Float64Array], families: np.ndarray) -> Directions:
    """Return shares of the ten nearest by ranking, with "own RANKING" and "chance", for pairs of large families."""
    n = len(families)
    sizes = Counter(families.tolist())
    found: Directions = {}
    for pair in PAIRS:
        for own, other in permutations(pair) if min(sizes[family] for family in pair) >= K else ():
            values = {"chance": np.full(n, sizes[other] / (n - 1))}
            for ranking, D in distances.items():
                nearest = families[np.argsort(D + np.diag(np.full(n, np.inf)), axis=1, kind="stable")[:, :K]]
                values[ranking] = (nearest == other).mean(axis=1)
                values[f"own {ranking}"] = (nearest == own).mean(axis=1)
            found[own, other] = {name: np.where(families == own, value, np.nan) for name, value in values.items()}
    return found


def table_rows(name: str, found: Directions, groups: Sequence[str], seed: int) -> Iterator[Row]:
    """Yield a row per direction and ranking; intervals are omitted for fewer than two groups."""
    for (own, other), values in found.items():
        is_query = np.isfinite(values["chance"])
        n_groups = len({group for group, asked in zip(groups, is_query, strict=True) if asked})
        for ranking in (ranking for ranking in (PLAIN, SOUND, EAR) if ranking in values):
            row = {
                "set": name, "songs": own, "confused with": other, "ranking": ranking,
                "queries": int(is_query.sum()), "artists": n_groups,
                "share": float(np.nanmean(values[ranking])), "chance": float(np.nanmean(values["chance"])),
                "own": float(np.nanmean(values[f"own {ranking}"])),
            }  # fmt: skip
            if n_groups > 1:
                _, low, high = bootstrap_pairs(values[ranking], np.zeros(len(groups)), groups, random_state=seed)
                row["interval"] = f"{low:.3f} to {high:.3f}"
                if ranking != PLAIN:
                    mean, low, high = bootstrap_pairs(values[ranking], values[PLAIN], groups, random_state=seed)
                    row["lead"] = format_lead(mean, low, high)
            yield row


def run(settings: Settings, progress: Progress) -> tuple[Rows, list[Claim]]:
    cache = settings.cache or CACHE
    rows: Rows = []
    measured: list[tuple[Directions, list[str]]] = []
    try:
        for music in music_sets(settings, cache, progress):
            families = find_families([song.path for song in music.pieces.songs], read_labels())
            measured.append(_measure(music, families, settings, cache, progress))
            rows += table_rows(music.name, *measured[-1], settings.seed)
    except FetchError as error:
        raise Skipped(str(error)) from error
    if len(measured) > 1:
        rows += table_rows("all sets", *pool(measured), settings.seed)
    with demo_library(settings.seed, progress) as library:
        demo = MusicSet("demo", library, _demo_pieces(library))
        families = np.array([_STYLES.get(style, "") for style in demo.pieces.packages])
        rows += table_rows(demo.name, *_measure(demo, families, settings, cache, progress), settings.seed)
    return rows, list(_claims(rows))


def _measure(
    music: MusicSet, families: np.ndarray, settings: Settings, cache: Path, progress: Progress
) -> tuple[Directions, list[str]]:
    """Return confusions, and the group of each piece: its composer or, if unknown, its package."""
    pieces = music.pieces
    settings.facts[f"{music.name}: families"] = dict(Counter(families.tolist()))
    sound = sound_vectors(music.library, pieces)
    plain = euclidean(sound)
    distances = {PLAIN: plain, SOUND: with_proximity(plain)}
    try:
        pools = pooled_vectors(music.library, pieces, prepare_network(cache), USUAL_EVERY, cache, progress)
        distances[EAR] = with_proximity(euclidean(join(sound, standardize(pools), USUAL_SHARE)))
    except Skipped as absent:
        settings.facts[f"{music.name}: ear"] = str(absent).removeprefix(f"{cache}{os.sep}")
    progress(f"{music.name}: neighbors")
    groups = np.where(pieces.composers == "", pieces.packages, pieces.composers)
    return confusions(distances, families), groups.tolist()


def pool(measured: Sequence[tuple[Directions, list[str]]]) -> tuple[Directions, list[str]]:
    """Concatenate the pieces of sets; a ranking counts if it is known for each set that has the direction."""
    pooled: Directions = {}
    for key in dict.fromkeys(key for found, _ in measured for key in found):
        having = [found[key] for found, _ in measured if key in found]
        for name in having[0]:
            if all(name in values for values in having):
                parts = [found[key][name] if key in found else np.full(len(of), np.nan) for found, of in measured]
                pooled.setdefault(key, {})[name] = np.concatenate(parts)
    return pooled, [group for _, groups in measured for group in groups]


def _demo_pieces(library: Library) -> Pieces:
    songs = sorted(library.songs(), key=lambda song: song.content_hash)
    artists, styles = ([getattr(song, name) or "" for song in songs] for name in ("artist", "genre"))
    return Pieces(tuple(songs), np.array(artists), np.array(styles))


def _claims(rows: Rows) -> Iterator[Claim]:
    """Claim that search almost never shows the other family, in real music of all sets and in the demo."""
    shown = {"demo", "all sets" if any(row["set"] == "all sets" for row in rows) else "set 1"}
    for row in rows:
        if row["set"] in shown and row["ranking"] != PLAIN:
            claim = f"{row['set']}: {row['confused with']} among the nearest to {row['songs']}, {row['ranking']}"
            yield at_most(claim, row["share"], MAX_SHARE)


# --- tables of the documents --------------------------------------------------------------------------------


def _tabulate(rows: KeptRows) -> Lines:
    rankings = ("Sound, plain distances", "Sound, as search ranks", "Sound and ear, as search ranks")
    yield "", "songs", "artists", "chance", "plain distances", "as search ranks", "with an ear", "own family"
    shown = [row for row in rows if row["set"] in ("all sets", "demo")]
    for name, songs, other in dict.fromkeys((row["set"], row["songs"], row["confused with"]) for row in shown):
        found = [find_row(shown, set=name, songs=songs, confused_with=other, ranking=ranking) for ranking in rankings]
        cells = (with_interval(SHARE_3(row.get("share")), row.get("interval")) for row in found)
        pair = f"{other} among the nearest to {songs}{'' if name == 'all sets' else f' ({name})'}"
        first, search = found[:2]
        counts = f"{first['queries']}", f"{first['artists']}"
        yield pair, *counts, format_share(first["chance"]), *cells, format_share(search["own"])


TABLES: dict[str, Table] = {"families": _tabulate}


if __name__ == "__main__":
    main("families", __doc__.splitlines()[0], run, rivals=("onnx", "onnxruntime"), takes_library=True, takes_sets=True)
