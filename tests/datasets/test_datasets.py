"""Data sets: records, files on this machine, downloads from a server on this machine, and what an absent one says."""

import gzip
import hashlib
import io
import lzma
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import musicsim as ms
from musicsim.datasets import DataFile, DataSet, files
from musicsim.errors import DataSetAbsentError
from tests.shared import SHARED

ROWS = b"1,2\n3,4\n"
CHECKOUT = Path(__file__).parents[2]
NAMES = [data_set.name for data_set in ms.datasets.list_datasets()]


@pytest.fixture
def rows(source, monkeypatch) -> DataSet:
    """A data set of one file with an address and a checksum."""
    file = DataFile("rows.csv", hashlib.sha256(ROWS).hexdigest(), f"{source.address}/far/rows.csv")
    made = DataSet("rows", "Rows", "a book", "CC0", "two columns", folder="of/rows", files=(file,))
    monkeypatch.setattr("musicsim.datasets.registry._DATA_SETS", (made,))
    return made


# --- records ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_record_names_source_license_layout_and_checksums(name):
    data_set = ms.datasets.get_dataset(name)
    assert re.search(r"https?://", data_set.source)
    assert data_set.license
    assert data_set.layout
    assert data_set.files or data_set.fetcher
    assert all(re.fullmatch("[0-9a-f]{64}", file.sha256 or "0" * 64) for file in data_set.files)
    for reader in data_set.read_by:
        place = reader.replace(".", "/") if "." in reader else f"experiments/{reader}"
        assert f'"{name}"' in (CHECKOUT / f"{place}.py").read_text(encoding="utf-8") or "HETREC" in (
            CHECKOUT / f"{place}.py"
        ).read_text(encoding="utf-8")


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(KeyError, match=r"'wines': no such data set; there are aotm, .*wine"):
        ms.datasets.fetch("wines")


@pytest.mark.skipif(not SHARED.is_dir(), reason="no folder of public data sets")
@pytest.mark.parametrize("name", NAMES)
def test_shared_files_have_recorded_checksums(name, monkeypatch):
    monkeypatch.setenv("MUSICSIM_SHARED_DATA", str(SHARED))
    data_set = ms.datasets.get_dataset(name)
    hashes = ms.datasets.hash_files(name)
    for file in data_set.files:
        assert hashes[f"{data_set.folder}/{file.path}"] in ("absent", file.sha256)


def test_import_fetches_nothing_and_loads_no_downloader():
    code = (
        "import sys, musicsim as ms; ms.datasets.list_datasets(); ms.datasets.get_dataset('mnist')\n"
        "print([name for name in ('pooch', 'requests', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- files on this machine -------------------------------------------------------------------------------


def test_shared_folder_comes_before_cache_and_may_be_compressed(home, rows, tmp_path, monkeypatch):
    (home / "of/rows").mkdir(parents=True)
    (home / "of/rows/rows.csv").write_bytes(b"cached")
    assert ms.datasets.open_text("rows", "rows.csv").read() == "cached"
    (tmp_path / "shared/of/rows").mkdir(parents=True)
    (tmp_path / "shared/of/rows/rows.csv.xz").write_bytes(lzma.compress(ROWS))
    monkeypatch.setenv("MUSICSIM_SHARED_DATA", str(tmp_path / "shared"))
    assert ms.datasets.find("rows") == tmp_path / "shared/of/rows"
    assert ms.datasets.find("rows", "rows.csv").name == "rows.csv.xz"
    with ms.datasets.open_text("rows", "rows.csv") as lines:
        assert lines.read() == ROWS.decode()
    assert ms.datasets.hash_files("rows") == {"of/rows/rows.csv": hashlib.sha256(ROWS).hexdigest()}


def test_absent_set_says_how_to_get_it(home, source):
    for name, said in {
        "gtzan": r"features are absent|GTZAN.* is absent. Run `python -c .*ms.datasets.fetch\('gtzan'\)",
        "bigann10k": "is absent. Get it from https://github.com/.* put bigann10k.npz into FOLDER/bigann10k, and set "
        "MUSICSIM_SHARED_DATA to FOLDER",
    }.items():
        with pytest.raises(DataSetAbsentError, match=said):
            ms.datasets.find(name)
    for name in ("balance", "isolet", "covtype", "rcv1"):
        with pytest.raises(DataSetAbsentError, match=rf"is absent. Run .*fetch\('{name}'\)"):
            ms.datasets.load(name)
        assert set(ms.datasets.hash_files(name).values()) == {"absent"}
    with pytest.raises(ValueError, match="gtzan is not a table with classes"):
        ms.datasets.load("gtzan")
    assert source.asked == []


@pytest.mark.parametrize(("name", "shape"), [("wine", (178, 13)), ("wdbc", (569, 30))])
def test_sets_of_scikit_learn_need_no_file(home, name, shape):
    X, y = ms.datasets.load(name)
    assert X.shape == shape
    assert np.unique(y).tolist() == list(range(3 if name == "wine" else 2))
    assert ms.datasets.fetch(name).is_dir()
    [(file, digest)] = ms.datasets.hash_files(name).items()
    assert digest == hashlib.sha256((ms.datasets.fetch(name) / file.split("/")[1]).read_bytes()).hexdigest()


# --- downloads -------------------------------------------------------------------------------------------


def test_fetched_file_is_checked_and_not_fetched_again(home, rows, source):
    source.answers["/far/rows.csv"] = ROWS
    assert ms.datasets.fetch("rows") == home / "of/rows"
    assert (home / "of/rows/rows.csv").read_bytes() == ROWS
    assert ms.datasets.fetch("rows") == home / "of/rows"
    assert source.asked == ["/far/rows.csv"]
    assert ms.datasets.hash_files("rows") == {"of/rows/rows.csv": rows.files[0].sha256}


def test_fetch_into_a_folder_makes_it_a_shared_one(home, rows, source, tmp_path, monkeypatch):
    source.answers["/far/rows.csv"] = ROWS
    assert ms.datasets.fetch("rows", tmp_path / "mine") == tmp_path / "mine/of/rows"
    assert not home.exists()
    monkeypatch.setenv("MUSICSIM_SHARED_DATA", str(tmp_path / "mine"))
    assert ms.datasets.find("rows") == tmp_path / "mine/of/rows"


@pytest.mark.parametrize("how", ["wrong checksum", "interrupted", "not found"])
def test_failed_download_leaves_nothing(home, rows, source, how):
    source.answers["/far/rows.csv"] = b"1,2\n" if how == "wrong checksum" else ROWS
    if how == "interrupted":
        source.cut.add("/far/rows.csv")
    if how == "not found":
        source.answers.clear()
    said = "has the SHA-256 .* instead of" if how == "wrong checksum" else "could not be fetched: "
    with pytest.raises(DataSetAbsentError, match=said):
        ms.datasets.fetch("rows")
    assert [path for path in home.rglob("*") if path.is_file()] == []
    source.cut.clear()
    source.answers["/far/rows.csv"] = ROWS
    assert (ms.datasets.fetch("rows") / "rows.csv").read_bytes() == ROWS, "the next try succeeds"


def test_file_in_an_archive_or_compressed_is_unpacked(home, source, monkeypatch):
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("in it/b.csv", ROWS)
    source.answers |= {"/a.csv.gz": gzip.compress(ROWS), "/all.zip": zipped.getvalue()}
    digest = hashlib.sha256(ROWS).hexdigest()
    made = [DataFile("a.csv", digest, f"{source.address}/a.csv.gz")]
    made.append(DataFile("b.csv", digest, f"{source.address}/all.zip#in it/b.csv"))
    known = DataSet("rows", "Rows", "a book", "CC0", "rows", folder="rows", files=tuple(made))
    monkeypatch.setattr("musicsim.datasets.registry._DATA_SETS", (known,))
    folder = ms.datasets.fetch("rows")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"a.csv": ROWS, "b.csv": ROWS}
    (folder / "b.csv").unlink()
    source.answers["/all.zip"] = b"no archive"
    with pytest.raises(DataSetAbsentError, match=r"all\.zip arrived damaged"):
        ms.datasets.fetch("rows")


def test_mirror_serves_files_compressed_or_not(home, source, monkeypatch):
    text = b"B,1,1,1,1\n"
    file = DataFile("balance-scale.data", hashlib.sha256(text).hexdigest())
    made = DataSet("balance", "Balance", "UCI", "CC BY", "rows", folder="uci", files=(file,), fetcher="openml")
    monkeypatch.setattr("musicsim.datasets.registry._DATA_SETS", (made,))
    monkeypatch.setenv("MUSICSIM_DATA_URL", f"{source.address}/copy/")
    source.answers["/copy/uci/balance-scale.data"] = text
    ms.datasets.fetch("balance")
    X, y = ms.datasets.load("balance")
    assert (X.tolist(), y.tolist()) == ([[1, 1, 1, 1]], [0])
    (home / "uci/balance-scale.data").unlink()
    source.answers["/copy/uci/balance-scale.data.xz"] = lzma.compress(text)
    ms.datasets.fetch("balance")
    assert (home / "uci/balance-scale.data.xz").is_file()
    assert ms.datasets.load("balance")[0].tolist() == X.tolist()
    (home / "uci/balance-scale.data.xz").unlink()
    source.answers["/copy/uci/balance-scale.data.xz"] = b"no xz file"
    with pytest.raises(DataSetAbsentError, match="arrived damaged"):
        ms.datasets.fetch("balance")


def test_set_without_address_is_not_fetched(home, source):
    with pytest.raises(DataSetAbsentError, match=r"Get it from https://github\.com/alphaprime"):
        ms.datasets.fetch("aset400")
    assert not any(path.is_file() for path in home.rglob("*"))


def test_openml_set_is_fetched_once_and_hashed_as_served(home, source, caplog):
    arff = b"@relation r\n@attribute a numeric\n@attribute class {B,L}\n@data\n1,L\n2,B\n"
    source.serve_openml(11, arff, "class", 2)
    assert ms.datasets.fetch("balance") == home / "uci"
    n_asked = len(source.asked)
    X, y = ms.datasets.load("balance")
    ms.datasets.load("balance")
    ms.datasets.fetch("balance")
    assert (X.tolist(), y.tolist()) == ([[1], [2]], [1, 0])
    assert len(source.asked) == n_asked, "neither load nor a second fetch asks the server"
    assert ms.datasets.hash_files("balance") == {
        "openml.org/data/v1/download/11/rows.arff": hashlib.sha256(arff).hexdigest()
    }
    assert "are not those of the kept results" in caplog.text


def test_openml_set_in_a_folder_is_a_shared_one(home, source, tmp_path, monkeypatch):
    arff = b"@relation r\n@attribute a numeric\n@attribute class {b,g}\n@data\n1,g\n"
    source.serve_openml(59, arff, "class", 1)
    assert ms.datasets.fetch("ionosphere", tmp_path / "mine") == tmp_path / "mine/uci"
    assert not ms.datasets.is_present("ionosphere")
    monkeypatch.setenv("MUSICSIM_SHARED_DATA", str(tmp_path / "mine"))
    assert ms.datasets.is_present("ionosphere")
    assert ms.datasets.load("ionosphere")[0].tolist() == [[1]]


def test_without_openml_the_file_at_its_source_is_fetched(home, source, monkeypatch):
    file = DataFile("balance-scale.data", hashlib.sha256(b"B,1\n").hexdigest(), f"{source.address}/uci.data")
    made = DataSet("balance", "Balance", "UCI", "x", "x", folder="uci", files=(file,), fetcher="openml", openml_id=11)
    monkeypatch.setattr("musicsim.datasets.registry._DATA_SETS", (made,))
    source.answers["/uci.data"] = b"B,1\n"
    assert ms.datasets.fetch("balance") == home / "uci"
    assert ms.datasets.load("balance")[0].tolist() == [[1]]


def test_openml_that_fails_is_reported(home, source):
    with pytest.raises(DataSetAbsentError, match=r"ISOLET \(UCI\) could not be fetched by scikit-learn"):
        ms.datasets.fetch("isolet")


def test_cache_is_in_the_users_cache_folder(monkeypatch):
    monkeypatch.delenv("MUSICSIM_DATA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere/cache")
    assert files.data_home() == Path("/somewhere/cache/musicsim/datasets")
