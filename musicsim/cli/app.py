"""The ``musicsim app`` command: start the app's server and open the browser."""

import os
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer
import uvicorn

from musicsim.api.connections import FairProtocol, PatientProtocol
from musicsim.api.token_gate import VARIABLE, load_token
from musicsim.cli.addresses import is_open_to_others, listen, urls
from musicsim.cli.console import JsonOption, LibraryOption, report
from musicsim.errors import MusicsimError
from musicsim.explorer import default_folder, jobs
from musicsim.explorer.libraries import library_folders
from musicsim.library import Library
from musicsim.library.stores.jobs import Job
from musicsim.public import find_answers_folder, is_public
from musicsim.storage import writing_to

_UI = Path(__file__).resolve().parents[1] / "ui"
_MAX_MESSAGE = 25_000_000  # bytes; Streamlit's limit
_MAX_MESSAGE_OF_VISITORS = 1_000_000
_MAX_CONNECTIONS = 2_000  # simultaneous connections from visitors; further requests get status 503
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME")
_PATIENCE_S = 30  # a browser tab in the background, or a busy machine, may be slow
_LAST_ANSWERS_S = 3  # time to finish responses at shutdown; a paused song keeps its connection open
_PUBLIC = "A public demonstration: visitors can listen and search, but not edit."
_COMPOSING = "12 demo songs arrive within seconds. 348 more are composed meanwhile, in one to two minutes."
_MAY = "can listen to, change and delete the library, and read music files on this machine"
_WITH_TOKEN = f"Anyone who has this address {_MAY}. To make a new one, add --new-token."
_WITHOUT_TOKEN = f"Anyone who can reach this address {_MAY}: restrict access with a firewall."


def _prepare_for_visitors(keep_answers: Path | None) -> None:
    # fail now if the library is missing or cannot be opened
    Library.open(default_folder(), create=False).close()
    os.environ["MUSICSIM_PUBLIC"] = "1"
    if keep_answers is not None:
        os.environ["MUSICSIM_KEEP_ANSWERS"] = str(keep_answers.expanduser().absolute())
    if (folder := find_answers_folder()) is not None:
        with writing_to(folder):
            folder.mkdir(parents=True, exist_ok=True)


def _make_server(*, public: bool) -> uvicorn.Server:
    os.chdir(_UI)  # Streamlit looks here for .streamlit/config.toml
    from musicsim.ui.app import make_app  # imports Streamlit, which reads the environment and the settings

    # `streamlit run` listens on one address only, IPv4 or IPv6
    return uvicorn.Server(
        uvicorn.Config(
            make_app(),
            http=FairProtocol if public else PatientProtocol,
            limit_concurrency=_MAX_CONNECTIONS if public else None,
            ws_max_size=_MAX_MESSAGE_OF_VISITORS if public else _MAX_MESSAGE,
            ws_per_message_deflate=False,  # on one machine, compressing takes more time than it saves
            ws_ping_interval=_PATIENCE_S,
            ws_ping_timeout=_PATIENCE_S,
            timeout_graceful_shutdown=_LAST_ANSWERS_S,
            log_level="warning",
            log_config=None,  # use our handlers
        )
    )


def _start_demo() -> bool:
    """Start composing the demo if the library is empty and another window has not started it."""
    with Library.open(default_folder()) as library:
        return len(library) == 0 and jobs.current(library) is None and jobs.start(library, "demo") > 0


def _running_jobs() -> Iterator[Job]:
    for folder in library_folders():
        with suppress(MusicsimError), Library.open(folder, create=False) as library:
            if (job := jobs.current(library)) is not None:
                yield job


def run_app(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    host: Annotated[
        str | None,
        typer.Option(
            help="Listen on this address (0.0.0.0 for all), so that other machines can use the app. By default, only "
            "this machine can.",
            metavar="ADDRESS",
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(help="Port to serve the app on; if it is in use, the next free port is used.", min=1, max=65535),
    ] = 8501,
    token: Annotated[
        bool, typer.Option(help="With --host: ask other machines for the token in the printed address.")
    ] = True,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Create a new token; the old token becomes invalid.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="An additional host name of the app, such as the name of a reverse proxy.", metavar="NAME"),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
    demo: Annotated[bool, typer.Option("--demo", help="Compose the demo if the library is empty.")] = False,
    public: Annotated[
        bool,
        typer.Option(
            "--public", help="Serve a demonstration: visitors can listen, search and generate playlists, but not edit."
        ),
    ] = False,
    keep_answers: Annotated[
        Path | None,
        typer.Option(
            help="With --public: save visitors' answers to comparisons in this folder, without "
            "names; `musicsim answers import` reads them.",
            metavar="FOLDER",
        ),
    ] = None,
) -> None:
    """Examples:
    musicsim app
    musicsim app --library ~/jazz --port 8600 --no-browser
    """
    sockets = listen(host, port)
    names = [os.environ.get("MUSICSIM_ALLOWED_HOSTS", ""), *(allow_host or ())]
    if host and host not in {one.getsockname()[0] for one in sockets}:  # a host name, not a numeric address
        names.append(host)
    os.environ |= {
        "MUSICSIM_LIBRARY": str(library.expanduser().absolute() if library else default_folder()),
        "MUSICSIM_ALLOWED_HOSTS": ",".join(names),
        "STREAMLIT_SERVER_PORT": str(sockets[0].getsockname()[1]),
    }
    public = public or is_public()
    if public:
        _prepare_for_visitors(keep_answers)
    needs_token = not public and (new_token or os.environ.get(VARIABLE) or (token and is_open_to_others(sockets)))
    if needs_token:
        os.environ[VARIABLE] = load_token(new=new_token)
    else:
        os.environ.pop(VARIABLE, None)
    is_composing = demo and not public and _start_demo()  # first, because importing the server takes seconds
    server = _make_server(public=public)
    addresses = [f"{url}/?token={quote(os.environ[VARIABLE])}" if needs_token else url for url in urls(host, sockets)]
    sentences = [f"musicsim is running at {' and '.join(addresses)}; press Ctrl+C to stop it."]
    if public:
        sentences.append(_PUBLIC)
    elif needs_token or is_open_to_others(sockets):
        sentences.append(_WITH_TOKEN if needs_token else _WITHOUT_TOKEN)
    if is_composing:
        sentences.append(_COMPOSING)
    report({"addresses": addresses, "notes": sentences[1:]}, "\n".join(sentences), as_json=as_json)
    # without a screen, Python would start a text browser
    if browser and (sys.platform != "linux" or any(os.environ.get(name) for name in _SCREENS)):
        threading.Thread(target=webbrowser.open, args=(addresses[0],), daemon=True).start()
    with suppress(KeyboardInterrupt):
        server.run(sockets)
    for job in () if public else _running_jobs():
        title = jobs.job_kinds()[job.kind].title
        sentence = f"{title} continues without the app; to cancel it, start the app again and click Cancel."
        report({"continues": job.kind}, sentence, as_json=as_json)
