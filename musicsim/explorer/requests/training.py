"""Options of learning a metric: supervision, loss and method."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from musicsim.explorer.requests.options import option, settle


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of supervision."""

    words: str  # "songs with the same tags"
    of: str  # songs or artists, which can be similar
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
"""In the order in which they are tried by default. Answers are few, and used only by request."""

ORDER = "order"
LOSSES = {
    "auc": "AUC: the whole ranking",
    "map": "MAP: the order, from the top",
    "ndcg": "NDCG: the first few, the top counts most",
    "mrr": "MRR: the first right song",
    "precision": "P@k: how many of the first few are right",
    ORDER: "the order of pairs, from answers",
}
"""Measures that a ranking is optimized for; the last is for answers only."""
AUTOMATIC, RANKING, MEAN, LOCAL = "automatic", "ranking", "mean", "local"
METHODS = {
    AUTOMATIC: "automatic: the best on held-out artists, or no change",
    RANKING: "a ranking, step by step (MLR)",
    MEAN: "in closed form, in seconds (GMML)",
    LOCAL: "the same by region of songs (L-GMML)",
}
STRUCTURES = {"full": "full", "diagonal": "diagonal: one weight per direction"}
PENALTIES = {"trace": "trace: few directions", "l21": "L2,1: few dimensions"}


@dataclass(frozen=True)
class LearningSettings:
    """Settings of learning a metric.

    Losses, structure and regularizer are those of :class:`musicsim.metric.MLR`; the loss "order", for answers, that of
    :class:`musicsim.order.LinearPartialOrderEmbedding`. C and structure do not apply to metrics in closed form; the
    measure of the loss selects their parameters. With several models `on`, a full metric has a block for each: they are
    the kernels of :class:`musicsim.metric.MultipleKernelMLR` and :class:`musicsim.order.PartialOrderEmbedding`.
    """

    supervision: str = option(
        "plays", f"Where similarity is learned from: {', '.join(KINDS)} (judgements are thumbs).",
        label="Learn similarity from", name="source", flags=("--from",), choices=tuple(KINDS),
    )  # fmt: skip
    on: tuple[str, ...] = option(
        (), "Models whose song vectors are reweighted; the built-in one by default. Each of several models gets its "
        "own metric and weight: sound, tags, lyrics, your own vectors.",
        label="Train on",
    )  # fmt: skip
    loss: str = option(
        "", f"Optimize for: {', '.join(LOSSES)}; by default auc, or order for answers (order is for answers only).",
        label="Optimize for", choices=tuple(LOSSES),
    )  # fmt: skip
    C: float | None = option(
        None, "Regularization C, above 0: small values stay close to the untrained model, large ones follow the "
        "examples. By default values from 1 to 100,000 are tried, and the best on held-out artists (or answers) is "
        "used.", label="C", name="strength", above=0,
    )  # fmt: skip
    k: int = option(
        10, "Artists or songs that count as similar, and top songs that count for NDCG and P@k.",
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
        0, "Seed of the random choice of held-out artists.", label="Seed of the split", name="seed", min=0,
        max_asked=2**31 - 1,
    )  # fmt: skip
    listener: str = option("", "Learn from the answers of this listener; of all by default.", label="Whose answers")
    method: str = option(
        "", "“automatic” tries several methods, and keeps the models unchanged if none is significantly better. "
        "“ranking” learns step by step and bounds the gain of more steps. “mean” weighs similar against dissimilar "
        "pairs once, in closed form. “local” does so by region; a search uses the metric of its query's region. The "
        "default is “automatic”, but “ranking” for answers, or if you choose C, the metric or the penalty.",
        label="Method", choices=tuple(METHODS),
    )  # fmt: skip
    generated: bool = option(
        False, "Learn from saved playlists that were generated here, too. They repeat what the program already knows.",
        label="Count playlists generated here",
    )  # fmt: skip

    def __post_init__(self) -> None:
        names = filter(None, (self.on,) if isinstance(self.on, str) else self.on)  # a single name is allowed
        object.__setattr__(self, "on", tuple(dict.fromkeys(names)))
        if not self.loss:
            object.__setattr__(self, "loss", ORDER if self.supervision == ANSWERS else "auc")
        if not self.method:
            is_ranking = self.supervision == ANSWERS or self.C is not None
            is_ranking |= (self.structure, self.regularizer) != ("full", "trace")
            object.__setattr__(self, "method", RANKING if is_ranking else AUTOMATIC)
        settle(self)
        if self.loss == ORDER and self.supervision != ANSWERS:
            raise ValueError(f"loss={self.loss!r} is for answers; {self.supervision} does not order similar songs.")
        if self.method != RANKING and self.supervision == ANSWERS:
            raise ValueError(f"method={self.method!r} is not for answers: choose ranking.")


@dataclass(frozen=True)
class TrainingRequest(LearningSettings):
    """A training: its settings, and the name and use of the new model."""

    name: str = option("", "Name of the model; a number is added if the name exists.", label="Name")
    use: bool = option(False, "Use the model if it is better.", label="Use it if it is better")

    @property
    def settings(self) -> LearningSettings:
        """Settings of the learning alone."""
        return LearningSettings(**{f.name: getattr(self, f.name) for f in fields(LearningSettings)})

    def job_arguments(self, name: str) -> dict[str, Any]:
        """Return the arguments of a job of the kind "train"; no model may have this `name`."""
        return {"name": name, "settings": asdict(self.settings), "use": self.use}
