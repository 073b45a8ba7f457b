"""Tests that clusters on other machines need TLS, or the owner's consent on this machine."""

import json
import shutil
import subprocess

import pytest

from musicsim.errors import LibraryError
from musicsim.explorer import job_process
from musicsim.extensions.cluster.address import is_on_this_machine, is_trusted, needs_trust, trust
from musicsim.extensions.cluster.connection import choosing, cluster_state, use_cluster
from musicsim.extensions.cluster.pool import open_cluster
from tests.command import run, run_process
from tests.simultaneous import count_lost
from tests.sounds import write_collection
from tests.waiting import until

pytest.importorskip("distributed")

from distributed import security

from benchmarks.support.dask_processes import DaskProcesses

ELSEWHERE = "tcp://cluster.example:8786"
_TLS = "DASK_DISTRIBUTED__COMM__TLS__"


@pytest.fixture(autouse=True)
def own_configuration(tmp_path, monkeypatch):
    """Use a folder of the test for the user's configuration."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("MUSICSIM_CLUSTER", "MUSICSIM_TRUST_CLUSTER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def connections(monkeypatch):
    """Record the addresses of connections, without an answer."""
    found = []

    def connect(address, **_):
        found.append(address)
        raise LibraryError("nobody answers")

    monkeypatch.setattr("distributed.Client", connect)
    return found


@pytest.mark.parametrize(
    ("address", "is_here"),
    [
        ("local:4", True), ("tcp://127.0.0.1:8786", True), ("tcp://127.9.9.9:1/", True), ("tcp://[::1]:8786", True),
        ("tcp://localhost:8786", True), ("ws://localhost:8786", True), ("tcp://10.0.0.5:8786", False),
        ("tcp://0.0.0.0:8786", False), ("tcp://localhost.example:8786", False), ("tcp://[fe80::1]:8786", False),
        ("tcp://127.0.0.1.example:8786", False), ("ws://example:80", False), ("", False),
    ],
)  # fmt: skip
def test_recognizes_local_addresses(address, is_here):
    assert is_on_this_machine(address) == is_here


@pytest.mark.parametrize("address", ["tcp://127.0.0.1@a.example:1", "tcp://127.0.0.1:1@a.example:1", "tcp://a b:1"])
def test_rejects_address_with_two_hosts(address, connections):
    with pytest.raises(LibraryError, match="must be the address"), open_cluster(address, is_trusted=True):
        pass
    assert not connections


@pytest.mark.parametrize("address", [ELSEWHERE, "ws://cluster.example:80", "tcp://10.0.0.5:8786"])
def test_untrusted_remote_cluster_is_not_contacted(store, address, connections, monkeypatch):
    monkeypatch.setenv("MUSICSIM_TRUST_CLUSTER", "1")  # trusts the address from the environment only
    store.set_setting("cluster", address)
    for chosen in (None, address):
        with (
            pytest.raises(LibraryError, match=r"is not trusted.*--trust-cluster"),
            choosing(chosen),
            use_cluster(store),
        ):
            pass
    with pytest.raises(LibraryError, match="is not trusted"):
        cluster_state(store)
    job = store.jobs.create("scan", {})
    assert job_process.run(store, job) == "failed"
    assert "is not trusted" in store.jobs.get(job).message
    assert not connections
    with pytest.raises(LibraryError, match="nobody answers"), choosing(None, trusted=True), use_cluster(store):
        pass
    assert connections == [address]


def test_no_simultaneous_trust_is_lost(store):
    def kept(_library, side, number):
        return is_trusted(f"tcp://cluster.example:{1000 + 2 * number + side}")

    def change(_library, side, number):
        trust(f"tcp://cluster.example:{1000 + 2 * number + side}")

    assert count_lost(store.folder, change, n_pairs=50, kept=kept) == 0


def test_trust_is_per_address_and_per_machine(store, connections, tmp_path):
    store.set_setting("cluster", ELSEWHERE)
    assert needs_trust(ELSEWHERE)
    assert not is_trusted(ELSEWHERE)
    trust(ELSEWHERE)
    assert is_trusted(ELSEWHERE)
    assert not is_trusted("tcp://cluster.example:8787")
    with pytest.raises(LibraryError, match="nobody answers"), use_cluster(store):
        pass
    assert not [p for p in store.folder.rglob("*") if "trust" in p.name]
    file = tmp_path / "config" / "musicsim" / "trusted_clusters.json"
    assert json.loads(file.read_text())["addresses"] == [ELSEWHERE]
    for damaged in ("", "[]", "{}", '{"addresses": 7}', "nonsense"):
        file.write_text(damaged)
        assert not is_trusted(ELSEWHERE)
    trust(ELSEWHERE)
    trust(ELSEWHERE, is_trusted=False)
    assert not is_trusted(ELSEWHERE)


def test_environment_can_trust_its_own_cluster(store, connections, monkeypatch):
    monkeypatch.setenv("MUSICSIM_CLUSTER", ELSEWHERE)
    with pytest.raises(LibraryError, match="is not trusted"), use_cluster(store):
        pass
    monkeypatch.setenv("MUSICSIM_TRUST_CLUSTER", "1")
    with pytest.raises(LibraryError, match="nobody answers"), use_cluster(store):
        pass
    assert connections == [ELSEWHERE]


def test_cli_asks_for_trust(tmp_path, connections):
    library = tmp_path / "library"
    asked = "cluster", "status", "--cluster", ELSEWHERE
    _, said = run(*asked, library=library, expect=1)
    assert "--trust-cluster" in said
    assert not connections
    assert "nobody answers" in run(*asked, "--trust-cluster", library=library, expect=1)[1]
    assert len(connections) == 1
    _, said = run("settings", "cluster", ELSEWHERE, library=library, expect=2)
    assert "is not trusted" in " ".join(said.split())
    assert json.loads(run("settings", "cluster", "--json", library=library)[0]) == {"cluster": ""}
    run("settings", "cluster", ELSEWHERE, "--trust-cluster", library=library)
    assert "nobody answers" in run("scan", library=library, expect=1)[1]
    assert len(connections) == 2
    run("settings", "cluster", ELSEWHERE, "--no-trust-cluster", library=library)
    assert "is not trusted" in run("scan", library=library, expect=1)[1]
    assert len(connections) == 2
    run("settings", "shortest_s", "3", "--trust-cluster", library=library, expect=2)


@pytest.mark.parametrize("protocol", ["tls", "wss"])
def test_tls_requires_own_certificates(protocol, connections, tmp_path):
    address = f"{protocol}://cluster.example:8786"
    with pytest.raises(LibraryError, match="TLS needs your own certificates"), open_cluster(address):
        pass
    with (
        security.dask.config.set({"distributed.comm.tls.ca-file": str(tmp_path / "gone.pem"),
                         "distributed.comm.tls.client.cert": str(tmp_path / "gone.pem")}),
        pytest.raises(LibraryError, match="cannot read its certificates"),
        open_cluster(address),
    ):  # fmt: skip
        pass
    assert not connections


def _certificate(folder, name, *signed):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
         "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem", *signed],
        check=True, capture_output=True,
    )  # fmt: skip


@pytest.mark.long
def test_tls_cluster_requires_matching_authority(tmp_path, monkeypatch):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    for authority in ("mine", "other"):
        _certificate(tmp_path, authority)
        signed = ["-CA", tmp_path / f"{authority}.pem", "-CAkey", tmp_path / f"{authority}.key"]
        _certificate(tmp_path, f"node-of-{authority}", *signed)

    def use(authority):
        monkeypatch.setenv(f"{_TLS}CA_FILE", str(tmp_path / f"{authority}.pem"))
        for role in ("SCHEDULER", "WORKER", "CLIENT"):
            monkeypatch.setenv(f"{_TLS}{role}__CERT", str(tmp_path / f"node-of-{authority}.pem"))
            monkeypatch.setenv(f"{_TLS}{role}__KEY", str(tmp_path / f"node-of-{authority}.key"))

    use("mine")
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__DEFAULT_SCHEME", "tls")
    (tmp_path / "dask").mkdir()
    library, music = tmp_path / "library", write_collection(tmp_path / "music", n_songs=1, seconds=2)
    with DaskProcesses(tmp_path / "dask", 1) as dask:
        assert dask.address.startswith("tls://")
        asked = "cluster", "status", "--cluster", dask.address, "--json"
        until(lambda: json.loads(run_process(*asked, library=library)[0])["n_workers"])
        done = run_process("add", music, "--shortest", 1, "--cluster", dask.address, "--json", library=library)
        assert json.loads(done[0])["added"] == 3
        use("other")
        _, said = run_process(*asked, library=library, expect=1)
        assert "no Dask scheduler responds" in said
