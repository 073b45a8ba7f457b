"""The facts about the map over HTTP: colors, models and counts, as the library has them."""

from musicsim.explorer.snapshot.map_columns import colors_offered
from musicsim.explorer.snapshot.snapshot import snapshot_under


def test_facts_are_those_of_the_library(client, tiny_library):
    answer = client.get("/api/map").json()
    snapshot = snapshot_under(tiny_library, None)
    assert answer["colors"] == colors_offered(snapshot)
    assert answer["models"] == [{"id": one.id, "name": one.name} for one in tiny_library.models.all()]
    native = tiny_library.models.native()
    assert answer["model"] == {"id": native.id, "name": native.name}
    assert answer["is_native"]
    assert (answer["n_songs"], answer["n_indexed"]) == (len(tiny_library.songs()), snapshot.n_indexed)
    assert (answer["n_duplicates"], answer["n_waiting"]) == (0, 0)
    for color in answer["colors"]:
        assert client.get(f"/maps/{native.id}/{color}").status_code == 200


def test_other_model_is_named(client, tiny_library):
    answer = client.get("/api/map?model=Codewords").json()
    assert (answer["model"]["name"], answer["is_native"]) == ("Codewords", False)
    assert client.get("/api/map?model=none").status_code == 404


def test_songs_without_place_are_counted(client, tiny_library, monkeypatch):
    first = client.get("/api/map").json()
    with tiny_library.write() as connection:
        connection.exec_driver_sql("UPDATE files SET missing_since = 1 WHERE song_id IN (3, 4)")
    after = client.get("/api/map").json()
    assert (after["n_songs"], after["n_indexed"]) == (first["n_songs"] - 2, first["n_indexed"] - 2)


def test_visitors_see_no_folders(client, monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    answer = client.get("/api/map")
    assert answer.status_code == 200
    assert "folder" not in answer.json()["colors"]
