"""Options for learning a metric: supervision, loss and method."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from musicsim.explorer.requests.options import option, settle


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of supervision."""

    words: str  # "songs with the same tags"
    of: str  # "songs" or "artists", depending on which of them count as similar
    model_name: str
    evidence: str  # "plays"


ANSWERS, JUDGMENTS = "answers", "judgements"
TRAINING_KINDS = {
    "plays": Kind("artists that the same people listen to", "artists", "Listeners", "plays"),
    "sittings": Kind("songs played in one sitting", "songs", "Sittings", "sittings"),
    "playlists": Kind("songs on the same playlists", "songs", "Playlists", "playlists"),
    "tags": Kind("songs with the same tags", "songs", "Tags", "tags"),
    "genre": Kind("songs of the same genre", "songs", "Genres", "genres"),
    "artist": Kind("songs by the same artist", "songs", "Artists", "artists"),
    "folder": Kind("songs in the same folder", "songs", "Folders", "folders"),
    JUDGMENTS: Kind("thumbs that were saved while searching", "songs", "Thumbs", "thumbs"),
    ANSWERS: Kind("answers to comparisons", "songs", "Answers", "answers"),
}
"""Kinds of supervision. Kinds that cover the same number of songs are offered in this order."""

ANSWERS_PER_STAGE = 25
"""Number of answers after which a training on them is offered."""

ORDER_LOSS = "order"
LOSSES = {
    "auc": "AUC: the whole ranking",
    "map": "MAP: the order, especially at the top",
    "ndcg": "NDCG: the first few results, especially the top",
    "mrr": "MRR: the rank of the first correct song",
    "precision": "P@k: how many of the first few results are correct",
    ORDER_LOSS: "the order of pairs in your answers",
}
"""Measures for which a ranking can be optimized; the last one is for answers only."""
AUTOMATIC, RANKING, MEAN, LOCAL = "automatic", "ranking", "mean", "local"
METHODS = {
    AUTOMATIC: "automatic: the best method, or no change",
    RANKING: "a ranking, step by step (MLR)",
    MEAN: "in closed form, in seconds (GMML)",
    LOCAL: "in closed form, for each region of songs (L-GMML)",
}
STRUCTURES = {"full": "full", "diagonal": "diagonal: one weight per direction"}
PENALTIES = {
    "plain": "plain: near the untrained model",
    "trace": "trace: few directions",
    "l21": "L2,1: few dimensions",
}


OVERLAPS = {
    "jaccard": "Jaccard: the share of listeners or lists in common",
    "lift": "lift: more in common than by chance, which counts popular music less",
}


@dataclass(frozen=True)
class LearningSettings:
    """Settings for learning a metric.

    `loss`, `structure` and `regularizer` are parameters of :class:`musicsim.metric.MLR`. The loss "order", for answers,
    belongs to :class:`musicsim.order.LinearPartialOrderEmbedding`. Metrics in closed form do not use `C` and
    `structure`; the measure in `loss` selects their parameters. With several models in `on`, their vectors are
    joined. For answers, and with the penalty "trace", a full metric has one block per model, as in
    :class:`musicsim.metric.MultipleKernelMLR`.
    """

    supervision: str = option(
        "plays", f"Source to learn similarity from: {', '.join(TRAINING_KINDS)} (judgements: thumbs up and down).",
        label="Learn from", name="source", flags=("--from",), choices=tuple(TRAINING_KINDS),
    )  # fmt: skip
    on: tuple[str, ...] = option(
        (), "Models whose song vectors are reweighted; by default the model in use. If that is Sound, the automatic "
        "method also uses Codewords. Several models (sound, tags, lyrics, your own vectors) start with equal weights.",
        label="Train on",
    )  # fmt: skip
    loss: str = option(
        "", f"Measure to optimize: {', '.join(LOSSES)}. The default is auc; for answers, it is order.",
        label="Optimize for", choices=tuple(LOSSES),
    )  # fmt: skip
    C: float | None = option(
        None, "Regularization C, above 0: small values stay close to the untrained model, large ones follow the "
        "examples. By default, musicsim tries 0.1 to 100,000, and chooses on held-out artists or answers.",
        label="C", name="strength", above=0,
    )  # fmt: skip
    k: int = option(
        10, "Number of artists or songs that count as similar. NDCG and P@k consider the same number of top results.",
        label="Songs that count as similar", min=1, max_asked=100,
    )  # fmt: skip
    threshold: int = option(
        10, "Minimum number of plays of an artist for a person to count as a listener of that artist.",
        label="Minimum plays per listener", min=1, max_asked=1000,
    )  # fmt: skip
    overlap: str = option(
        "jaccard", "How plays, sittings and playlists show similarity: by the share of listeners or lists in common "
        "(jaccard), or by lift. Lift compares with what is expected by chance, so popular music counts less.",
        label="Similar by", choices=tuple(OVERLAPS),
    )  # fmt: skip
    structure: str = option(
        "full", "full, or diagonal (one weight per direction).", label="Metric", choices=tuple(STRUCTURES)
    )
    regularizer: str = option(
        "plain", "plain (near the untrained model), trace (few directions) or l21 (few dimensions). Answers always use "
        "the trace.",
        label="Penalty", name="penalty", choices=tuple(PENALTIES),
    )  # fmt: skip
    random_state: int = option(
        0, "Seed for the random choice of held-out artists.", label="Seed of the split", name="seed", min=0,
        max_asked=2**31 - 1,
    )  # fmt: skip
    listener: str = option(
        "", "Learn only from this listener's answers; by default from all answers.", label="Whose answers"
    )
    method: str = option(
        "", "“automatic” tries several methods, and changes nothing if none is significantly better. “ranking” learns "
        "step by step and reports how much further steps could gain. “mean” computes a metric in closed form from "
        "similar and dissimilar pairs. “local” computes one metric per region; a search uses its query's region. The "
        "default is “automatic”. It is “ranking” for answers, or if you set C, the metric or the penalty.",
        label="Method", choices=tuple(METHODS),
    )  # fmt: skip
    generated: bool = option(
        False, "Also learn from playlists that musicsim generated. They repeat what the models already know.",
        label="Include playlists generated by musicsim",
    )  # fmt: skip
    quick: bool = option(
        False, "Try only geometric means, for a first verdict in seconds. To try the other methods, train again "
        "without this option.",
        label="Show a first result, then ask before trying other methods",
    )  # fmt: skip

    def __post_init__(self) -> None:
        names = filter(None, (self.on,) if isinstance(self.on, str) else self.on)  # can also be a single name
        object.__setattr__(self, "on", tuple(dict.fromkeys(names)))
        if not self.loss:
            object.__setattr__(self, "loss", ORDER_LOSS if self.supervision == ANSWERS else "auc")
        if not self.method:
            is_ranking = self.supervision == ANSWERS or self.C is not None
            is_ranking |= (self.structure, self.regularizer) != ("full", "plain")
            object.__setattr__(self, "method", RANKING if is_ranking else AUTOMATIC)
        if self.supervision == ANSWERS:  # their learners have no other penalty
            object.__setattr__(self, "regularizer", "trace")
        settle(self)
        if self.loss == ORDER_LOSS and self.supervision != ANSWERS:
            raise ValueError(f"loss={self.loss!r} works only with answers: choose another loss for {self.supervision}.")
        if self.method != RANKING and self.supervision == ANSWERS:
            raise ValueError(f"method={self.method!r} cannot be used with answers: choose ranking.")
        if self.quick and self.method != AUTOMATIC:
            raise ValueError(f"quick works only with the automatic method, not with {self.method}.")


@dataclass(frozen=True)
class TrainingRequest(LearningSettings):
    """Request for a training run: its settings, the new model's name, and whether to use the model."""

    name: str = option("", "Name of the model; a number is added if the name exists.", label="Name")
    use: bool = option(False, "Use the model if it is better.", label="Use it if it is better")

    @property
    def settings(self) -> LearningSettings:
        """The settings for learning, without `name` and `use`."""
        return LearningSettings(**{f.name: getattr(self, f.name) for f in fields(LearningSettings)})

    def job_arguments(self, name: str) -> dict[str, Any]:
        """Return the arguments for a "train" job; no other model may have this `name`."""
        return {"name": name, "settings": asdict(self.settings), "use": self.use}
