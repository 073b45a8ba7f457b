"""The page that says which results are kept."""

from experiments.__main__ import README, with_kept


def test_the_readme_has_the_kept_results_as_they_are():
    page = README.read_text(encoding="utf-8")
    assert page == with_kept(page), "run `python -m experiments`"
