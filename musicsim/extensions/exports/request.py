"""Kinds of exports, and their options."""

from dataclasses import dataclass

from musicsim.explorer.requests.options import option, settle

TABLES = (".parquet", ".npz", ".csv")
MIREX, JAMS = ".txt", ".zip"


@dataclass(frozen=True, slots=True)
class ExportKind:
    label: str
    help: str
    endings: tuple[str, ...] = TABLES
    compares: bool = False  # compares songs with each other, so a cluster can do it


EXPORTS = {
    "vectors": ExportKind("Vectors", "One vector per song, as compared by the model."),
    "histograms": ExportKind("Histograms", "Codeword histograms: the frequency of each codeword in each song."),
    "neighbours": ExportKind(
        "Neighbours",
        "The nearest songs of each song, with distances; .txt is a distance list for MIREX.",
        (*TABLES, MIREX),
        compares=True,
    ),
    "map": ExportKind(
        "Map", "Positions on the map with all columns; the Parquet file opens in Embedding Atlas.", compares=True
    ),
    "splits": ExportKind("Splits", "Training, validation and test songs: split by artist, and fixed splits."),
    "tags": ExportKind("Tags", "Tags with weights and sources; .zip contains a JAMS file per song.", (*TABLES, JAMS)),
    "plays": ExportKind("Plays", "Play counts per listener and song."),
    "answers": ExportKind("Answers", "Answers of listeners to questions that compare songs."),
}
"""Kinds of exports, by their names on the command line."""


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    k: int | None = option(
        None,
        "Number of nearest songs per song, for neighbors and the map (0: no neighbors on the map). Default: 10; "
        "100 in a MIREX distance list; 0 on the map of more than 100,000 songs.",
        flags=("--k", "-k"),
        min=0,
        max=1_000,
    )
    sample: int | None = option(None, "Export the neighbors of a random sample of this many songs.", min=1)
    seed: int = option(0, "Random seed for the sample and the artist splits.", min=0)

    def __post_init__(self) -> None:
        settle(self)
