"""Old names of public functions: they work for one version, with a warning."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any


def load_renamed(load: Callable[[str], Any], new_names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's ``__getattr__`` that also finds old names; `new_names` maps each one to its new name."""

    def load_by_any_name(name: str) -> Any:
        if name in new_names:
            warnings.warn(f"{name} is called {new_names[name]} now", DeprecationWarning, stacklevel=2)
        return load(new_names.get(name, name))

    return load_by_any_name
