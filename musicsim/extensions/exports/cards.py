"""A data card and Croissant metadata next to a Parquet export, so that the folder can be published as a data set.

``datasets.load_dataset`` of Hugging Face reads the card, and ``mlcroissant`` reads the metadata (Croissant 1.0,
https://docs.mlcommons.org/croissant/docs/croissant-spec.html).
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from musicsim import __version__
from musicsim.errors import LibraryError
from musicsim.extensions.exports.request import EXPORTS
from musicsim.library import atomic_path
from musicsim.wording import count

CARD, CROISSANT = "README.md", "croissant.json"
_ROWS = "rows"  # name of the only record set
_MEANINGS = {
    "id": "number of the song in the library",
    "hash": "hash of the song's file",
    "path": "path of the song's file on the computer that exported it",
    "vector": "vector of the song; the model compares songs by the Euclidean distance between vectors",
    "histogram": "frequency of each codeword in the song",
    "neighbour_ids": "ids of the nearest other songs, nearest first",
    "distances": "distances to these songs",
}
_TERMS = (
    "citeAs column equivalentProperty extract field fileProperty fileObject fileSet format includes isLiveDataset "
    "jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate separator source "
    "subField transform"
)
# the standard context: readers warn about any other
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in _TERMS.split()},
}
_SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
_UNITS = ("1K", "10K", "100K", "1M", "10M")


def check_folder(target: Path) -> None:
    """Raise an error if a card cannot be written next to this file."""
    if target.suffix.lower() != ".parquet":
        raise LibraryError(f"{target.name}: a data card describes a .parquet file. Use that ending, or omit --card.")
    for name in (CARD, CROISSANT):
        if (target.parent / name).exists():
            raise LibraryError(f"{target.parent / name} exists already. Export to an empty folder, or omit --card.")


def write_card(target: Path, kind: str, model: str, license_id: str) -> None:
    """Write the card and the metadata of a Parquet export; `model` may be empty."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(target)
    made_from = f" Model: {model}." if model else ""
    about = f"{EXPORTS[kind].help} Exported by musicsim {__version__}.{made_from}"
    texts = {
        CARD: _card(target.name, kind, about, license_id, file.schema_arrow, file.metadata.num_rows),
        CROISSANT: _croissant(target, kind, about, license_id, file.schema_arrow),
    }
    for name, text in texts.items():
        with atomic_path(target.parent / name) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _card(name: str, kind: str, about: str, license_id: str, schema: Any, n_rows: int) -> str:
    head = {
        "license": license_id or "unknown",
        "pretty_name": EXPORTS[kind].label,
        "tags": ["music"],
        "size_categories": [_size_of(n_rows)],
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": name}]}],
    }
    lines = "\n".join(f"{key}: {json.dumps(value)}" for key, value in head.items())  # YAML includes JSON
    columns = "\n".join(f"| `{f.name}` | {f.type} | {_MEANINGS.get(f.name, '')} |" for f in schema)
    return (
        f"---\n{lines}\n---\n\n# {EXPORTS[kind].label}\n\n{about}\n\n{count(n_rows, 'row')} in `{name}`.\n\n"
        f"| Column | Type | Meaning |\n|---|---|---|\n{columns}\n"
    )


def _size_of(n_rows: int) -> str:
    """Return the category of Hugging Face for a number of rows, such as ``1K<n<10K``."""
    i = sum(n_rows >= size for size in _SIZES)
    if i == 0:
        return "n<1K"
    return f"{_UNITS[i - 1]}<n<{_UNITS[i]}" if i < len(_UNITS) else f"n>{_UNITS[-1]}"


def _croissant(target: Path, kind: str, about: str, license_id: str, schema: Any) -> str:
    from pyarrow import types

    # Croissant cannot name the fields of a struct in Parquet, so that column is only in the card
    fields = [_field(field, target.name) for field in schema if not types.is_struct(field.type)]
    with target.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    metadata = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": f"musicsim_{kind}",
        "description": about,
        "license": license_id or "unknown",
        "distribution": [
            {
                "@type": "cr:FileObject", "@id": target.name, "name": target.name, "contentUrl": target.name,
                "encodingFormat": "application/x-parquet", "sha256": digest,
            }
        ],
        "recordSet": [{"@type": "cr:RecordSet", "@id": _ROWS, "name": _ROWS, "field": fields}],
    }  # fmt: skip
    return json.dumps(metadata, ensure_ascii=False, indent=2) + "\n"


def _field(field: Any, file: str) -> dict[str, Any]:
    from pyarrow import types

    is_list = types.is_list(field.type)
    item = field.type.value_type if is_list else field.type
    kind = "sc:Integer" if types.is_integer(item) else "sc:Float" if types.is_floating(item) else "sc:Text"
    described = {
        "@type": "cr:Field", "@id": f"{_ROWS}/{field.name}", "name": field.name, "dataType": kind,
        "source": {"fileObject": {"@id": file}, "extract": {"column": field.name}},
    }  # fmt: skip
    if field.name in _MEANINGS:
        described["description"] = _MEANINGS[field.name]
    return described | ({"repeated": True} if is_list else {})
