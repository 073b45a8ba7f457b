"""The pictures of the pages show the present code, and a change of the code that they show is noticed."""

import re
import shutil
from pathlib import Path

import pytest
from PIL import Image

from docs import pictures

CHECKOUT = Path(__file__).parents[1]
DRAWN = {"fade-lava", "fade-skyvibe", "million", "mlr-convergence", "mlr-example"}
"""Pictures that show no page: a benchmark, docs/figures.py and docs/transitions.py made them."""
SHOWN = re.compile(r"(?:images|tour)/[\w-]+\.(?:png|webp)")


@pytest.fixture
def copy(tmp_path) -> Path:
    """Return a copy of the manifest and of all files that it names, with each picture accepted."""
    (tmp_path / "docs" / "images").mkdir(parents=True)
    shutil.copy(CHECKOUT / "docs" / "images" / "pictures.json", tmp_path / "docs" / "images")
    names = pictures.read_manifest()["pictures"]
    for path in {path for name in names for path in pictures.find_code(CHECKOUT, name)}:
        target = tmp_path / path.relative_to(CHECKOUT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    pictures.accept(["*"], tmp_path)
    return tmp_path


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def test_pictures_show_the_present_code():
    assert pictures.find_stale() == [], "run `make pictures`, or look and run `python -m docs.pictures --accept NAME`"


def test_every_picture_of_a_page_is_listed():
    found = {path.stem for kind in ("png", "webp") for path in (CHECKOUT / "docs" / "images").glob(f"*.{kind}")}
    found |= {f"tour/{path.stem}" for path in (CHECKOUT / "docs" / "tour").glob("*.png")}
    listed = pictures.read_manifest()["pictures"].keys()
    assert {name.removesuffix("-dark") for name in found} - DRAWN == listed


def test_every_picture_is_small_and_shown():
    documents = [CHECKOUT / "README.md", *(CHECKOUT / "docs").rglob("*.md")]
    shown = {name for path in documents for name in SHOWN.findall(path.read_text(encoding="utf-8"))}
    for folder in ("images", "tour"):
        for path in (CHECKOUT / "docs" / folder).glob("*.png"):
            assert f"{folder}/{path.name}" in shown
            assert path.stem in DRAWN or path.stat().st_size < 250_000, path.name


def test_film_is_small_and_opens_the_readme():
    film = CHECKOUT / "docs" / "images" / "film.webp"
    assert film.stat().st_size < 3_000_000
    assert SHOWN.search((CHECKOUT / "README.md").read_text(encoding="utf-8"))[0] == "images/film.webp"
    with Image.open(film) as shown:
        assert shown.n_frames > 50


def test_change_of_a_page_makes_only_its_pictures_stale(copy):
    append(copy / "musicsim/ui/compare/view.py", "\n_NEW = 1\n")
    assert pictures.find_stale(copy) == ["compare"]
    assert pictures.accept(["compare"], copy) == ["compare"]
    assert pictures.find_stale(copy) == []


def test_change_of_a_style_makes_pictures_stale(copy):
    append(copy / "musicsim/ui/assets/playlist.css", ".new { color: red; }\n")
    assert set(pictures.find_stale(copy)) == {"blind", "playlist", "real-path", "tour/09", "weights"}


def test_comments_and_docstrings_do_not_make_pictures_stale(copy):
    page = copy / "musicsim/ui/library/page.py"
    text = page.read_text(encoding="utf-8")
    changed = re.sub(r'""".*?"""', '"""Another docstring."""', text, flags=re.DOTALL)
    assert changed.count('"""Another docstring."""') > 1
    page.write_text(f"# A comment.\n{changed}", encoding="utf-8")
    assert pictures.find_stale(copy) == []


def test_new_and_removed_files_make_pictures_stale(copy):
    (copy / "musicsim/ui/compare/new.py").write_text("", encoding="utf-8")
    assert pictures.find_stale(copy) == ["compare"]
    (copy / "musicsim/ui/research/quality_view.py").unlink()
    with pytest.raises(SystemExit, match=r"quality_view\.py, of the part quality, matches no file"):
        pictures.find_stale(copy)


def test_names_may_be_patterns_and_must_exist(copy):
    assert pictures.accept(["tour/*"], copy) == [f"tour/{number:02}" for number in range(1, 11)]
    with pytest.raises(SystemExit, match=r"has no picture listne: add it"):
        pictures.accept(["listne"], copy)
