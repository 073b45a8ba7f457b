"""The ``musicsim evaluate`` command."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column

from musicsim.cli.console import (
    SOME_FAILED,
    JsonOption,
    LibraryOption,
    emit,
    open_library,
    progress_bar,
    show,
    song_json,
    warn,
)
from musicsim.errors import FeatureVersionError, ModelError, NotFoundError
from musicsim.explorer import TRAINING_KINDS, Figure, render_fields, take_snapshot, use_pool
from musicsim.explorer.evaluation import quality
from musicsim.explorer.evaluation.quality import ListStatistics, Quality, list_known_faults
from musicsim.explorer.evaluation.search_speed import K, measure_search
from musicsim.explorer.learning.supervision import Coverage, coverage
from musicsim.library import Library, ModelRecord, Song
from musicsim.progress import Progress, add_prefix
from musicsim.wording import count_are

MEASURES = {"auc": "AUC", "map": "MAP", "mrr": "MRR", "precision": "P@10"}
"""Titles of measures, keyed by name."""


def evaluate(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="Evaluate only this model; can be repeated.")
    ] = None,
    truth: Annotated[
        str | None, typer.Option(help=f"Ground truth for similarity: {', '.join(TRAINING_KINDS)}.", metavar="KIND")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="Name of a split, with test songs as queries and training songs as results.", metavar="NAME"),
    ] = None,
    hubs: Annotated[int, typer.Option(help="Number of hubs to list.", min=0)] = 5,
    search: Annotated[
        bool, typer.Option("--search-speed", help="Measure only the recall and speed of each kind of search index.")
    ] = False,
) -> None:
    """Examples:
    musicsim evaluate --truth genre
    musicsim evaluate --model Sound --model Mine --json
    """
    if search:
        if truth or split or len(model or ()) > 1:
            raise typer.BadParameter("accepts only one --model and no other options.", param_hint="--search-speed")
        _show_search_speed(library, model[0] if model else None, as_json=as_json)
        return
    with open_library(library) as lib, use_pool(lib), progress_bar() as progress:
        records = [lib.models.find(name) for name in model] if model else lib.models.all()
        covered = find_coverage(lib, records, truth)
        results, failed = _each(lib, records, covered.kind, split, progress)
        faults = list_known_faults(lib)
        songs = {song.id: song for song in lib.songs()}
    if as_json:
        rendered = [_as_json(one, songs, hubs) for one in results]
        about = {"by": covered.kind, "detail": covered.detail, "split": split}
        emit(about | {"known_faults": faults, "models": rendered, "failed": failed})
    else:
        by_split = f" Split {split}: test songs are the queries, and training songs are the results." if split else ""
        _show(results, songs, hubs, f"Ground truth: {TRAINING_KINDS[covered.kind].words} ({covered.detail}).{by_split}")
        for fault in faults:
            warn("known faults", fault)
        for one in failed:
            warn("not evaluated", f"{one['model']}: {one['reason']}")
    if failed:
        raise typer.Exit(SOME_FAILED)


def _show_search_speed(library: Path | None, model: str | None, *, as_json: bool) -> None:
    with open_library(library) as lib, progress_bar() as progress:
        snapshot = take_snapshot(lib, lib.models.find(model).id if model else None)
        measured = measure_search(snapshot, progress=progress)
    if as_json:
        emit(asdict(measured))
        return
    columns = [Column("index", overflow="fold")]
    columns += [Column(name, justify="right") for name in (f"recall at {K}", "ms per query", "build s", "MB")]
    rows = [
        (r.title + " (in use)" * r.is_chosen, f"{r.recall:.3f}", f"{r.ms:.3f}", f"{r.build_s:.1f}", f"{r.mb:,.1f}")
        for r in measured.rows
    ]
    show(columns, rows, caption=measured.caption)


def _each(
    library: Library, records: Sequence[ModelRecord], kind: str, split: str | None, progress: Progress
) -> tuple[list[Quality], list[dict[str, str]]]:
    """Evaluate models; return the evaluations and the failures, or raise the last error if all models fail."""
    results: list[Quality] = []
    failed: list[dict[str, str]] = []
    for record in records:
        try:
            snapshot = take_snapshot(library, record.id)
            results.append(quality.evaluate(snapshot, kind, add_prefix(progress, f"{record.name}: "), split=split))
        except (ModelError, FeatureVersionError) as error:
            if len(failed) + 1 == len(records):
                raise
            failed.append({"model": record.name, "reason": str(error)})
    return results, failed


def _as_json(one: Quality, songs: dict[int, Song], n_hubs: int) -> Any:
    """Return a model's scores as JSON; NaN becomes null."""
    lists = one.lists and {
        "n_songs": one.lists.n_songs,
        "n_compared": one.lists.n_compared,
        "plain": _lists_json(one.lists.plain, songs, n_hubs),
        "hub_reduction": _lists_json(one.lists.reduced, songs, n_hubs),
    }
    held_out = one.held_out and asdict(one.held_out)
    return replace_nan({"model": one.model, "scores": asdict(one.scores), "lists": lists, "held_out": held_out})


def _lists_json(lists: ListStatistics, songs: dict[int, Song], n_hubs: int) -> dict[str, Any]:
    confusion = lists.confusion
    matrix = {"n_songs": confusion.n_songs.tolist(), "shares": confusion.shares.tolist()}
    hubs = [
        {"lists": hub.n_lists, "artists": hub.n_artists, "song": song_json(songs[hub.song_id])}
        for hub in lists.hubs[:n_hubs]
    ]
    return render_fields(lists, "hubness", "coverage", "orphans", "same_genre", "same_genre_of") | {
        "hubs": hubs,
        "confusion": render_fields(confusion, "genres", "columns") | matrix,
    }


def _show(results: list[Quality], songs: dict[int, Song], n_hubs: int, truth: str) -> None:
    columns = [Column(name, overflow="fold") for name in ("model", *MEASURES.values(), "hubness", "coverage")]
    scores = results[0].scores
    caption = (
        f"{truth} {scores.n_queries:,} query songs, {scores.n_skipped:,} skipped; the 95% interval over resampled "
        "artists is in parentheses. For hubness and coverage, the value after > includes hub reduction."
    )
    show(columns, [(one.model, *_cells(one)) for one in results], caption=caption)
    rows = []
    for one in results:
        if one.held_out is not None:
            leads = one.held_out.leads
            cells = [f"{leads[n].before:.3f} > {leads[n].after:.3f}" if n in leads else "-" for n in MEASURES]
            rows.append((one.model, one.held_out.kind, *cells))
    if rows:
        show(
            ("learned model", "from", *MEASURES.values()),
            rows,
            title="Held-out artists, before > after training",
            caption="A learned model was trained on the artists in the table above, so its scores there are "
            "optimistic. The scores in this table are not.",
        )
    for one in results:
        if one.lists is not None:
            for title, lists in (("plain order", one.lists.plain), ("hub reduction", one.lists.reduced)):
                _show_lists(f"{one.model}, {title}", lists, songs, n_hubs)


def _cells(one: Quality) -> list[str]:
    both = one.lists
    hubness = f"{both.plain.hubness:.2f} > {both.reduced.hubness:.2f}" if both else ""
    coverage = f"{both.plain.coverage:.0%} > {both.reduced.coverage:.0%}" if both else ""
    return [*(format_figure(one.scores.figures[name]) for name in MEASURES), hubness, coverage]


def _show_lists(title: str, lists: ListStatistics, songs: dict[int, Song], n_hubs: int) -> None:
    if lists.same_genre_of:
        pairs = reversed(lists.confusion.pairs(len(lists.confusion.genres) ** 2))
        most_confused = {pair.genre: f"{pair.other}, {pair.share:.0%}" for pair in pairs}
        sizes = dict(zip(lists.confusion.genres, lists.confusion.n_songs.tolist(), strict=True))
        genres = sorted(lists.same_genre_of.items(), key=lambda item: -item[1])
        rows = [(genre, sizes[genre], f"{share:.2f}", most_confused.get(genre, "")) for genre, share in genres]
        show(("genre", "songs", "same genre in the ten nearest", "most confused with"), rows, title=title)
    if n_hubs and lists.hubs:
        hubs = [(songs[hub.song_id], hub) for hub in lists.hubs[:n_hubs]]
        lines = [(song.id, song.title, song.artist or "", hub.n_lists, hub.n_artists) for song, hub in hubs]
        caption = f"{count_are(len(lists.orphans), 'song')} not in any top ten."
        show(("id", "hub", "artist", "lists", "of artists"), lines, title=title, caption=caption)


def format_figure(figure: Figure) -> str:
    """Format a mean with its interval."""
    if math.isnan(figure.mean):
        return "-"
    interval = "" if math.isnan(figure.low) else f" ({figure.low:.3f} to {figure.high:.3f})"
    return f"{figure.mean:.3f}{interval}"


def replace_nan(value: Any) -> Any:
    """Replace each NaN in dicts and lists with None, for JSON."""
    if isinstance(value, dict):
        return {key: replace_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [replace_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def find_coverage(library: Library, records: Sequence[ModelRecord], kind: str | None) -> Coverage:
    """Return the coverage of a kind of ground truth; by default, use the first kind with relevant songs."""
    if kind is not None and kind not in TRAINING_KINDS:
        raise typer.BadParameter(f"{kind!r} should be one of {', '.join(TRAINING_KINDS)}.", param_hint="--truth")
    if not records:
        raise NotFoundError("this library does not have a similarity model yet. Add some songs first.")
    for covered in _coverages(library, records):
        if covered.n_songs if kind is None else covered.kind == kind:
            return covered
    raise ModelError(
        "this library does not have a ground truth for similarity. Import plays or playlists, or add genres or tags."
    )


def _coverages(library: Library, records: Sequence[ModelRecord]) -> list[Coverage]:
    for record in records[:-1]:
        with suppress(ModelError):  # the model is damaged; the evaluation reports it
            return coverage(take_snapshot(library, record.id))
    return coverage(take_snapshot(library, records[-1].id))
