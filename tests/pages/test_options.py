"""Request options on the command line, over HTTP and in the form: the same help, default and limits."""

import json
import re

import pytest
import typer
from streamlit.testing.v1 import AppTest

from musicsim.api.http import http_interface
from musicsim.cli import program
from musicsim.explorer import jobs
from musicsim.explorer.learning.supervision import Coverage
from musicsim.explorer.requests.options import options_of
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.requests.training import TRAINING_KINDS, TrainingRequest
from musicsim.ui.base.frame import PAGES, SHELL
from musicsim.ui.components import coverage
from tests.command import run
from tests.pages.actions import sent
from tests.waiting import PATIENCE_S

WIDGETS = (
    "selectbox", "multiselect", "slider", "select_slider", "number_input", "text_input", "toggle", "checkbox", "radio",
    "button_group",
)  # fmt: skip
BY_CHOICE = {"fits", "does_not_fit", "like", "unlike", "part"}  # on results, by typing, and on the waveform
REQUESTS = {
    PlaylistRequest: ("playlist", "get", "/playlist"),
    SearchRequest: ("similar", "get", "/songs/{song_id}/similar"),
    TrainingRequest: ("train", "post", "/models"),
}


@pytest.fixture(scope="module")
def interface():
    return http_interface().openapi()["paths"]


@pytest.mark.parametrize("request_type", REQUESTS)
def test_command_line_has_every_option_with_help(request_type):
    command = typer.main.get_command(program).commands[REQUESTS[request_type][0]].load()
    params = {param.name: param for param in command.params}
    for field, option in options_of(request_type).items():
        assert params[field].help == option.help + " Can be repeated." * bool(option.many), field
        assert params[field].multiple == bool(option.many), field
        assert (params[field].default or None) == (option.default or None), field


@pytest.mark.parametrize("request_type", REQUESTS)
def test_http_interface_has_every_option_with_help_and_limits(interface, request_type):
    _, method, path = REQUESTS[request_type]
    params = {param["name"]: param for param in interface[path][method]["parameters"]}
    for option in options_of(request_type).values():
        said = params[option.name]
        assert said["description"] == option.help, option.name
        limits = next((part for part in said["schema"].get("anyOf", ()) if "type" in part), said["schema"])
        if option.n_values == 1 and not option.many:
            most = option.max if option.max_asked is None else option.max_asked
            assert (limits.get("minimum"), limits.get("maximum")) == (option.min, most), option.name


def test_upload_search_has_same_options(interface):
    names = {param["name"] for param in interface["/similar"]["post"]["parameters"]}
    assert {option.name for option in options_of(SearchRequest).values()} <= names


def widgets(app: AppTest) -> dict[str, tuple[str, str]]:
    """Return the label and help of every widget by its key."""
    assert not app.exception
    found = [widget for kind in WIDGETS for widget in app.get(kind)]
    # the keys of sliders end with their limits
    keyed = [(re.sub(r"_-?\d+_-?\d+$", "", widget.key), widget) for widget in found if widget.key]
    shown = {key: (widget.proto.label, widget.proto.help) for key, widget in keyed}
    return shown | {box["label"]: (box["label"], box["help"]) for box in sent(app, "find/component")}


def test_playlist_form_has_every_option_with_help(taught):
    taught.add_tags([{"song_id": song.id, "tag": "calm", "weight": 1.0} for song in taught.songs()[:3]])
    app = AppTest.from_file(SHELL, default_timeout=PATIENCE_S).run().switch_page(PAGES["playlist"])
    app.session_state["playlist_along"] = "tempo"  # which shows the direction
    shown = widgets(app.run())
    app.session_state["playlist_by"] = "minutes"
    app.session_state["playlist_not_because"] = ["tag:calm"]  # which shows the reasons left out
    shown |= widgets(app.run())
    app.session_state["research_section"] = "walk"  # which has the seed
    shown |= widgets(app.switch_page(PAGES["research"]).run())
    for field, option in options_of(PlaylistRequest).items():
        key = option.label if option.label in shown else f"playlist_{field}"  # songs are found by typing
        assert shown[key] == (option.label, option.help), field


def test_training_form_has_every_option_with_help(full, monkeypatch):
    monkeypatch.setattr(coverage, "coverage", lambda _: [Coverage(kind, 30, 1.0, "") for kind in TRAINING_KINDS])
    app = AppTest.from_file(SHELL, default_timeout=PATIENCE_S).run().switch_page(PAGES["train"])
    app.session_state["train_section"] = "train"
    app.session_state["train_supervision"], app.session_state["train_details"] = "answers", True
    shown = widgets(app.run())
    for field, option in options_of(TrainingRequest).items():
        assert shown[f"train_{field}"] == (option.label, option.help), field


@pytest.mark.parametrize(
    ("field", "wrong", "said", "arguments", "address"),
    [
        ("surprise", 1.5, "surprise=1.5 must be between 0 and 1.", ("playlist", "--surprise", 1.5), "surprise=1.5"),
        ("prefer", "loud", "prefer='loud' must be one of any", ("playlist", "--prefer", "loud"), "prefer=loud"),
        (
            "years", (1990, 1980), "years=(1990, 1980) must be a lower and an upper bound.",
            ("playlist", "--years", 1990, 1980), "years=1990&years=1980",
        ),
        ("length", 0, "length=0 must be at least 1.", ("playlist", "-n", 0), "length=0"),
    ],
)  # fmt: skip
def test_value_out_of_range_gives_clear_error_everywhere(client, full, field, wrong, said, arguments, address):
    with pytest.raises(ValueError, match=f"^{field}=") as refused:
        PlaylistRequest(**{field: wrong})
    assert str(refused.value).startswith(said)
    _, problem = run(*arguments, library=full.folder, expect=2)
    assert arguments[1] in problem
    assert client.get(f"/api/playlist?{address}").status_code == 422


def test_same_playlist_on_command_line_and_http(client, full):
    told = json.loads(
        run("playlist", "-n", 4, "--seed", 3, "--no-artist", "Artist noise", "--years", 1970, 1990, "--tag",
            "Genre tones", "--tag", "Genre clicks", "--exclude", 1, "--json", library=full.folder)[0]
    )  # fmt: skip
    asked = "length=4&seed=3&no_artist=Artist noise&years=1970&years=1990&tag=Genre tones&tag=Genre clicks&exclude=1"
    answer = client.get(f"/api/playlist?{asked}").json()
    assert [song["id"] for song in answer] == [step["id"] for step in told["songs"]]
    assert {song["artist"] for song in answer} <= {"Artist tones", "Artist clicks"}


def test_same_search_results_on_command_line_and_http(client, full):
    folder = full.songs()[3].folder
    for options, address in (
        (("--no-tag", "Genre noise"), "no_tag=Genre noise"),
        (("--folder", folder, "--per-artist", 0), f"folder={folder}&per_artist=0"),
        (("--seconds", 0, 4.5, "--no-hub-reduction"), "seconds=0&seconds=4.5&hub_reduction=false"),
    ):
        told = json_of(run("similar", 1, "-k", 20, *options, "--json", library=full.folder))
        answer = client.get(f"/api/songs/1/similar?k=20&{address}").json()
        assert [(hit["id"], hit["similarity"]) for hit in answer] == told


def json_of(printed):
    return [(hit["id"], hit["similarity"]) for hit in json.loads(printed[0])]


def test_training_starts_over_http_as_on_page(client, full, monkeypatch):
    started = []
    monkeypatch.setattr(jobs, "start", lambda _, kind, arguments: started.append((kind, arguments)) or 1)
    answer = client.post("/api/models?source=genre&strength=10&use=true&k=3")
    assert (answer.status_code, answer.json()) == (202, {"job": 1, "name": "Genres"})
    wanted = TrainingRequest("genre", C=10.0, k=3, use=True)
    assert started == [("train", wanted.job_arguments("Genres"))]
    refused = client.post("/api/models?source=genre&loss=order")
    assert (refused.status_code, len(started)) == (422, 1)
    assert "works only with answers" in refused.json()["detail"]


def test_job_progress_is_available_over_http(client, full):
    job_id = full.jobs.create("train", {})
    full.jobs.update(job_id, state="done", done=3, total=3)
    told = client.get(f"/api/jobs/{job_id}").json()
    assert (told["kind"], told["state"], told["done"]) == ("train", "done", 3)
    assert client.get("/api/jobs/99").status_code == 404


def test_long_imported_playlist_can_be_regenerated(client, full):
    most = options_of(PlaylistRequest)["length"].max_asked
    assert PlaylistRequest(length=most + 1).length == most + 1, "a long playlist that was imported is drawn again"
    run("playlist", "-n", most + 1, library=full.folder, expect=2)
    assert client.get(f"/api/playlist?length={most + 1}").status_code == 422
