"""Tests of the decoding queue: order, slots, and processes that hang, use too much memory, crash or are killed."""

import os
import signal
import time
from functools import partial
from multiprocessing import active_children
from pathlib import Path

import pytest

from musicsim.errors import AudioError, AudioTooShortError
from musicsim.library.processes.decoding import Decoder, DecodingDroppedError
from musicsim.library.processes.workers import Limits
from musicsim.rounds import network_of
from tests.waiting import HANG_S, PATIENCE_S, outcome, until

LIMITS = Limits(seconds=PATIENCE_S, memory_mb=1024)


def own_pid():
    """Return the id of the worker process."""
    return os.getpid()


def wait_for(path: Path):
    """Signal the start from a worker, then stay busy until a file appears."""
    Path(f"{path}.pid").write_text(str(os.getpid()))
    until(path.exists)


def swell():
    """Allocate too much memory in a worker."""
    return len(bytearray(8 << 30))


def too_short():
    """Raise the error of a file that is too short, in a worker."""
    raise AudioTooShortError("x.wav is too short.")


def surprise():
    """Raise an unexpected error in a worker."""
    raise KeyError("on purpose")


@pytest.fixture
def decoder():
    decoder = Decoder(n_workers=1)
    yield decoder
    decoder.close()


def ask(decoder, function, *args, limits=LIMITS, **options):
    return decoder.ask(lambda run: run(function, *args), name="x.mp3", limits=limits, **options)


def busy(decoder, path, **options):
    """Start work that lasts until the path exists. Return it with the id of its process."""
    decoding = ask(decoder, wait_for, path, **options)
    told = Path(f"{path}.pid")
    until(lambda: decoding.wait(0.0) or (told.exists() and told.read_text()))
    return decoding, int(told.read_text())


def test_worker_process_is_reused(decoder):
    first, second = (outcome(ask(decoder, own_pid)) for _ in range(2))
    assert first == second
    assert first != os.getpid()


def test_queue_is_fifo_with_urgent_first_and_positions(decoder, tmp_path):
    done = []
    first, _ = busy(decoder, tmp_path / "go")
    line = [decoder.ask(partial(lambda name, run: done.append(name), name), name=name, limits=LIMITS) for name in "abc"]
    assert [d.n_ahead for d in (first, *line)] == [0, 1, 2, 3]
    line[1].drop()
    assert line[2].n_ahead == 2, "who has left is nobody's place"
    songs = [
        decoder.ask(partial(lambda name, run: done.append(name), name), name=name, limits=LIMITS, is_urgent=True)
        for name in ("song", "next song")
    ]
    assert [d.n_ahead for d in (*songs, line[0])] == [1, 2, 3]
    (tmp_path / "go").touch()
    until(lambda: sum(d.wait(0.0) for d in (*songs, *line)) == 5)
    assert done == ["song", "next song", "a", "c"]
    with pytest.raises(DecodingDroppedError, match="b: canceled because nobody was waiting"):
        line[1].future.result()
    assert line[2].n_ahead == 0


def test_visitors_take_turns(decoder, tmp_path):
    done = []
    first, _ = busy(decoder, tmp_path / "go", visitor="many")

    def of(visitor, name, **options):
        work = partial(lambda name, run: done.append(name), name)
        return decoder.ask(work, name=name, limits=LIMITS, visitor=visitor, **options)

    many = [of("many", f"many {i}") for i in range(3)]
    own = of("", "the app's own")
    few = [of("few", f"few {i}") for i in range(2)]
    urgent = of("many", "urgent", is_urgent=True)
    line = [urgent, own, few[0], few[1], many[0], many[1], many[2]]
    assert [decoding.n_ahead for decoding in line] == [1, 2, 3, 4, 5, 6, 7]
    (tmp_path / "go").touch()
    until(lambda: all(decoding.wait(0.0) for decoding in (first, *line)))
    assert done == ["urgent", "the app's own", "few 0", "many 0", "few 1", "many 1", "many 2"]


def test_short_files_come_before_the_rest_of_long_files(decoder, tmp_path):
    done = []
    first, _ = busy(decoder, tmp_path / "go")

    def of(visitor, *, is_long):
        def work(run):
            done.append(f"rest of {visitor}")

        def short_work(run):
            done.append(visitor)
            return None if is_long else visitor

        return decoder.ask(work, short_work=short_work, name=visitor, limits=LIMITS, visitor=visitor)

    names = [f"{i}" for i in range(12)]
    line = [of(name, is_long=True) for name in names]
    clip = of("other", is_long=False)
    assert clip.n_ahead == 13
    (tmp_path / "go").touch()
    until(lambda: all(decoding.wait(0.0) for decoding in (first, *line, clip)))
    assert done == [*names, "other", *(f"rest of {name}" for name in names)]
    assert clip.future.result() == "other"


def test_rest_of_long_files_leaves_one_worker_free(tmp_path):
    decoder = Decoder(n_workers=2)
    try:
        held = [
            decoder.ask(
                lambda run, path=tmp_path / name: run(wait_for, path), short_work=lambda run: None, name=name,
                limits=LIMITS, visitor=name,
            )
            for name in ("one", "two")
        ]  # fmt: skip
        until(lambda: (tmp_path / "one.pid").exists() or (tmp_path / "two.pid").exists())
        for _ in range(3):
            assert outcome(ask(decoder, own_pid, visitor="other"))
        assert sum((tmp_path / f"{name}.pid").exists() for name in ("one", "two")) == 1
        for name in ("one", "two"):
            (tmp_path / name).touch()
        until(lambda: all(decoding.wait(0.0) for decoding in held))
    finally:
        for name in ("one", "two"):
            (tmp_path / name).touch()
        decoder.close()


def test_networks_of_one_site_take_turns_as_one_if_line_is_long(decoder, tmp_path):
    done = []
    first, _ = busy(decoder, tmp_path / "go")

    def of(visitor):
        work = partial(lambda visitor, run: done.append(visitor), visitor)
        return decoder.ask(work, name="x", limits=LIMITS, visitor=visitor)

    site = [network_of(f"2001:db8:0:{i:x}::1") for i in range(20)]
    line = [of(visitor) for visitor in [*site, "192.0.2.1"]]
    (tmp_path / "go").touch()
    until(lambda: all(decoding.wait(0.0) for decoding in (first, *line)))
    assert done.index("192.0.2.1") == 1
    assert sorted(done) == sorted([*site, "192.0.2.1"])


def test_dropped_decoding_is_stopped_while_running(decoder, tmp_path):
    left, pid = busy(decoder, tmp_path / "never")
    left.drop()
    with pytest.raises(DecodingDroppedError):
        outcome(left)
    assert outcome(ask(decoder, own_pid)) != pid


def test_killed_worker_gives_clear_error_for_its_file(decoder, tmp_path):
    hostile, pid = busy(decoder, tmp_path / "never")
    behind = ask(decoder, own_pid)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(AudioError, match=r"^x\.mp3: the decoder crashed \(exit code -9\)\. Re-encode the file\.$"):
        outcome(hostile)
    assert outcome(behind) != pid


@pytest.mark.long
def test_worker_killed_while_idle_affects_nothing(decoder):
    for pause in (0.0, 0.05, 0.5):  # before and after its death is noticed
        pid = outcome(ask(decoder, own_pid))
        os.kill(pid, signal.SIGKILL)
        time.sleep(pause)
    assert outcome(ask(decoder, own_pid)) != pid


@pytest.mark.long
def test_worker_killed_on_arrival_fails_at_most_one_file(decoder):
    pid = outcome(ask(decoder, own_pid))
    for _ in range(5):
        work = [ask(decoder, own_pid) for _ in range(3)]
        os.kill(pid, signal.SIGKILL)
        until(lambda work=work: sum(w.wait(0.0) for w in work) == 3)
        came = [w.future.exception() for w in work]
        assert sum(error is not None for error in came) <= 1
        pid = outcome(ask(decoder, own_pid))


@pytest.mark.parametrize(
    ("function", "args", "limits", "words"),
    [
        (time.sleep, (HANG_S,), Limits(1.0, 1024), "x.mp3: decoding took more than 1 s and was stopped. Shorten"),
        (swell, (), LIMITS, "x.mp3: decoding took more than 1024 MB of memory and was stopped. Re-encode"),
        (too_short, (), LIMITS, "x.wav is too short."),
        (surprise, (), LIMITS, "x.mp3: KeyError: 'on purpose'"),
    ],
)
def test_failure_gives_clear_error_and_next_file_works(decoder, function, args, limits, words):
    with pytest.raises(AudioError) as told:
        outcome(ask(decoder, function, *args, limits=limits))
    assert str(told.value).startswith(words)
    assert outcome(ask(decoder, own_pid))


def test_worker_environment_does_not_leak_into_jobs(decoder, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    outcome(ask(decoder, own_pid))
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def test_closing_drops_queue_and_leaves_no_process(tmp_path):
    before = set(active_children())
    decoder = Decoder(n_workers=2)
    work = [busy(decoder, tmp_path / "go")[0], busy(decoder, tmp_path / "go2")[0]]
    waiting = ask(decoder, own_pid)
    for name in ("go", "go2"):
        (tmp_path / name).touch()
    decoder.close()
    assert all(w.future.exception(0) is None for w in work)
    assert waiting.future.done()
    assert set(active_children()) <= before
