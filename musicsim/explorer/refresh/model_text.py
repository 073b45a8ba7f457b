"""Descriptions of models, their settings and their evaluation, for the pages and the command line."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from musicsim.explorer.learning.automatic import SOUND_ALONE
from musicsim.explorer.learning.verdict import (
    BETTER,
    NO_DIFFERENCE,
    VERDICT_MEASURES,
    WORSE,
    Lead,
    find_losses,
    lead_words,
)
from musicsim.explorer.models.artifacts import load_report
from musicsim.explorer.models.representations import CODEWORDS, representations
from musicsim.explorer.models.schema import SOUND
from musicsim.explorer.refresh.fitted_model import FITTED_KIND
from musicsim.explorer.refresh.fitting import free_name
from musicsim.explorer.refresh.joined_model import COMBINED_KIND, JOINED_KIND
from musicsim.explorer.refresh.learned_model import LEARNED_KIND
from musicsim.explorer.refresh.model_catalogue import TAKEN_KIND
from musicsim.explorer.requests.training import (
    ANSWERS,
    ANSWERS_PER_STAGE,
    AUTOMATIC,
    METHODS,
    ORDER_LOSS,
    RANKING,
    TRAINING_KINDS,
)
from musicsim.library import CODEWORDS_KIND, NATIVE_KIND, Library, ModelRecord
from musicsim.wording import count, join_words


def name_for(library: Library, supervision: str, typed: str = "") -> str:
    """Return the typed name, or a default for the supervision; adds a number if the name exists."""
    return free_name(library, typed.strip() or TRAINING_KINDS[supervision].model_name)


def kind_words(record: ModelRecord) -> str:
    """Return a short description of a model."""
    if record.kind == LEARNED_KIND:
        return f"learned from {TRAINING_KINDS[record.settings['supervision']].words}"
    if record.kind == TAKEN_KIND:
        return f"imported from {record.settings.get('taken_from', 'a file')}"
    if record.kind == FITTED_KIND:
        return f"{record.settings['estimator']}, fitted outside of musicsim on {_quote([record.settings['on']])}"
    if record.kind == JOINED_KIND:
        return f"{_quote(record.settings['sources'])} together"
    name = _representation(record)
    kind = representations().get(name)
    words = kind.description if kind is not None else f"{name}, which is not installed"
    if record.settings.get("label"):
        words += f" ({record.settings['label']})"
    if record.settings.get("representation") in CODEWORDS:
        words += f" ({record.settings['n_codewords']:,}, {record.settings['tau']} per frame)"
    return words


def _representation(record: ModelRecord) -> str:
    built_in = {NATIVE_KIND: SOUND, CODEWORDS_KIND: "ppk"}
    return str(record.settings.get("representation") or built_in.get(record.kind, "ppk"))


def settings_words(settings: Mapping[str, Any], base: str) -> str:
    """Return the settings of a training run in one line."""
    held_out = "answers" if settings["supervision"] == ANSWERS else "artists"
    strength = f"chosen on held-out {held_out}" if settings["C"] is None else f"{settings['C']:g}"
    if settings["method"] == RANKING:
        parts = [f"loss {settings['loss']}", f"C {strength}", f"on {base}"]
        shape = [f"{settings['structure']} metric, {settings['regularizer']} penalty"]
    else:
        chosen_by = [] if settings["method"] == AUTOMATIC else [f"chosen by {settings['loss']}"]
        parts = [METHODS[settings["method"]], *chosen_by, f"on {base}"]
        shape = []
    if settings["supervision"] in ("plays", "sittings", "playlists"):
        parts.append(f"{settings['k']} {TRAINING_KINDS[settings['supervision']].of} count as similar")
    if settings["supervision"] == "plays":
        parts.append(f"at least {settings['threshold']} plays per listener")
    if settings.get("overlap") == "lift":
        parts.append("similar by lift")
    return ", ".join([*parts, *shape, f"seed {settings['random_state']}"])


def facts(library: Library, record: ModelRecord, report: Mapping[str, Any]) -> list[str]:
    """Return the lines of a model's card: date, size, settings and evaluation."""
    created = datetime.fromtimestamp(record.created_at).strftime("%d %b %Y, %H:%M")
    about = [created, f"fitted on {count(record.n_songs_fitted, 'song')}", f"{count(record.n_dimensions, 'dimension')}"]
    if report:
        about += [f"{report['seconds']:.0f} s", f"musicsim {report['version']}"]
    lines = [" · ".join(about)]
    base = None if record.base_id is None else library.models.get(record.base_id)
    if base is not None and not report:
        names = base.settings["sources"] if base.kind == COMBINED_KIND else [base.name]
        lines.append(f"Shares the features of {_quote(names)}.")
    kind = representations().get(_representation(record))
    if kind is not None and kind.describe is not None:
        lines.append(kind.describe(library, record))
    if report:
        names = [source["name"] for source in report.get("sources", ())] or [report["base"]]
        lines.append(f"{report['detail']}; {settings_words(report['settings'], _quote(names))}.")
        chosen = report["setting"] if "setting" in report else f"C = {report['C']:g}"
        lines.append(f"{chosen}. {headline(report)[1]}")
        shares = [f"{row['of the distances']} “{row['source']}”" for row in source_rows(report)]
        lines += [f"Contributions to the distance: {', '.join(shares)}."] if shares else []
        hubs = report["hubness"]
        lines.append(f"Hubness {hubs['before']:.2f} → {hubs['after']:.2f} (lower is better).")
    return lines


def _quote(names: Sequence[str]) -> str:
    return join_words([f"“{name}”" for name in names])


def report_of(library: Library, record: ModelRecord) -> dict[str, Any]:
    """Return a model's report; empty if the model was not learned or its imported report is invalid."""
    try:
        report = load_report(library.models.path(record.id))
        if report:  # raises KeyError for unknown measures and methods
            facts(library, record, report), figures(report)
    except KeyError:
        return {}
    return report


# --- the verdict ----------------------------------------------------------------------------------


def _leads(report: Mapping[str, Any]) -> dict[str, Lead]:
    return {name: Lead(**lead) for name, lead in report["leads"].items()}


def headline(report: Mapping[str, Any]) -> tuple[str, str]:
    """Return the verdict of a report, and a sentence with its numbers."""
    leads = _leads(report)
    measures = [name for name in dict.fromkeys((report["settings"]["loss"], "auc", *leads)) if name in leads]
    if not measures:
        return NO_DIFFERENCE, "The model cannot be evaluated: held-out data is missing."
    judges = (
        f"{report['answers']['n']:,} answers, each held out once"
        if "answers" in report
        else f"{report['split']['test']['artists']} held-out artists"
    )
    worse = find_losses(leads)
    losses = join_words([lead_words(name, leads[name], " before training") for name in worse]) if worse else ""
    if report.get("rejected"):
        reason = f"on {judges}, {losses} with {report['rejected']}"
        return WORSE, f"The sound alone is better, so it was kept: {reason}."
    if worse:
        risen = [VERDICT_MEASURES[name] for name, lead in leads.items() if lead.low > 0]
        although = f", though {join_words(risen)} rose" if risen else ""
        partly = " by some measures" if risen else ""
        return WORSE, f"Worse: similar songs rank lower than before training{partly}. {losses}, on {judges}{although}."
    evidence = TRAINING_KINDS[report["settings"]["supervision"]].evidence
    if report.get("setting") == SOUND_ALONE:
        chance = f" “{report['by_chance']}” gains as much from shuffled {evidence}." if report.get("by_chance") else ""
        return NO_DIFFERENCE, f"The sound alone is best: no method was significantly better.{chance}"
    verdict = BETTER if report["is_better"] else NO_DIFFERENCE
    gained = [n for n in measures if leads[n].low > 0]
    name = next((n for n in measures if leads[n].words == verdict), measures[0])
    plainly = "similar songs rank about as high as before training"
    if verdict == BETTER:
        plainly = "similar songs rank higher than before training"
    elif gained and "n_shuffled" in report:
        name = gained[0]
        plainly = f"training on shuffled {evidence} gains as much, so nothing was learned"
        if not report["n_shuffled"]:
            plainly = f"training was stopped before it was repeated on shuffled {evidence}"
    scores = lead_words(name, leads[name], " before training", evidence)
    return verdict, f"{verdict.capitalize()}: {plainly}. {scores}, on {judges}."


def agreement(report: Mapping[str, Any]) -> Lead | None:
    """Return the share of held-out questions that get the listener's answer before and after training, or None."""
    agreed = report.get("answers", {}).get("agreed")
    return None if agreed is None else Lead(**agreed)


def agreement_words(lead: Lead) -> str:
    """Describe the agreement with a listener in one sentence without terms; “within” is half of the 95% interval."""
    within = max(lead.high - lead.mean, lead.mean - lead.low)
    return (
        f"It agrees with you in {100 * lead.after:.0f} of 100 questions it had not seen "
        f"(before {100 * lead.before:.0f}; sure within {100 * within:.0f})."
    )


def plain_verdict(report: Mapping[str, Any], n_answers: int) -> tuple[str, str]:
    """Return the verdict of a report, and a sentence without measures that names the next step.

    `n_answers` is the number of answers in the library, which decides how many more are needed for a training on them.
    """
    outcome, _ = headline(report)
    kind = report["settings"]["supervision"]
    name = TRAINING_KINDS[kind].model_name
    if outcome == BETTER:
        return outcome, f"{name} teach something: similar songs rank higher than with the sound alone."
    if kind == ANSWERS:
        return outcome, "Your answers do not teach more than the sound knows yet. 25 more would help."
    found = (
        "do not teach more than the sound knows" if outcome == NO_DIFFERENCE else "make it worse: the sound is better"
    )
    missing = ANSWERS_PER_STAGE - n_answers
    more = (
        f"{missing} {'more ' * bool(n_answers)}answers would" if missing > 0 else "Learn from your answers in Compare"
    )
    return outcome, f"{name} {found}. {more}."


def figures(report: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return held-out measures and hubness as table rows: before, after, difference, interval, verdict.

    If training was repeated on shuffled evidence, the rows also have its difference. Plays and lists also have a row
    with the AUC of a ranking by popularity alone.
    """
    leads = _leads(report)
    shuffled = f"shuffled {TRAINING_KINDS[report['settings']['supervision']].evidence}"
    has_shuffled = any(lead.shuffled is not None for lead in leads.values())

    def row_of(
        measure: str, before: str, after: str, difference: str, interval: str, chance: str, words: str
    ) -> dict[str, str]:
        row = {"measure": measure, "before": before, "after": after, "difference": difference, "95% interval": interval}
        return row | ({shuffled: chance} if has_shuffled else {}) | {"": words}

    rows = [
        row_of(
            VERDICT_MEASURES[name], f"{lead.before:.3f}", f"{lead.after:.3f}", f"{lead.mean:+.3f}",
            f"{lead.low:+.3f} to {lead.high:+.3f}", "" if lead.shuffled is None else f"{lead.shuffled:+.3f}",
            lead.words,
        )
        for name, lead in leads.items()
    ]  # fmt: skip
    if "auc" in (popularity := report.get("popularity") or {}):
        rows.append(row_of("AUC, popularity alone", f"{popularity['auc']:.3f}", "", "", "", "", ""))
    before, after = report["hubness"]["before"], report["hubness"]["after"]
    hubs = row_of("hubness", f"{before:.2f}", f"{after:.2f}", f"{after - before:+.2f}", "", "", "lower is better")
    return [*rows, hubs]


def describe_split(report: Mapping[str, Any]) -> str:
    """Return sentences about the split into training, validation and test, and about shuffled evidence."""
    stopped = " Training was stopped early." if report["stopped_early"] else ""
    if n := report.get("n_shuffled"):
        evidence = TRAINING_KINDS[report["settings"]["supervision"]].evidence
        stopped += (
            f" A gain counts only above that of the same training on shuffled {evidence} (mean of {n}), which have "
            "nothing to do with the sound."
        )
    if "answers" in report:
        about = report["answers"]
        return (
            f"Learned from {about['comparisons']:,} comparisons of {about['songs']:,} songs. Five-fold cross-"
            f"validation over {about['questions']:,} questions; C was chosen within the training folds.{stopped}"
        )
    parts = report["split"]
    songs = {name: f"{part['songs']:,} songs by {part['artists']:,} artists" for name, part in parts.items()}
    if report["settings"].get("method") == AUTOMATIC:
        return (
            f"Learned from {songs['train']}. The method was chosen by holding out each third of these artists in turn. "
            f"Evaluated on {songs['test']}.{stopped}"
        )
    return (
        f"Learned from {songs['train']}, {'settings' if 'setting' in report else 'C'} chosen on "
        f"{songs['validation']}, evaluated on {songs['test']}. No artist is in more than one of these groups.{stopped}"
    )


def source_rows(report: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return each model's share of a learned metric as table rows; empty if the metric uses a single model."""
    measure = ORDER_LOSS if "answers" in report else report["settings"]["loss"]
    return [
        {
            "source": str(source["name"]),
            "dimensions": f"{source['dimensions']:,}",
            "of the distances": f"{source['share']:.0%}",
            f"alone: {VERDICT_MEASURES.get(measure, measure.upper())}": f"{source['alone']:.3f}",
        }
        for source in report.get("sources", ())
    ]


def path_rows(report: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the held-out quality of each C or setting as table rows; the chosen setting comes first."""
    if "setting" in report:
        chosen = report["setting"]
        path = sorted(report["path"], key=lambda entry: (entry["setting"] != chosen, -entry["quality"]))
        return [
            {
                "settings": str(entry["setting"]),
                "held out": f"{entry['quality']:.3f}",
                "": "chosen" if entry["setting"] == chosen else "",
            }
            for entry in path
        ]
    return [
        {
            "C": f"{entry['C']:g}",
            "held out": f"{entry['quality']:.3f}",
            "gap": f"{entry['gap']:.1%}",
            "cuts": f"{entry['n_cuts']}",
            "rank": f"{entry['rank']}",
            "": "chosen" if entry["C"] == report["C"] else "",
        }
        for entry in report["path"]
    ]
