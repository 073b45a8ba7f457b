"""How a metric is to be learned: what says that songs are similar, what is optimised, and by which method."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from musicsim.explorer.requests.options import option, settle


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of supervision: its question, who can be similar (artists, or songs), and what its models are called."""

    words: str
    of: str
    model_name: str


ANSWERS, JUDGEMENTS = "answers", "judgements"
KINDS = {
    "plays": Kind("artists that the same people listen to", "artists", "Listeners"),
    "sittings": Kind("songs played in one sitting", "songs", "Sittings"),
    "playlists": Kind("songs on the same playlists", "songs", "Playlists"),
    "tags": Kind("songs with the same tags", "songs", "Tags"),
    "genre": Kind("songs of one genre", "songs", "Genres"),
    "artist": Kind("songs of one artist", "songs", "Artists"),
    "folder": Kind("songs in one folder", "songs", "Folders"),
    JUDGEMENTS: Kind("thumbs that were kept while searching", "songs", "Thumbs"),
    ANSWERS: Kind("answers on the Compare page", "songs", "Answers"),
}
"""In the order in which they are worth trying, but for answers, which are few and asked for by name."""

ORDER = "order"
LOSSES = {
    "auc": "AUC: the whole ranking",
    "map": "MAP: the order, from the top",
    "ndcg": "NDCG: the first few, the top counts most",
    "mrr": "MRR: the first right song",
    "precision": "P@k: how many of the first few are right",
    ORDER: "the order of pairs, as answers give it",
}
"""What a ranking is judged by while learning, in words; the last is of answers only."""
AUTOMATIC, RANKING, MEAN, LOCAL = "automatic", "ranking", "mean", "local"
METHODS = {
    AUTOMATIC: "automatic: what is best on held-out artists, or nothing",
    RANKING: "a ranking, step by step (MLR)",
    MEAN: "in closed form, in seconds (GMML)",
    LOCAL: "the same by region of songs (L-GMML)",
}
"""How a metric is learned, in words."""
STRUCTURES = {"full": "full", "diagonal": "diagonal: one weight per direction"}
PENALTIES = {"trace": "trace: few directions", "l21": "L2,1: few dimensions"}


@dataclass(frozen=True)
class LearningSettings:
    """How a metric is learned.

    What is said of losses, C and structure is of rankings; a metric in closed form is judged by the measure of the
    loss, and has the others not. Of several models `on` a full metric has a block each: they are the kernels of
    :class:`musicsim.metric.MultipleKernelMLR` and :class:`musicsim.order.PartialOrderEmbedding`. Losses, structure and
    regularizer are those of :class:`musicsim.metric.MLR`, and "order", for answers, that of
    :class:`musicsim.order.LinearPartialOrderEmbedding`.
    """

    supervision: str = option(
        "plays", f"Where similarity is learned from: {', '.join(KINDS)} (judgements are thumbs).",
        label="Learn similarity from", name="source", flags=("--from",), choices=tuple(KINDS),
    )  # fmt: skip
    on: tuple[str, ...] = option(
        (), "The models whose song vectors are reweighted; the built-in one by default. With several, each gets its "
        "own metric and they are weighted against each other: sound, tags, lyrics, your own vectors.",
        label="Train on",
    )  # fmt: skip
    loss: str = option(
        "", f"What to optimise for: {', '.join(LOSSES)}; by default auc, and order for answers, which alone have it.",
        label="Optimise for", choices=tuple(LOSSES),
    )  # fmt: skip
    C: float | None = option(
        None, "Regularisation C, above 0: small values stay close to the untrained model, large ones follow the "
        "examples. By default values from 1 to 100,000 are tried, and the best on held-out artists (or answers) is "
        "used.", label="C", name="strength", above=0,
    )  # fmt: skip
    k: int = option(
        10, "Artists or songs that count as similar, and the top songs that NDCG and P@k look at.",
        label="Songs that count as similar", min=1, max_asked=100,
    )  # fmt: skip
    threshold: int = option(
        10, "People who played an artist fewer times do not count as its listeners.",
        label="Minimum plays per listener", min=1, max_asked=1000,
    )  # fmt: skip
    structure: str = option(
        "full", "full, or diagonal: one weight per direction.", label="Metric", choices=tuple(STRUCTURES)
    )
    regularizer: str = option(
        "trace", "trace: few directions, or l21: few dimensions.",
        label="Penalty", name="penalty", choices=tuple(PENALTIES),
    )  # fmt: skip
    random_state: int = option(
        0, "Seed of the split that holds artists out.", label="Seed of the split", name="seed", min=0,
        max_asked=2**31 - 1,
    )  # fmt: skip
    listener: str = option("", "Whose answers are learned from; everybody's by default.", label="Whose answers")
    method: str = option(
        "", "automatic tries whitening, the closed form and rankings, and keeps the sound as it is where none is "
        "surely better; ranking learns in steps, with a bound on what more steps could gain; mean, in closed form, "
        "weighs similar against dissimilar pairs once; local does so by region, and a search uses the metric of the "
        "region of its query. By default automatic, but ranking from answers, or where C, the metric or the penalty "
        "is chosen.",
        label="Method", choices=tuple(METHODS),
    )  # fmt: skip
    generated: bool = option(
        False, "Learn from saved playlists that were generated here, too: they say what the program thinks similar "
        "already.", label="Count playlists generated here",
    )  # fmt: skip

    def __post_init__(self) -> None:
        names = filter(None, (self.on,) if isinstance(self.on, str) else self.on)  # one name may stand alone
        object.__setattr__(self, "on", tuple(dict.fromkeys(names)))
        if not self.loss:
            object.__setattr__(self, "loss", ORDER if self.supervision == ANSWERS else "auc")
        if not self.method:
            is_ranking = self.supervision == ANSWERS or self.C is not None
            is_ranking |= (self.structure, self.regularizer) != ("full", "trace")
            object.__setattr__(self, "method", RANKING if is_ranking else AUTOMATIC)
        settle(self)
        if self.loss == ORDER and self.supervision != ANSWERS:
            raise ValueError(
                f"loss={self.loss!r} is for answers; {self.supervision} says what is similar, not in which order."
            )
        if self.method != RANKING and self.supervision == ANSWERS:
            raise ValueError(f"method={self.method!r} is not for answers, of which there are few.")


@dataclass(frozen=True)
class TrainingRequest(LearningSettings):
    """A training as it is asked for: how to learn, and what becomes of the model."""

    name: str = option("", "Name of the model; a number is added if it is taken.", label="Name")
    use: bool = option(False, "Use the model if it is better.", label="Use it if it is better")

    @property
    def settings(self) -> LearningSettings:
        """How to learn, without the rest."""
        return LearningSettings(**{f.name: getattr(self, f.name) for f in fields(LearningSettings)})

    def job_arguments(self, name: str) -> dict[str, Any]:
        """What a job of the kind "train" is started with; `name` is one that no model has."""
        return {"name": name, "settings": asdict(self.settings), "use": self.use}
