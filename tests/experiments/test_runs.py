"""Experiments and benchmarks run with tiny settings and report rows and claims; the others are named with a reason."""

from dataclasses import asdict
from functools import partial

import numpy as np
import pytest

from benchmarks.support.report import Claim
from experiments import letor
from experiments.support.audio import LEARNED, PPK
from experiments.support.results import ROOT
from experiments.verdict import PLANTED, Verdict
from musicsim.datasets import load
from tests.experiments.test_feedback import made_up
from tests.experiments.test_letor import TINY as TINY_GRIDS
from tests.experiments.test_letor import fold
from tests.experiments.test_playlists import tiny

REPORT = ["name", "date", "commit", "machine", "inputs", "settings", "differs", "rows", "claims"]
SONGS = {"splits": 2, "max_cuts": 20}


def not_installed(*_):
    raise ImportError


TINY = {
    "experiments.admm": {"SHORT": {"splits": 1, "steps": (1, 10), "Cs": (100.0,), "max_cuts": 5}, "_CODEWORDS": 16},
    "experiments.annotation": {"SHORT": {"splits": 2, "max_cuts": 3}, "_CODEWORDS": 16},
    "experiments.audio": {
        "SHORT": SONGS | {"Cs": (1.0, 30.0), "codewords": (32,), "taus": (2,), "most_songs": None},
        "experiments.support.audio.LOCAL": ((4, 16.0, 0.25, 0.1),),
    },
    "experiments.audio_kernels": {
        "SHORT": SONGS | {"codewords": 16, "n_comparisons": 100, "Cs": (10.0,), "max_iter": 50, "max_cuts": 10},
    },
    "experiments.blind_radio": {"N_SONGS": 400, "N_RUNS": 50},
    "experiments.codewords": {
        "PROTOCOL": SONGS | {"Cs": (10.0,), "max_cuts": 5, "codewords": (1024,), "taus": (1, 4)},
    },
    "experiments.feedback": {"load": lambda: made_up(100), "MARKS": (1, 15)},
    "experiments.letor": {
        "SHORT": asdict(TINY_GRIDS),
        "folds": lambda _: iter([fold()]), "lambdarank": not_installed, "gbrt": not_installed,
    },
    "experiments.listening_test": {"DRAWS": 2, "DIFFERENCES": (0.0, 15.0)},
    "experiments.order_synthetic": {
        "PROTOCOL": {"n_songs": 15, "n_new": 5, "n_listed": 4, "n_tested": 100, "draws": 2, "max_iter": 20},
        "CS": (100.0,),
    },
    "experiments.playlists": {
        "SHORT": {"yes_small": 1, "yes_big": 1, "demo": 2},
        "LOADERS": {"yes_small": lambda: tiny(np.random.default_rng(0), "yes_small")},
    },
    "experiments.playlists without data": {"SHORT": {"yes_small": 1, "demo": 1}},
    "experiments.noise": {
        "SETS": {"Wine": partial(load, "wine"), "Ionosphere": partial(load, "ionosphere")},
        "SHORT": {
            "splits": 1, "noise": (0, 64), "Cs": (1.0,), "max_cuts": 5, "counting_cuts": 3, "subgradient_up_to": 0,
            "mus": (0.5,), "gammas": (1.0,), "lmnn_max_iter": 5,
        },
    },
    "experiments.pooling": {"N_SIMULATED": {False: 20}},
    "experiments.reasons": {"N_PLAYLISTS": {False: 10}},
    "experiments.sampled_queries": {"SIZES": (40,), "N_SEEDS": 1},
    "experiments.spill": {"N_ROWS": 600, "N_QUERIES": 20, "experiments.support.song_vectors.TRAINING_SONGS": 1000},
    "experiments.uci": {
        "SETS": {"Wine": partial(load, "wine"), "Ionosphere": partial(load, "ionosphere")},
        "SHORT": {
            "splits": 2, "Cs": (10.0,), "max_cuts": 5, "choosing_cuts": 3, "mlcc_max_iter": 5, "lmnn_max_iter": 5,
            "lmnn_regularization": (0.5,),
        },
    },
    "experiments.verdict": {
        "judge_once": lambda what, method, _, seed: Verdict(
            what == PLANTED or (method == "quick" and seed < 4), None if method == "automatic" else True
        ),
    },
    "benchmarks.rules": {"_SONGS": 300},

}  # fmt: skip
"""By script: constants of its module. Dataclasses are changed in some fields; a dotted name is in another module."""
ABSENT = {
    " is absent. ": (
        "descriptors", "feedback", "hashing", "hashing_tables", "letor", "real_listeners", "stemming", "subgraphs",
    ),
    "--library": ("albums", "factors", "several_examples"), "--labels": ("public_judgments",),
    "--music": ("sound_changes",), "MUSICSIM_DEBIAN_MIRROR": ("real_learning", "real_music", "small_mlr"),
    "audio.onnx is missing": ("text_search",),
}  # fmt: skip
"""By a part of the message: experiments that cannot run without data."""
LEFT_OUT = {
    "starts servers, browsers or processes": (
        "clicks", "cluster", "codebook", "demo_server", "first_steps", "hostile_visitors", "live_mixing", "milvus",
        "pages", "playlist", "relevance", "servers", "snapshot", "start", "training", "visitors",
    ),
    "sizes are fixed; the parts are tested": (
        "extraction", "hamming", "ingest", "lgmml", "many_files", "mlr", "order", "scale", "search", "ten_million",
    ),
    "minutes of sound; the parts are tested": ("audible", "demo", "duplicates", "mixing", "robustness"),
    "real music; test_peers and test_real_music run the parts": ("ear", "families", "station"),
    "public data in several forms; the parts are tested": (
        "coherence", "continuation", "listeners", "local_metrics", "shuffled_evidence", "taste_bands", "two_ears",
    ),
}  # fmt: skip


def check_audio(rows, _):
    ppk = {row["learning"]: row for row in rows if row["representation"] == PPK and not row["mutual proximity"]}
    assert set(ppk) == {"native", *LEARNED}
    assert ppk["native"]["AUC"] > 0.9, "a third of the artists is of a query's kind: no ear mixes them up"
    assert next(row["thesis AUC"] for row in rows if (row["representation"], row["learning"]) == (PPK, "MLR")) == 0.808


def check_audio_kernels(rows, _):
    alone = {row["kernels"]: row for row in rows if row["combination"] == "alone"}
    assert alone["timbre"]["AUC"] > 0.9, "timbre tells tones, noise and clicks apart"
    assert {"tags", "plays"} <= alone.keys()


def check_feedback(rows, _):
    assert rows[1]["both"] > rows[1]["before"], "the songs differ in what nobody asks for"


def check_letor(rows, claims):
    of_test = {row["method"]: row for row in rows if row["data"] == "made up"}
    assert len(of_test) == 14
    assert of_test[letor.LINEAR]["NDCG@10"] > 0.9, "a column is all there is to find"
    assert of_test[letor.AS_PRINTED]["paper, MSLR-WEB10K"] == 0.5390
    assert of_test[letor.TREES]["chosen"] == "lightgbm is not installed"
    assert all((claim["value"] is None) == ("LightGBM" in claim["claim"]) for claim in claims)


def check_playlists(rows, claims):
    assert {row["collection"] for row in rows if "collection" in row} == {"yes_small", "demo"}
    measured = {claim["claim"].partition(":")[0] for claim in claims if claim["value"] is not None}
    assert measured == {"yes_small", "demo"}, "yes_big is absent"


def check_sampled_queries(rows, claims):
    assert [row["cuts"] for row in rows] == [10, 20, 50, 200]
    assert all(0.0 <= row["least"] <= row["most"] for row in rows)
    assert claims[0]["value"] == max(row["most"] for row in rows[1:])


def check_spill(rows, _):
    sizes = {(row["rule"], row["tau"], row["depth"]): row["rows examined"] for row in rows if "depth" in row}
    assert sizes["pca", 0.0, 5] == pytest.approx(600 / 32, abs=1)


def check_wine_only(rows, _):
    assert {row["set"] for row in rows} == {"Wine"}, "it comes with scikit-learn; the others are absent"


def check_verdict(rows, claims):
    assert [claim["claim"] for claim in claims if not claim["holds"]] == ["quick: share of false “Better”"]
    assert all(row["better"] == row["runs"] for row in rows if row["evidence"] == PLANTED)
    assert {row["before"] for row in rows if row["method"] == "automatic"} == {None}


CHECKS = {
    "experiments.audio": check_audio, "experiments.audio_kernels": check_audio_kernels,
    "experiments.feedback": check_feedback, "experiments.letor": check_letor, "experiments.playlists": check_playlists,
    "experiments.sampled_queries": check_sampled_queries, "experiments.spill": check_spill,
    "experiments.verdict": check_verdict, "experiments.uci": check_wine_only, "experiments.noise": check_wine_only,
}  # fmt: skip
"""By script: what the rows of these songs must say."""


@pytest.mark.parametrize("name", TINY)
def test_script_reports_rows_and_claims(run_script, name):
    report = run_script(name.partition(" ")[0], TINY[name])
    assert list(report) == REPORT
    assert name.partition(" ")[0].endswith(f".{report['name']}")
    assert report["settings"].keys() >= {"seed", "protocol", "seconds"}
    assert all(report["rows"])
    assert report["rows"]
    assert report["claims"]
    for claim in report["claims"]:
        assert claim.keys() == Claim.__dataclass_fields__.keys()
        assert isinstance(claim["holds"], bool)
        assert claim["value"] is not None or not claim["holds"], "what was not measured does not hold"
    if name in CHECKS:
        CHECKS[name](report["rows"], report["claims"])


@pytest.mark.parametrize("name", ["blind_radio", "listening_test", "pooling"])
def test_seed_determines_rows(run_script, name):
    script = f"experiments.{name}"
    first, again, other = (run_script(script, TINY[script], f"--seed={seed}")["rows"] for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(("name", "said"), [(name, said) for said, names in ABSENT.items() for name in names])
def test_missing_data_is_named_and_no_claim_holds(run_script, tmp_path, name, said):
    has_cache = said in ("MUSICSIM_DEBIAN_MIRROR", "audio.onnx is missing")
    report = run_script(f"experiments.{name}", {}, *([f"--cache={tmp_path}"] if has_cache else []))
    assert report["rows"] == []
    assert said in report["settings"]["data"]
    assert not any(claim["holds"] for claim in report["claims"])


def test_every_script_runs_here_or_is_named():
    scripts = [path for package in ("experiments", "benchmarks") for path in (ROOT / package).glob("*.py")]
    reporting = [
        path.stem for path in scripts if "benchmarks.support.report import" in path.read_text(encoding="utf-8")
    ]
    run = {name.partition(" ")[0].partition(".")[2] for name in TINY}
    listed = [name for names in [*ABSENT.values(), *LEFT_OUT.values()] for name in names if name not in run]
    assert sorted([*run, *listed]) == sorted(reporting)
