"""Loading of ONNX files that are not trusted, and their outputs."""

import re
import tempfile
from pathlib import Path
from typing import Any

from musicsim.errors import LibraryError, ModelError
from musicsim.extras import install_command
from musicsim.library.disk.archives import shorten_message
from musicsim.library.scan.files import content_hash

_USUAL_OUTPUTS = ("audio_embeds", "text_embeds")  # vectors in the space that both networks of a CLAP export share


def open_session(path: Path, digest: str) -> Any:
    """Load an ONNX file with the given hash. Raises ModelError, or LibraryError if onnxruntime is not installed."""
    try:
        import onnxruntime
    except ImportError as error:
        raise LibraryError(f"{path.name} needs onnxruntime. Run: {install_command('onnx')}") from error
    data = path.read_bytes()
    if content_hash(data) != digest:
        raise ModelError(f"{path.name} changed during the run. Start again.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # there is one process per core
    options.enable_cpu_mem_arena = False  # the arena would double memory use
    options.log_severity_level = 4
    try:
        with tempfile.TemporaryDirectory(prefix="musicsim-") as empty_folder:
            # an empty folder rules out external weights, which would not be part of the hash
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", empty_folder)
            return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except MemoryError:
        raise
    except Exception as error:
        problem = f"it cannot be loaded ({shorten_error(error)}). Use a single file that includes the weights"
        raise ModelError(f"{path.name}: {problem}.") from error


def find_output(session: Any, wanted: str, file_name: str) -> str:
    """Return the name of the output that contains the vector; raises ModelError if there is no single choice."""
    names = [one.name for one in session.get_outputs()]
    usual = [name for name in _USUAL_OUTPUTS if name in names]
    if wanted in names:
        return wanted
    if not wanted and len(usual or names) == 1:
        return (usual or names)[0]
    problem = f"it has no output named {wanted!r}" if wanted else f"it has {len(names)} outputs"
    raise ModelError(
        f"{file_name}: {problem}. Choose the output that contains the vector ({shorten_message(', '.join(names))})."
    )


def shorten_error(error: Exception) -> str:
    return shorten_message(re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", str(error)))
