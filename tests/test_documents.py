"""Figures of README and docs: tables are what the kept results make, and prose says no number that is not in them."""

import json
import re
from collections.abc import Iterator

import pytest

from experiments._results import KEPT, read
from experiments._tables import BLOCK, documents, experiments_of, tables, updated

PAGES = {path.name: path for path in documents()}
NAMED = re.compile(r"experiments\.([a-z]\w*)")
# Not figures of ours: code and addresses; parts of papers; years; names such as P@10, 3-NN, MQ2008; intervals of 95 %.
SILENT = re.compile(
    r"`[^`]*`|\]\([^)]*\)|\b\d{4}-\d\d-\d\d\b|95 %"
    r"|\b(?:[Ff]ig(?:ure|s|\.)?s?\.?|[Tt]ables?|[Cc]hapters?|[Ss]ections?|eq\.|equation|algorithms?)"
    r"(?: \d[\d.]*(?:, \d[\d.]*)*(?:,? (?:to|and) \d[\d.]*)?)"
    r"|[Tt]hesis \d(?:\.\d)+\b|\b(?:19|20)\d\d\b|@\d+|\b\d+-[A-Za-z]\w*|[A-Za-z]\w*\d\w*"
)
NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.\d+|\d+")
# What a page says beside the results that is not in them: sizes of data, and runs that are over.
ELSEWHERE: dict[str, set[str]] = {
    "audible.md": {"220", "24", "12", "30", "13"},  # clicks a minute, keys, songs of lists, MFCC
    "figures.md": {"10,000", "60,000", "601"},  # digits, the paper's digits, answers
    "hashing.md": {
        *("10,000", "60,000", "8,000", "522,911", "9,000", "1,000,000", "57", "351", "4,500"),  # rows, columns, steps
        *("19.4", "20.5", "9.8"),  # another run, of undivided slopes
    },
    "kernels.md": {"144"},  # songs to learn from
    "lgmml.md": {
        *("1,000", "2,000", "5,000", "100,000"),  # songs, documents
        *("0.8", "1,024", "607"),  # milliseconds; dimensions; the paper's seconds
    },
    "mlr.md": {"150", "8", "20,000", "256"},  # planes that are kept; bytes of a number; songs, dimensions
    "order.md": {
        *(
            "601",
            "715",
            "20",
            ".333",
            "9,107",
            "412",
            "16,385",
            "6,810",
            "8,181",
        ),  # answers, songs, chance, comparisons
        "8,951.3",  # the thesis's, which cannot be repeated
    },
    "playlists.md": {"225"},  # lists to learn from
    "search.md": {"100,000", "12,000", ".035"},  # rows, of this and of another run; a difference of two rows
    "sound.md": {
        *("2,000", "144", "98"),  # draws, songs to learn from, bands
        *(".0001", ".96"),  # of recordings made louder and copied, by another run
    },
}


def parts_of(page: str) -> Iterator[str]:
    """Paragraphs, list items and lines of tables, without the generated tables."""
    for paragraph in re.split(r"\n\s*\n", BLOCK.sub("", page)):
        yield from re.split(r"\n(?=\||- |\d+\. )", paragraph)


def numbers_in(value: object) -> Iterator[float]:
    """All numbers of a result, those inside of its words, too."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from numbers_in(key)
            yield from numbers_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from numbers_in(item)
    elif isinstance(value, str):
        yield from (float(number.replace(",", "")) for number in NUMBER.findall(value))
    elif isinstance(value, int | float):
        yield abs(float(value))


def unknown_numbers(text: str, names: set[str]) -> list[str]:
    """The numbers of a text that no result of these experiments has, rounded as they are there, as a share or in %."""
    known = {0.0, 1.0}
    for name in names:
        report = read(name) or {}
        known.update(numbers_in([report.get(part) for part in ("settings", "rows", "claims")]))
    return [number for number in NUMBER.findall(SILENT.sub(" ", text)) if not _is_one_of(number, known)]


def _is_one_of(number: str, known: set[float]) -> bool:
    value = float(number.replace(",", ""))
    scales = (1.0, 100.0) if 1 <= value <= 1000 else (1.0,)  # in % only what looks like it
    half = 0.5 * 10.0 ** -len(number.partition(".")[2]) * (1 + 1e-9)
    return any(abs(value - of * scale) <= half for of in known for scale in scales)


def unknown_of(page: str) -> Iterator[tuple[str, str]]:
    """Numbers of a page that are not in its results, each with the beginning of its part.

    A part that names an experiment is checked, and all parts of a section that has a table of results.
    """
    for section in re.split(r"\n(?=##+ )", page):
        shown = {name for block in BLOCK.finditer(section) for name in experiments_of(block["name"])}
        names = shown | set(NAMED.findall(section))
        for part in parts_of(section):
            own = names if shown else set(NAMED.findall(part))
            if any(map(read, own)):
                yield from ((number, part[:60]) for number in unknown_numbers(part, own))


@pytest.mark.parametrize("name", PAGES)
def test_the_tables_are_those_of_the_kept_results(name):
    page = PAGES[name].read_text(encoding="utf-8")
    assert page == updated(page), "run `python -m experiments`"


def test_every_table_stands_in_a_document():
    pages = [path.read_text(encoding="utf-8") for path in documents()]
    assert sorted(block["name"] for page in pages for block in BLOCK.finditer(page)) == sorted(tables())


@pytest.mark.parametrize("name", sorted(set(PAGES) - {"coverage.md"}))  # whose numbers are those of sections
def test_prose_has_no_number_that_is_not_in_the_results(name):
    found = list(unknown_of(PAGES[name].read_text(encoding="utf-8")))
    allowed = ELSEWHERE.get(name, set())
    assert [told for told in found if told[0] not in allowed] == []
    assert allowed == {number for number, _ in found}


@pytest.mark.parametrize("name", sorted(set(PAGES) - {"coverage.md"}))
def test_figures_of_which_no_result_is_kept_say_so(name):
    for part in parts_of(PAGES[name].read_text(encoding="utf-8")):
        for experiment in set(NAMED.findall(part)) - {"sound_prior"}:  # which makes constants
            assert read(experiment) or "no result is kept" in part, part[:80]


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("orders .67 of the new ones, 1.0 of the kept", []),
        ("orders .68 of the new ones", [".68"]),
        ("orders 66.7 % of the new ones (figure 2.10, thesis 2.A)", []),
        ("orders 66.9 % of the new ones", ["66.9"]),
        ("of 5,304 comparisons, 2026-11-22, P@10, `k=77`", []),
        ("of 5,314 comparisons", ["5,314"]),
    ],
)
def test_a_number_is_known_as_it_is_rounded(text, unknown):
    assert unknown_numbers(text, {"subgraphs"}) == unknown


def test_beside_the_table_of_benchmarks_there_is_no_other_number():
    page = "### Speed\n\n<!-- results: benchmarks -->\n<!-- end -->\n\n77.77 times faster."
    assert [number for number, _ in unknown_of(page)] == ["77.77"]


def test_kept_results_say_how_they_were_made():
    for path in KEPT.rglob("*.json"):
        report = json.loads(path.read_text(encoding="utf-8"))
        assert report["settings"].keys() >= {"seed", "protocol"}, path.name
        assert any(name.startswith("seconds") for name in report["settings"]), path.name
        assert report["machine"].keys() >= {"cores", "cpu", "python", "versions"}, path.name
        assert report["date"] < "2026-11-22T15" or report.keys() >= {"commit", "inputs"}, path.name
