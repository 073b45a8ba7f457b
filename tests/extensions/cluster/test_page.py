"""Tests of the cluster on the Library page."""

from musicsim.extensions.cluster.address import is_trusted
from tests.pages.actions import open_page, said


def test_cluster_can_be_set_checked_and_rejected(full):
    app = open_page("library", "cluster")
    assert app.button(key="check_cluster").disabled, "there is none to be checked"
    app.text_input(key="setting_cluster").set_value("local:2").run()
    assert full.settings["cluster"] == "local:2"
    app.button(key="check_cluster").click().run()
    assert "these workers run on this machine, but only during a scan" in said(app)
    app.text_input(key="setting_cluster").set_value("nowhere").run()
    assert full.settings["cluster"] == "local:2"
    assert "address of a Dask scheduler" in app.toast[0].value


def test_remote_cluster_requires_ticked_trust_box(full, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    address, other = "tcp://cluster.example:8786", "tcp://other.example:8786"
    app = open_page("library", "cluster")
    app.text_input(key="setting_cluster").set_value(address).run()
    app.button(key="check_cluster").click().run()
    assert "is not trusted" in app.error[0].value
    box = app.checkbox(key=f"trust_cluster_{address}")
    assert not box.value
    assert "can run code on this machine" in box.help
    box.check().run()
    assert is_trusted(address)
    app.text_input(key="setting_cluster").set_value(other).run()
    assert not app.checkbox(key=f"trust_cluster_{other}").value, "trust is of an address"
    app.text_input(key="setting_cluster").set_value(address).run()
    app.checkbox(key=f"trust_cluster_{address}").uncheck().run()
    assert not is_trusted(address)
    app.text_input(key="setting_cluster").set_value("local:2").run()
    assert not [box for box in app.checkbox if box.key and box.key.startswith("trust_cluster")]
