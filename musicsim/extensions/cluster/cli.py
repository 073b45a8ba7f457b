"""Options for a Dask cluster, and the command that shows its state."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import typer

from musicsim.cli import JsonOption, LibraryOption, add_options, emit, open_library
from musicsim.extensions.cluster.address import CLUSTER_VARIABLE, check_address, is_trusted, needs_trust, trust
from musicsim.extensions.cluster.connection import choosing, cluster_state
from musicsim.extensions.cluster.pool import UNTRUSTED

_RISK = "Dask exchanges pickles, so anyone who controls the scheduler or network can run code on this machine."
_Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        envvar=CLUSTER_VARIABLE,
        show_envvar=True,
        help="Dask cluster to run the work on: tcp://10.0.0.5:8786, or local:4 for four workers on this machine.",
    ),
]
_TrustCluster = Annotated[
    bool,
    typer.Option(
        "--trust-cluster", help=f"For this command only, use a cluster on a different machine without TLS. {_RISK}"
    ),
]

group = typer.Typer(no_args_is_help=True)


@group.command()
def status(
    cluster: _Cluster = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    trust_cluster: _TrustCluster = False,
) -> None:
    """Show the cluster's state, its workers and its dashboard.

    Examples:
        musicsim cluster status
        musicsim cluster status --cluster local:4
    """
    with open_library(library, create=True) as lib, choosing(cluster, trusted=trust_cluster):
        state = cluster_state(lib)
    if as_json:
        emit(asdict(state))
        return
    typer.echo(state.summary)
    if state.dashboard:
        typer.echo(f"dashboard: {state.dashboard}")


group.callback()(lambda: None)  # without a callback, Typer would drop the name of the only command


@add_options
def add_cluster_option(
    command: Callable[..., None], *, cluster: _Cluster = None, trust_cluster: _TrustCluster = False, **values: Any
) -> None:
    with choosing(cluster, trusted=trust_cluster):
        command(**values)


@add_options
def add_trust_option(
    command: Callable[..., None],
    *,
    trust_cluster: Annotated[
        bool | None,
        typer.Option(
            "--trust-cluster/--no-trust-cluster",
            help=f"Save on this machine whether the new cluster is trusted without TLS. {_RISK}",
        ),
    ] = None,
    **values: Any,
) -> None:
    """Run `musicsim settings`, but reject the address of a cluster that is not trusted."""
    name, value = values["name"], values["value"]
    if trust_cluster is not None and (name != "cluster" or not value):
        raise typer.BadParameter("use this option only with settings cluster ADDRESS.", param_hint="--trust-cluster")
    if name == "cluster" and value and value.strip():
        try:
            address = check_address(value)
        except ValueError as error:
            raise typer.BadParameter(f"{name} {value}: {error}") from error
        if trust_cluster is not None:
            trust(address, is_trusted=trust_cluster)
        elif needs_trust(address) and not is_trusted(address):
            raise typer.BadParameter(f"{address}: {UNTRUSTED}")
    command(**values)
