"""Kinds of exports and their options."""

from dataclasses import dataclass

from musicsim.explorer import option, settle

TABLES = (".parquet", ".npz", ".csv")
MIREX, ARCHIVE = ".txt", ".zip"
DEFAULT_K = 10  # neighbors per song


@dataclass(frozen=True, slots=True)
class ExportKind:
    label: str
    help: str
    endings: tuple[str, ...] = TABLES
    compares: bool = False  # True if the export compares songs with each other, so that it can use a cluster


EXPORTS = {
    "vectors": ExportKind("Vectors", "The vectors that the model compares, one per song."),
    "histograms": ExportKind("Histograms", "Codeword histograms: the frequency of each codeword in each song."),
    "neighbours": ExportKind(
        "Neighbors",
        "The songs nearest to each song, with distances; .txt is a distance list for MIREX.",
        (*TABLES, MIREX),
        compares=True,
    ),
    "map": ExportKind(
        "Map", "Map positions and all columns; Embedding Atlas can open the Parquet file.", compares=True
    ),
    "splits": ExportKind("Splits", "Training, validation and test songs, from a split by artist and fixed splits."),
    "tags": ExportKind(
        "Tags", "Tags with weights and sources; .zip contains one JAMS file per song.", (*TABLES, ARCHIVE)
    ),
    "passages": ExportKind(
        "Passages",
        "The most typical 30 seconds of each song. With --passages-of, the passages that a song shares with its "
        "neighbors; .zip contains each song's label track for Audacity and regions for Sonic Visualiser.",
        (*TABLES, ARCHIVE),
    ),
    "plays": ExportKind("Plays", "Play counts per listener and song."),
    "answers": ExportKind("Answers", "Listeners' answers to questions that compare songs."),
}
"""Kinds of exports, keyed by their names on the command line."""


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    k: int | None = option(
        None,
        "Number of neighbors per song, in exports of neighbors, passages and the map (0: a map without neighbors). "
        "The default is 10. It is 100 in a MIREX distance list, and 0 for a map of more than 100,000 songs.",
        flags=("--neighbors",),
        min=0,
        max=1_000,
    )
    sample: int | None = option(None, "Export the neighbors of a random sample of this many songs.", min=1)
    seed: int = option(0, "Random seed for the sample and the artist splits.", min=0)
    like: int | None = option(
        None, "Export the passages that this song (an id) shares with its neighbors.", min=1, flags=("--passages-of",)
    )
    card: bool = option(
        False, "Also write a data card (README.md) and Croissant metadata (croissant.json) next to a Parquet file."
    )
    license: str = option("", "License of the data in the card, such as cc-by-4.0.")

    def __post_init__(self) -> None:
        settle(self)
