"""Export a model as one file for other libraries, and import such files, which are untrusted."""

import json
import zipfile
from pathlib import Path
from typing import Any

from musicsim.errors import ModelError
from musicsim.explorer.models.artifacts import load_report, read_report
from musicsim.explorer.models.schema import MAX_JSON, AboutFile, read_json_file
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.library import Library, atomic_path, shorten_message
from musicsim.library.disk.archives import DAMAGED, open_archive, unpack

MODEL_FILE_ENDING = ".musicsim"
# 2,048 codewords with a metric are 67 MB; four local metrics on embeddings of 2,048 dimensions are 200 MB
_MAX_ARRAYS = 512 << 20
_MAX_BYTES = {"about.json": MAX_JSON, "model.json": MAX_JSON, "model.npz": _MAX_ARRAYS, "report.json": MAX_JSON}
_REPORT = "report.json"
_REMEDY = "Export it again with this version of musicsim, and import the new file."


def save_model_file(library: Library, model_id: str, target: Path) -> None:
    """Export a model as one file, without songs; raises NotFoundError, or ModelError if its files are missing."""
    record = library.models.get(model_id)
    folder = library.models.path(model_id)
    if not all((folder / name).exists() for name in ("model.json", "model.npz")):
        raise ModelError(f"the files of the model {record.name!r} are missing ({folder}): refit it.")
    about = {"name": record.name, "kind": record.kind, "settings": record.settings}
    with atomic_path(target) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("about.json", json.dumps(about, indent=1))
        archive.write(folder / "model.json", "model.json")
        archive.write(folder / "model.npz", "model.npz")
        report = load_report(folder)
        if report:
            # the songs of this library are private
            archive.writestr(_REPORT, json.dumps(report | {"changed": []}, indent=1))


def read_model_file(source: Path, scratch: Path) -> tuple[str, SimilarityModel, dict[str, Any]]:
    """Read a file that :func:`save_model_file` wrote; return the name, the model, and the training report or {}.

    The file is unpacked into `scratch`, an empty folder. Raises ModelError if it is not a valid model file,
    FeatureVersionError if a different version of musicsim wrote it, and StorageError if the disk of `scratch` is full.
    """
    try:
        with open_archive(source, len(_MAX_BYTES)) as archive:
            names = set(archive.namelist())
            if not _MAX_BYTES.keys() - {_REPORT} <= names <= _MAX_BYTES.keys():
                raise ValueError("it does not contain a model")
            for part in names:
                unpack(archive, part, scratch / part, _MAX_BYTES[part])
        name = read_json_file(AboutFile, scratch / "about.json").name
        report = read_report(scratch / _REPORT) if (scratch / _REPORT).exists() else {}
    except DAMAGED as error:
        message = f"{source.name}: no musicsim model can be read from this file ({shorten_message(error)}). {_REMEDY}"
        raise ModelError(message) from error
    except OSError as error:
        raise ModelError(f"{source.name}: cannot be imported ({error.strerror or error}).") from error
    return name, SimilarityModel.load(scratch, called=source.name, remedy=_REMEDY), report
