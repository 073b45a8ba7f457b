"""The options of a new listening test."""

from dataclasses import dataclass

from musicsim.explorer.requests.options import option, settle

MAX_MODELS = 6
CONSENT = (
    "You will hear pairs of short excerpts and grade how similar they sound. It takes about half an hour; you can "
    "continue later with the same link. We save your grades and this consent under the name of your link, each with "
    "its time, and nothing else. You can stop at any time."
)


@dataclass(frozen=True, kw_only=True)
class ListeningTestRequest:
    """The models of a listening test, and its pairs."""

    name: str = option("Listening test", "Listeners see the name, so it should not reveal the models.", label="Name")
    models: tuple[str, ...] = option((), "Models to compare.", label="Models")
    queries: int = option(
        30, "Songs whose results are graded; more songs give more precise results.",
        label="Query songs", min=2, max=100,
    )  # fmt: skip
    results: int = option(
        1, "Results of each model per query song; a song that several models find is graded once.",
        label="Results per model", min=1, max=5,
    )  # fmt: skip
    checks: int = option(
        4, "Pairs of a song with itself. Listeners who do not grade these as very similar are not paying attention.",
        label="Attention checks", min=0, max=10,
    )  # fmt: skip
    failed_checks: int = option(
        1, "Grades of listeners who fail more checks do not count.", label="Failed checks allowed", min=0, max=10
    )
    same_artist: bool = option(
        False, "Allow results by the artist of the query song.", label="Results by the same artist"
    )
    seconds: int = option(20, "Seconds of each song, from its most typical part.", label="Seconds", min=5, max=30)
    consent: str = option(CONSENT, "Text that listeners agree to before they begin.", label="Consent")
    seed: int = option(0, "Random seed for the query songs and their order.", label="Seed", min=0)

    def __post_init__(self) -> None:
        settle(self)
        if not 2 <= len(set(self.models)) == len(self.models) <= MAX_MODELS:
            raise ValueError(f"models={self.models} should be 2 to {MAX_MODELS} different ones.")
        for field in ("name", "consent"):
            if not getattr(self, field).strip():
                raise ValueError(f"{field} should not be empty.")
