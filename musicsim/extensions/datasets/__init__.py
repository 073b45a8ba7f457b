"""Public data sets with their labels and official splits, read with mirdata's loaders."""

from musicsim.hooks import Extension

EXTENSION = Extension(
    name="datasets", command_options={"add": "cli:add_dataset_options"}, hooks={"known_faults": "datasets:list_faults"}
)
