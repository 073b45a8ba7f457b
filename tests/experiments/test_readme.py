"""The page that says which results are kept."""

from experiments.__main__ import README, updated


def test_the_readme_has_the_kept_results_as_they_are():
    page = README.read_text(encoding="utf-8")
    assert page == updated(page), "run `python -m experiments`"
