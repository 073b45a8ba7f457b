"""What models, their settings and their verdicts are called, for pages and the command line; no Streamlit here."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from musicsim.explorer.artifacts import load_report
from musicsim.explorer.learning import LEARNED_KIND
from musicsim.explorer.models import TAKEN_KIND, free_name
from musicsim.explorer.representations import CODEWORDS, REPRESENTATIONS
from musicsim.explorer.supervision import ANSWERS, KINDS
from musicsim.explorer.verdict import MEASURES, NO_DIFFERENCE, Lead
from musicsim.library import Library
from musicsim.library.model_store import ModelRecord

__all__ = [
    "facts",
    "figures",
    "headline",
    "judged_on",
    "kind_words",
    "name_for",
    "path_rows",
    "report_of",
    "settings_words",
]

_NAMES = {
    "plays": "as people listen",
    "sittings": "as in one sitting",
    "playlists": "as on playlists",
    "tags": "as tagged",
    "genre": "by genre",
    "artist": "by artist",
    "folder": "by folder",
    ANSWERS: "as people answer",
}


def name_for(library: Library, supervision: str, typed: str = "") -> str:
    """The name that was typed, or one that says what was learned from; with a number where it is taken."""
    return free_name(library, typed.strip() or _NAMES[supervision])


def kind_words(record: ModelRecord) -> str:
    """What a model is, in a few words."""
    if record.kind == LEARNED_KIND:
        return f"learned from {KINDS[record.settings['supervision']].words}"
    if record.kind == TAKEN_KIND:
        return f"taken in from {record.settings.get('taken_from', 'a file')}"
    words = REPRESENTATIONS[record.settings.get("representation", "ppk")].words
    if record.settings.get("representation") in CODEWORDS:
        words += f" ({record.settings['n_codewords']:,}, {record.settings['tau']} a frame)"
    return words


def settings_words(settings: Mapping[str, Any], base: str) -> str:
    """Settings of a training in one line."""
    held_out = "answers" if settings["supervision"] == ANSWERS else "artists"
    strength = f"chosen on held-out {held_out}" if settings["C"] is None else f"{settings['C']:g}"
    parts = [
        f"loss {settings['loss']}",
        f"C {strength}",
        f"on “{base}”",
        f"{settings['structure']} metric, {settings['regularizer']} penalty",
        f"seed {settings['random_state']}",
    ]
    if settings["supervision"] in ("plays", "sittings", "playlists"):
        parts.insert(3, f"{settings['k']} {KINDS[settings['supervision']].of} count as similar")
    if settings["supervision"] == "plays":
        parts.insert(4, f"from {settings['threshold']} plays on")
    return ", ".join(parts)


def facts(library: Library, record: ModelRecord, report: Mapping[str, Any]) -> list[str]:
    """Lines of a model's card: when and of what it was made, how, and what it came to."""
    made = datetime.fromtimestamp(record.created_at).strftime("%d %b %Y, %H:%M")
    about = [made, f"made of {record.n_songs_fitted:,} songs", f"{record.n_dimensions:,} dimensions"]
    if report:
        about += [f"{report['seconds']:.0f} s", f"musicsim {report['version']}"]
    lines = [" · ".join(about)]
    if record.base_id is not None and not report:
        lines.append(f"Shares the features of “{library.models.get(record.base_id).name}”.")
    if report:
        lines.append(f"{report['detail']}; {settings_words(report['settings'], report['base'])}.")
        lines.append(f"C = {report['C']:g}. {headline(report)[1]}")
        hubs = report["hubness"]
        lines.append(f"Hubness {hubs['before']:.2f} → {hubs['after']:.2f} (lower is better).")
    return lines


def report_of(library: Library, record: ModelRecord) -> dict[str, Any]:
    """The report of a model; empty for one that was not learned, or whose report is none.

    A model that was taken in brings the report that somebody sent.
    """
    try:
        report = load_report(library.models.path(record.id))
        if report:
            facts(library, record, report), figures(report), judged_on(report), path_rows(report)
            [(one["query"], one["before"], one["after"]) for one in report["changed"]]
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}
    return report


# --- the verdict ----------------------------------------------------------------------------------


def _leads(report: Mapping[str, Any]) -> dict[str, Lead]:
    return {name: Lead(**lead) for name, lead in report["leads"].items()}


def headline(report: Mapping[str, Any]) -> tuple[str, str]:
    """Whether a learned model is better: the verdict, and one sentence that gives its figures.

    Parameters
    ----------
    report : mapping
        As :func:`musicsim.explorer.artifacts.load_report` returns it, of a model that was learned.

    Returns
    -------
    verdict : {"better", "worse", "no difference shown"}
    sentence : str
    """
    leads = _leads(report)
    asked = [name for name in dict.fromkeys((report["settings"]["loss"], "auc", "order")) if name in leads]
    if not asked:
        return NO_DIFFERENCE, "Nothing can be said: what it had not learned from has nothing to judge it by."
    verdict = "better" if report["is_better"] else NO_DIFFERENCE
    if any(leads[name].high < 0 for name in asked):
        verdict = "worse"
    name = next((n for n in asked if leads[n].words == verdict), asked[0])
    lead = leads[name]
    said = verdict if verdict == NO_DIFFERENCE else f"it is {verdict}"
    judges = (
        f"{report['answers']['n']:,} answers, each held out in its turn"
        if "answers" in report
        else f"{report['split']['test']['artists']} artists it never heard"
    )
    return verdict, (
        f"On {judges}, {said}: {MEASURES[name]} {lead.after:.3f} against "
        f"{lead.before:.3f} ({lead.mean:+.3f}, 95 % between {lead.low:+.3f} and {lead.high:+.3f})."
    )


def figures(report: Mapping[str, Any]) -> list[dict[str, str]]:
    """The held-out measures and the hubness as rows of a table: before, after, difference, interval, verdict."""
    rows = [
        {
            "measure": MEASURES[name],
            "before": f"{lead.before:.3f}",
            "after": f"{lead.after:.3f}",
            "difference": f"{lead.mean:+.3f}",
            "95 % between": f"{lead.low:+.3f} and {lead.high:+.3f}",
            "": lead.words,
        }
        for name, lead in _leads(report).items()
    ]
    before, after = report["hubness"]["before"], report["hubness"]["after"]
    hubs = {"measure": "hubness", "before": f"{before:.2f}", "after": f"{after:.2f}"}
    return [*rows, hubs | {"difference": f"{after - before:+.2f}", "95 % between": "", "": "lower is better"}]


def judged_on(report: Mapping[str, Any]) -> str:
    """The parts that the artists, or answers, were held out in, in one sentence."""
    stopped = " It was stopped early." if report["stopped_early"] else ""
    if "answers" in report:
        about = report["answers"]
        return (
            f"Learned from {about['comparisons']:,} comparisons of {about['songs']:,} songs; each fifth of the "
            f"{about['questions']:,} questions was judged by what was learned from the others, C chosen among "
            f"these.{stopped}"
        )
    parts = report["split"]
    songs = {name: f"{part['songs']:,} songs by {part['artists']:,} artists" for name, part in parts.items()}
    return (
        f"Learned from {songs['train']}, C chosen on {songs['validation']}, judged on {songs['test']}; no artist is "
        f"in two of them.{stopped}"
    )


def path_rows(report: Mapping[str, Any]) -> list[dict[str, str]]:
    """What came of every C, as rows of a table."""
    return [
        {
            "C": f"{entry['C']:g}",
            "held out": f"{entry['quality']:.3f}",
            "gap": f"{entry['gap']:.1%}",
            "cuts": f"{entry['n_cuts']}",
            "rank": f"{entry['rank']}",
            "": "taken" if entry["C"] == report["C"] else "",
        }
        for entry in report["path"]
    ]
