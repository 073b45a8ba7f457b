"""What is exported of a library, and how."""

from dataclasses import dataclass

from musicsim.explorer.requests.options import option, settle

TABLES = (".parquet", ".npz", ".csv")
MIREX, JAMS = ".txt", ".zip"


@dataclass(frozen=True, slots=True)
class ExportKind:
    """Something that can be exported."""

    label: str
    help: str
    endings: tuple[str, ...] = TABLES
    compares: bool = False  # songs with each other, which a cluster can do


EXPORTS = {
    "vectors": ExportKind("Vectors", "One vector per song, as the model compares them."),
    "histograms": ExportKind("Histograms", "How often each codeword occurs in a song."),
    "neighbours": ExportKind(
        "Neighbours",
        "The nearest songs of every song with their distances; .txt is a distance list as MIREX reads it.",
        (*TABLES, MIREX),
        compares=True,
    ),
    "map": ExportKind(
        "Map", "Places on the map with all columns; the Parquet file opens in Embedding Atlas.", compares=True
    ),
    "splits": ExportKind("Splits", "Which songs are for training, validation and test: by artist, and fixed ones."),
    "tags": ExportKind("Tags", "Tags with weights and sources; .zip holds a JAMS file per song.", (*TABLES, JAMS)),
    "plays": ExportKind("Plays", "Who played which song how often."),
    "answers": ExportKind("Answers", "What listeners answered when they were asked to compare songs."),
}
"""What can be exported, by its name on the command line."""


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    """How something is exported."""

    k: int | None = option(
        None,
        "Nearest songs per song, of neighbours and on the map (0: none there); by default 10, but 100 in a distance "
        "list of MIREX, and none on the map of more than 100,000 songs.",
        flags=("--k", "-k"),
        min=0,
        max=1_000,
    )
    sample: int | None = option(
        None, "Export the neighbours of so many songs only, drawn by the seed, among all songs.", min=1
    )
    seed: int = option(0, "Of the sample, and of the splits by artist.", min=0)

    def __post_init__(self) -> None:
        settle(self)
