"""The command ``musicsim settings``."""

import json
from typing import Annotated

import typer

from musicsim.cli._console import JsonOption, LibraryOption, emit, open_library


def settings(
    name: Annotated[str | None, typer.Argument(help="A setting; all are listed without one.")] = None,
    value: Annotated[str | None, typer.Argument(help="Its new value.")] = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    trust_cluster: Annotated[
        bool | None,
        typer.Option(
            "--trust-cluster/--no-trust-cluster",
            help="Remember on this machine whether the new cluster is trusted without TLS. Dask exchanges pickles: "
            "whoever controls the scheduler or the network on the way can run code on this machine.",
        ),
    ] = None,
) -> None:
    if trust_cluster is not None and (name != "cluster" or not value):
        raise typer.BadParameter("it goes with an address: settings cluster ADDRESS.", param_hint="--trust-cluster")
    with open_library(library) as lib:
        if name is not None and value is not None:
            try:
                if name == "cluster":
                    _decide_trust(value.strip(), trust_cluster)
                is_text = isinstance(lib.settings.get(name), str)
                lib.set_setting(name, value if is_text else json.loads(value))
            except ValueError as error:  # also an error of json
                raise typer.BadParameter(f"{name} {value}: {error}") from error
        stored = lib.settings
    if name is not None:
        if name not in stored:
            raise typer.BadParameter(f"there is no setting {name}: choose from {', '.join(stored)}")
        stored = {name: stored[name]}
    if as_json:
        emit(stored)
    else:
        for key, setting in stored.items():
            typer.echo(f"{key} {json.dumps(setting)}")


def _decide_trust(address: str, answer: bool | None) -> None:
    """Store the answer whether a cluster is trusted, if there is one.

    Raises BadParameter for an address that is not trusted; ValueError if it is malformed.
    """
    from musicsim.extensions.cluster.pool import UNTRUSTED
    from musicsim.extensions.cluster.trust import is_trusted, needs_trust, trust
    from musicsim.library.processes.pools import check_address

    if not address:
        return
    address = check_address(address)
    if answer is not None:
        trust(address, is_trusted=answer)
    elif needs_trust(address) and not is_trusted(address):
        raise typer.BadParameter(f"{address}: {UNTRUSTED}")
