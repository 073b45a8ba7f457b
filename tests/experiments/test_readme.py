"""The page that says which results are kept."""

from experiments.__main__ import README, with_kept


def test_readme_matches_stored_results():
    page = README.read_text(encoding="utf-8")
    assert page == with_kept(page), "run `python -m experiments`"
