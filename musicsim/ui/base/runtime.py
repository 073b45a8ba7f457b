"""The parts of Streamlit's runtime that have no public name; a new version of Streamlit may change them."""

from collections.abc import Mapping
from typing import Any, cast

from streamlit import config
from streamlit.delta_generator import DeltaGenerator as Container
from streamlit.delta_generator_singletons import context_dg_stack, get_default_dg_stack_value
from streamlit.runtime import get_instance
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

__all__ = ["Container", "is_history_navigation", "leave_containers", "set_options", "uploads_of"]


def is_history_navigation() -> bool:
    """Return whether Back or Forward started this run of the script."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def leave_containers() -> None:
    """Draw in the page itself: in Streamlit 1.67, a run after that of a fragment stays in the fragment's container."""
    context_dg_stack.set(get_default_dg_stack_value())


def set_options(options: Mapping[str, Any]) -> None:
    """Set options of the server; ``st.set_option`` refuses these."""
    for name, value in options.items():
        config.set_option(name, value)


def uploads_of(session: str) -> tuple[int, int]:
    """Return the number of files that a Streamlit session holds, and the total bytes in all sessions."""
    files = cast(MemoryUploadedFileManager, get_instance().uploaded_file_mgr).file_storage
    n_bytes = sum(len(file.data) for of_session in list(files.values()) for file in list(of_session.values()))
    return len(files.get(session, ())), n_bytes
