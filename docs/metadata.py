"""Write the descriptions of musicsim that archives read: ``python -m docs.metadata``.

Zenodo reads ``.zenodo.json``, and catalogs of research software read ``codemeta.json``. Both files are generated from
CITATION.cff and pyproject.toml, so that nobody has to keep three descriptions equal.
"""

import json
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]

# Fields that CITATION.cff need not have, and their names in the two other formats.
_OPTIONAL_IN_ZENODO = {"date-released": "publication_date"}
_OPTIONAL_IN_CODEMETA = {"date-released": "datePublished", "repository-code": "codeRepository"}


def read_citation(checkout: Path) -> dict[str, Any]:
    """Return the fields of CITATION.cff; versions and dates stay strings."""
    return yaml.load((checkout / "CITATION.cff").read_text(encoding="utf-8"), yaml.BaseLoader)


def make_metadata(checkout: Path) -> dict[str, str]:
    """Return the names and texts of the generated files."""
    citation = read_citation(checkout)
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    described = {".zenodo.json": _describe_for_zenodo(citation), "codemeta.json": _describe_code(citation, project)}
    return {name: json.dumps(fields, indent=2, ensure_ascii=False) + "\n" for name, fields in described.items()}


def write_metadata(checkout: Path) -> list[str]:
    """Write the generated files; return their names."""
    texts = make_metadata(checkout)
    for name, text in texts.items():
        (checkout / name).write_text(text, encoding="utf-8")
    return list(texts)


def _describe_for_zenodo(citation: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of a deposit (https://developers.zenodo.org, "Deposit metadata")."""
    return {
        "title": citation["title"],
        "upload_type": "software",
        "description": citation["abstract"],
        "creators": [{"name": _name_author(author)} for author in citation["authors"]],
        "access_right": "open",
        "license": citation["license"],
        "keywords": citation["keywords"],
        "language": "eng",
        "version": citation["version"],
    } | _rename(citation, _OPTIONAL_IN_ZENODO)


def _describe_code(citation: dict[str, Any], project: dict[str, Any]) -> dict[str, Any]:
    """Return the terms of CodeMeta 3.0."""
    return {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": project["name"],
        "description": project["description"],
        "author": [_describe_author(author) for author in citation["authors"]],
        "license": f"https://spdx.org/licenses/{project['license']}",
        "keywords": citation["keywords"],
        "programmingLanguage": "Python",
        "runtimePlatform": f"Python {project['requires-python']}",
        "version": citation["version"],
    } | _rename(citation, _OPTIONAL_IN_CODEMETA)


def _rename(citation: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {new: citation[name] for name, new in names.items() if name in citation}


def _name_author(author: dict[str, str]) -> str:
    """Return the name of a group, or "family name, given names" of a person."""
    return author["name"] if "name" in author else f"{author['family-names']}, {author['given-names']}"


def _describe_author(author: dict[str, str]) -> dict[str, str]:
    if "name" in author:
        return {"@type": "Organization", "name": author["name"]}
    return {"@type": "Person", "givenName": author["given-names"], "familyName": author["family-names"]}


if __name__ == "__main__":
    write_metadata(ROOT)
