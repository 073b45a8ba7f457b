"""Analysis, training grids and evaluation on a Dask cluster."""

from musicsim.hooks import Command, Extension, Section

EXTENSION = Extension(
    name="cluster",
    commands={"cluster": Command("cli:group", "Show the library's Dask cluster.", "Host")},
    command_options={
        "settings": "cli:add_trust_option",
        **dict.fromkeys(("add", "scan", "evaluate", "export"), "cli:add_cluster_option"),
    },
    sections=(Section("library", "page:draw", title="Cluster", tab="cluster", group="Connections", place=75),),
    settings="address:SETTINGS",
    hooks={"pool": "connection:use_cluster"},
)
