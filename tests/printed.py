"""Compare what a program prints with what is stored: words are equal, and numbers are close."""

import re

import pytest

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d*)?(?!\w)")


def find_tolerance(number: str) -> float:
    """Return how far a number may be from a stored one: two units of its last place, and at least 0.01.

    On another processor, rounding may change a step of a solver, and the class of a row between two classes.
    """
    return max(0.01, 2 * 0.1 ** len(number.partition(".")[2]))


def assert_same(printed: str, stored: str) -> None:
    """Check that words are equal, and numbers are close."""
    assert NUMBER.sub(" # ", printed).split() == NUMBER.sub(" # ", stored).split()
    for number, before in zip(NUMBER.findall(printed), NUMBER.findall(stored), strict=True):
        assert float(number) == pytest.approx(float(before), abs=find_tolerance(before)), printed


def assert_shows(printed: str, shown: str) -> None:
    """Check that the shown lines are printed, in their order; numbers are close, and “…” stands for anything."""
    lines = iter(printed.splitlines())
    for line in filter(None, map(str.strip, shown.splitlines())):
        pattern = re.escape(NUMBER.sub(" # ", line)).replace("…", ".*")
        found = next((one for one in lines if re.fullmatch(pattern, NUMBER.sub(" # ", one.strip()))), None)
        assert found is not None, f"{line!r} is not printed:\n{printed}"
        if "…" not in line:
            assert_same(found, line)
