"""What is wrong with the rows of a file, in a list that a person can read."""

_MAX_PROBLEMS = 20


def shortened(problems: list[str]) -> tuple[str, ...]:
    """The first 20 of what is wrong with the rows of a file, and how many more there are."""
    more = len(problems) - _MAX_PROBLEMS
    return (*problems[:_MAX_PROBLEMS], *([f"{more} more rows were left out."] if more > 0 else ()))
