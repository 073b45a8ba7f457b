"""Tests of the cluster in a backup from somebody else."""

import socket
import threading
from contextlib import closing, contextmanager

import pytest

from musicsim.explorer import job_process
from musicsim.extensions.cluster.connection import cluster_of
from musicsim.library import Library
from musicsim.library.archive.backups import back_up, restore
from musicsim.progress import no_progress
from tests.command import run
from tests.sounds import write_collection


@contextmanager
def listening():
    """Run a server on the loopback that only records connections. Yield its port and the connections."""
    connections = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            while True:
                try:
                    client, address = server.accept()
                except OSError:  # the test is over
                    return
                connections.append(address)
                client.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1], connections
        finally:
            with closing(socket.create_connection(server.getsockname())):
                server.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.long
def test_restored_cluster_is_never_contacted(tiny_library, tmp_path):
    pytest.importorskip("distributed")
    victim = tmp_path / "victim"
    music = write_collection(tmp_path / "music", n_songs=1, seconds=2)
    with listening() as (port, connections):
        tiny_library.set_setting("cluster", f"tcp://127.0.0.1:{port}")
        back_up(tiny_library, tmp_path / "gift", no_progress)
        run("restore", tmp_path / "gift", "--yes", library=victim)
        run("scan", library=victim)
        run("add", music, "--shortest", "1", library=victim)
        with Library.open(victim, create=False) as library:
            assert cluster_of(library) == ""
            for kind, arguments in {
                "add": {"paths": [str(music)]}, "scan": {}, "upgrade": {}, "refresh": {"force": True},
            }.items():  # fmt: skip
                job = library.jobs.create(kind, arguments)
                assert job_process.run(library, job) == "done", library.jobs.get(job).message
        assert connections == []


def test_restore_keeps_cluster_of_this_machine(tiny_library, tmp_path):
    tiny_library.set_setting("cluster", "tcp://evil.example:8786")
    back_up(tiny_library, tmp_path / "gift", no_progress)
    with Library.open(tmp_path / "mine") as library:
        library.set_setting("cluster", "local:2")
    for name, cluster in (("new", ""), ("mine", "local:2")):
        restore(tmp_path / "gift", tmp_path / name, no_progress, accept=lambda _: True)
        with Library.open(tmp_path / name, create=False) as library:
            assert cluster_of(library) == cluster
