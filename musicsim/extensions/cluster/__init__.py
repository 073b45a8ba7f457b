"""Analysis, training grids and evaluation on a Dask cluster."""

from musicsim.hooks import Command, Extension

EXTENSION = Extension(
    name="cluster",
    needs=("distributed",),
    commands={"cluster": Command("cli:group", "Show the Dask cluster that does the work (docs/scale.md).", "Maintain")},
    hooks={"pool": "connection:on_cluster"},
)
