"""Options of ``musicsim add`` for a public data set."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from musicsim.cli import add_options, open_library, warn
from musicsim.extensions.datasets.datasets import label_songs, read_dataset
from musicsim.wording import count


@add_options
def add_dataset_options(
    command: Callable[..., None],
    *,
    mirdata: Annotated[
        str | None,
        typer.Option(
            help="Add a data set with its labels and official split. Use the name in mirdata, such as gtzan_genre.",
            metavar="NAME",
        ),
    ] = None,
    data_home: Annotated[
        Path | None, typer.Option(help="The data set's folder (mirdata's data_home).", metavar="FOLDER")
    ] = None,
    mirdata_version: Annotated[
        str, typer.Option(help="Version of the data set's index.", metavar="VERSION")
    ] = "default",
    **values: Any,
) -> None:
    """Add music, or a data set's files with their labels."""
    if mirdata is None:
        command(**values)
        return
    if values["sources"] or data_home is None:
        raise typer.BadParameter("--mirdata needs only --data-home, the data set's folder: name no other folders.")
    tracks = read_dataset(mirdata, data_home.expanduser(), mirdata_version)
    failed = None
    try:
        command(**values | {"sources": tracks.folders, "anyway": True})
    except typer.Exit as error:  # some files failed
        failed = error
    with open_library(values["library"]) as library:
        label_songs(library, tracks)
    if tracks.parts and not values["as_json"]:
        typer.echo(f"The data set has an official split. To use it: musicsim evaluate --split {mirdata}")
    if tracks.n_absent:
        warn("missing", f"{count(tracks.n_absent, 'file')} of {mirdata}.")
    if failed is not None:
        raise failed
