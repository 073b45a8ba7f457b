"""Generated files in the formats of public data sets of similarity judgments."""

from collections.abc import Iterable, Mapping, Sequence

_MAGNATAGATUNE_HEADER = "\t".join(f"clip{n}_{name}" for name in ("id", "numvotes", "mp3_path") for n in (1, 2, 3))
_CLIP = ("id", "start_seconds", "start_samples")
DIM_SIM_HEADER = ",".join(
    ["triplet_id", *(f"{clip}_{name}" for clip in ("anchor", "song1", "song2") for name in _CLIP),
     "sampling_rate", "clip_lengths_seconds", "clip_lengths_samples", "song1_vote", "song2_vote"]
)  # fmt: skip


def magnatagatune_file(
    questions: Iterable[tuple[Sequence[object], Sequence[int]]], paths: Mapping[object, str] | None = None
) -> str:
    """Return the text of a file like comparisons_final.csv, from the ids of three clips and the votes for each."""
    lines = [_MAGNATAGATUNE_HEADER]
    for clips, votes in questions:
        files = [paths[clip] if paths else f"{clip}/clip-{clip}.mp3" for clip in clips]
        lines.append("\t".join(map(str, [*clips, *votes, *files])))
    return "\n".join(lines) + "\n"


def dim_sim_file(questions: Iterable[tuple[Sequence[str], Sequence[int]]]) -> str:
    """Return the text of a file like clean-dim-sim.csv, from three names “track@start” and the votes for two songs."""
    lines = [DIM_SIM_HEADER]
    for number, (clips, votes) in enumerate(questions, 1):
        cells = [f"{number:04}"]
        for track, start in (clip.split("@") for clip in clips):
            cells += [track, start, str(round(float(start) * 22050))]
        lines.append(",".join([*cells, "22050", "3", "66150", *map(str, votes)]))
    return "\n".join(lines) + "\n"
