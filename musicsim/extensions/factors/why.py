"""The figures at the end of *Why?*."""

from musicsim.explorer import Example, Factors, Snapshot
from musicsim.extensions.factors.figures import measure_factors
from musicsim.public import visitor_may
from musicsim.wording import capitalize


@visitor_may
def describe_factors(snapshot: Snapshot, query: int | Example, other_id: int) -> dict[str, list[str]]:
    """Return a line per factor for two songs of the library, and a line that says what the figures mean."""
    if isinstance(query, Example):
        return {}
    (figures,) = measure_factors(Factors(snapshot), query, [other_id])
    known = [f"{capitalize(name)}: {figure:.0f}%" for name, figure in figures.items() if figure is not None]
    meaning = "Percentage of pairs of songs in this library that are farther apart than these two."
    return {"Factor by factor": [*known, meaning]}
