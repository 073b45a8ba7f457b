"""The Dask cluster that scans run on."""

from dataclasses import asdict

import typer

from musicsim.cli._console import ClusterOption, JsonOption, LibraryOption, TrustClusterOption, emit, open_library

group = typer.Typer(no_args_is_help=True)


def status(
    cluster: ClusterOption = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    trust_cluster: TrustClusterOption = False,
) -> None:
    """Show whether the cluster answers, what its workers have, and where its dashboard is."""
    from musicsim.extensions.cluster.connection import cluster_state

    with open_library(library, create=True) as lib:
        state = cluster_state(lib, cluster, trusted=trust_cluster)
    if as_json:
        emit(asdict(state))
        return
    typer.echo(state.words)
    if state.dashboard:
        typer.echo(f"dashboard: {state.dashboard}")


group.command()(status)
group.callback()(lambda: None)  # with one command alone, its name would not be asked for
