"""What is asked of a new listening test."""

from dataclasses import dataclass

from musicsim.explorer.requests.options import option, settle

MAX_MODELS = 6
CONSENT = (
    "You will hear pairs of short excerpts and say how similar they sound. It takes about half an hour; you can stop "
    "and go on later by the same link. Your grades and this consent are kept under the name of your link, each "
    "with its time, and nothing else. You can stop at any time."
)


@dataclass(frozen=True, kw_only=True)
class ListeningTestRequest:
    """Which models are compared, and by how many pairs."""

    name: str = option("Listening test", "Listeners see it; it should not name the models.", label="Name")
    models: tuple[str, ...] = option((), "Models whose results are compared.", label="Models")
    queries: int = option(
        30, "Songs whose results are graded; each counts once, so more songs make the test surer.",
        label="Query songs", min=2, max=100,
    )  # fmt: skip
    results: int = option(
        1, "Results of each model for each query song; a song that several models find is graded once.",
        label="Results per model", min=1, max=5,
    )  # fmt: skip
    checks: int = option(
        4, "Pairs of a song with itself. Who does not call these very similar is not listening.",
        label="Attention checks", min=0, max=10,
    )  # fmt: skip
    failed_checks: int = option(
        1, "Grades of listeners who fail more checks do not count.", label="Failed checks allowed", min=0, max=10
    )
    same_artist: bool = option(
        False, "Whether results may be by the artist of the query song.", label="Results by the same artist"
    )
    seconds: int = option(20, "Seconds of each song, from its most typical part.", label="Seconds", min=5, max=30)
    consent: str = option(CONSENT, "What listeners agree to before they begin.", label="Consent")
    seed: int = option(0, "Draws the query songs and their order.", label="Seed", min=0)

    def __post_init__(self) -> None:
        settle(self)
        if not 2 <= len(set(self.models)) == len(self.models) <= MAX_MODELS:
            raise ValueError(f"models={self.models} should be 2 to {MAX_MODELS} different ones.")
        for field in ("name", "consent"):
            if not getattr(self, field).strip():
                raise ValueError(f"{field} should not be empty.")
