"""The command ``musicsim evaluate``: how good "similar" is."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column

from musicsim.cli._console import (
    SOME_FAILED,
    ClusterOption,
    JsonOption,
    LibraryOption,
    TrustClusterOption,
    emit,
    open_library,
    plain,
    progress_bar,
    show,
    song_json,
    warn,
)
from musicsim.errors import FeatureVersionError, ModelError, NotFoundError
from musicsim.explorer.evaluation import quality
from musicsim.explorer.evaluation.fixed_splits import known_faults
from musicsim.explorer.evaluation.quality import Figure, Lists, Quality
from musicsim.explorer.learning.supervision import Coverage, coverage
from musicsim.explorer.progress import teller
from musicsim.explorer.requests.training import KINDS
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library, Song
from musicsim.library.stores.models import ModelRecord

_MEASURES = ("auc", "map", "mrr", "precision")
_TITLES = ("AUC", "MAP", "MRR", "P@10")


def evaluate(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    model: Annotated[list[str] | None, typer.Option("--model", "-m", help="Only this model; can be repeated.")] = None,
    by: Annotated[
        str | None, typer.Option(help=f"Ground truth of similarity: {', '.join(KINDS)}.", metavar="KIND")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="Name of a fixed split: its test songs search its training songs.", metavar="NAME"),
    ] = None,
    hubs: Annotated[int, typer.Option(help="How many hubs to list.", min=0)] = 5,
    against: Annotated[
        str | None,
        typer.Option(
            help="A model, such as vectors of your own, to compare with the sound instead, before and after learning "
            "on each, by folds of artists.",
            metavar="MODEL",
        ),
    ] = None,
    lists: Annotated[
        str | None,
        typer.Option(
            "--continue",
            help="Instead: how well held-out lists are continued, playlists or sittings, by the walk and other ways.",
            metavar="LISTS",
        ),
    ] = None,
    cluster: ClusterOption = None,
    trust_cluster: TrustClusterOption = False,
) -> None:
    if lists is not None:
        if model or by or split or against:
            raise typer.BadParameter("takes no --model, --by, --split or --against.", param_hint="--continue")
        _continue(library, lists, as_json=as_json)
        return
    from musicsim.extensions.cluster.connection import on_cluster

    if by is not None and by not in KINDS:
        raise typer.BadParameter(f"{by!r} should be one of {', '.join(KINDS)}.", param_hint="--by")
    if against is not None and (model or split is not None):
        raise typer.BadParameter("it goes with neither --model nor --split.", param_hint="--against")
    if against is not None:
        _compare(library, against, by, as_json=as_json)
        return
    with open_library(library) as lib, on_cluster(lib, cluster, trusted=trust_cluster), progress_bar() as bar:
        records = [lib.models.named(name) for name in model] if model else lib.models.all()
        covered = _coverage(lib, records, by)
        found, failed = _each(lib, records, covered.kind, split, bar)
        faults = known_faults(lib)
        songs = {song.id: song for song in lib.songs()}
    if as_json:
        emit(
            {
                "by": covered.kind,
                "detail": covered.detail,
                "split": split,
                "known_faults": faults,
                "models": [_as_json(one, songs, hubs) for one in found],
                "failed": failed,
            }
        )
    else:
        by_split = f" Split {split}: test songs search the training songs." if split else ""
        _show(found, songs, hubs, f"Ground truth: {KINDS[covered.kind].words} ({covered.detail}).{by_split}")
        for fault in faults:
            warn("known faults", fault)
        for one in failed:
            warn("not evaluated", f"{one['model']}: {one['reason']}")
    if failed:
        raise typer.Exit(SOME_FAILED)


def _each(
    library: Library, records: Sequence[ModelRecord], kind: str, split: str | None, bar: Callable[..., object]
) -> tuple[list[Quality], list[dict[str, str]]]:
    """Evaluate models; return the evaluations and the failures, or raise the reason if all fail."""
    found: list[Quality] = []
    failed: list[dict[str, str]] = []
    for record in records:
        try:
            snapshot = take_snapshot(library, record.id)
            found.append(quality.evaluate(snapshot, kind, teller(bar, f"{record.name}: "), split=split))
        except (ModelError, FeatureVersionError) as error:
            if len(failed) + 1 == len(records):
                raise
            failed.append({"model": record.name, "reason": str(error)})
    return found, failed


def _coverage(library: Library, records: Sequence[ModelRecord], by: str | None) -> Coverage:
    """Return the named ground truth, or the first that covers some songs."""
    if not records:
        raise NotFoundError("this library has no similarity model yet: add some songs first.")
    for covered in _covered_by(library, records):
        if covered.n_songs if by is None else covered.kind == by:
            return covered
    raise ModelError(
        "nothing in this library says which songs are similar: import plays or playlists, or give songs genres or tags."
    )


def _covered_by(library: Library, records: Sequence[ModelRecord]) -> list[Coverage]:
    """Return all ground truths for the songs of the first model that can be read."""
    *others, last = records
    for record in others:
        try:
            return coverage(take_snapshot(library, record.id))
        except ModelError:  # damaged: its evaluation reports it
            continue
    return coverage(take_snapshot(library, last.id))


def _compare(library: Path | None, name: str, by: str | None, *, as_json: bool) -> None:
    """A model against the sound of a library."""
    from musicsim.extensions.model_comparison.comparison import compare_with

    with open_library(library) as lib, progress_bar() as bar:
        found = compare_with(lib, name, _coverage(lib, lib.models.all(), by).kind, teller(bar))
    if as_json:
        differences = [asdict(one) | {"words": one.words} for one in found.differences]
        emit(_plain(asdict(found) | {"differences": differences}))
        return
    columns = [Column(name, overflow="fold") for name in ("model", *_TITLES)]
    rows = [(row.name, *(_written(row.figures[name]) for name in _MEASURES)) for row in found.rows]
    show(columns, rows, caption=f"Ground truth: {KINDS[found.kind].words} ({found.detail}). {found.words}")
    for row in found.rows:
        if row.note:
            typer.echo(plain(f"{row.name}: {row.note}."))
    for one in found.differences:
        typer.echo(plain(one.words))


def _continue(library: Path | None, kind: str, *, as_json: bool) -> None:
    """How well held-out lists of a library are continued."""
    from musicsim.extensions.continuation.continuation import LISTS, MEASURES, continue_lists

    if kind not in LISTS:
        raise typer.BadParameter(f"{kind!r} should be one of {', '.join(LISTS)}.", param_hint="--continue")
    with open_library(library) as lib, progress_bar() as bar:
        found = continue_lists(lib, kind, teller(bar))
    if as_json:
        emit(found.as_json())
        return
    rows = [(way, *(_written(Figure(*scores[name])) for name in MEASURES)) for way, scores in found.scores.items()]
    columns = [Column(name, overflow="fold") for name in ("way", *MEASURES.values())]
    show(columns, rows, caption=f"{found.words} {found.method} In brackets the 95 % interval over lists.")


def _as_json(one: Quality, songs: dict[int, Song], n_hubs: int) -> dict[str, Any]:
    """A model's figures; NaN becomes null."""
    lists = None
    if one.lists is not None:
        lists = {
            "n_songs": one.lists.n_songs,
            "n_compared": one.lists.n_compared,
            "plain": _lists_json(one.lists.plain, songs, n_hubs),
            "hub_reduction": _lists_json(one.lists.reduced, songs, n_hubs),
        }
    held_out = asdict(one.held_out) if one.held_out else None
    return {
        "model": one.model,
        "scores": _plain(asdict(one.scores)),
        "lists": _plain(lists),
        "held_out": _plain(held_out),
    }


def _lists_json(lists: Lists, songs: dict[int, Song], n_hubs: int) -> dict[str, Any]:
    confusion = lists.confusion
    return {
        "hubness": lists.hubness,
        "coverage": lists.coverage,
        "hubs": [
            {"lists": hub.n_lists, "artists": hub.n_artists, "song": song_json(songs[hub.song_id])}
            for hub in lists.hubs[:n_hubs]
        ],
        "orphans": lists.orphans,
        "same_genre": lists.same_genre,
        "same_genre_of": lists.same_genre_of,
        "confusion": {
            "genres": confusion.genres,
            "n_songs": confusion.n_songs.tolist(),
            "columns": confusion.columns,
            "shares": confusion.shares.tolist(),
        },
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _show(found: list[Quality], songs: dict[int, Song], n_hubs: int, words: str) -> None:
    columns = [Column(name, overflow="fold") for name in ("model", *_TITLES, "hubness", "coverage")]
    scores = found[0].scores
    caption = (
        f"{words} {scores.n_queries:,} query songs, {scores.n_skipped:,} skipped; in brackets the "
        "95 % interval over resampled artists. Hubness and coverage: without > with hub reduction."
    )
    show(columns, [(one.model, *_cells(one)) for one in found], caption=caption)
    if any(one.held_out for one in found):
        _show_held_out(found)
    for one in found:
        if one.lists is not None:
            for title, lists in (("plain order", one.lists.plain), ("hub reduction", one.lists.reduced)):
                _show_lists(f"{one.model}, {title}", lists, songs, n_hubs)


def _show_held_out(found: list[Quality]) -> None:
    rows = []
    for one in found:
        if one.held_out is not None:
            leads = one.held_out.leads
            cells = [f"{leads[n].before:.3f} > {leads[n].after:.3f}" if n in leads else "-" for n in _MEASURES]
            rows.append((one.model, one.held_out.kind, *cells))
    show(
        ("learned model", "from", *_TITLES),
        rows,
        title="Held-out artists, before > after training",
        caption="A learned model was trained on the artists of the table above, so its scores there are "
        "optimistic: these are not.",
    )


def _cells(one: Quality) -> list[str]:
    both = one.lists
    hubness = f"{both.plain.hubness:.2f} > {both.reduced.hubness:.2f}" if both else ""
    coverage = f"{both.plain.coverage:.0%} > {both.reduced.coverage:.0%}" if both else ""
    return [*(_written(one.scores.figures[name]) for name in _MEASURES), hubness, coverage]


def _written(figure: Figure) -> str:
    if math.isnan(figure.mean):
        return "-"
    interval = "" if math.isnan(figure.low) else f" ({figure.low:.3f} to {figure.high:.3f})"
    return f"{figure.mean:.3f}{interval}"


def _show_lists(title: str, lists: Lists, songs: dict[int, Song], n_hubs: int) -> None:
    """Genres and hubs of a model's lists, in one order."""
    if lists.same_genre_of:
        others = {pair.genre: pair for pair in reversed(lists.confusion.pairs(len(lists.confusion.genres) ** 2))}
        sizes = dict(zip(lists.confusion.genres, lists.confusion.n_songs.tolist(), strict=True))
        rows: list[tuple[object, ...]] = []
        for genre, share in sorted(lists.same_genre_of.items(), key=lambda item: -item[1]):
            other = f"{others[genre].other}, {100 * others[genre].share:.0f} %" if genre in others else ""
            rows.append((genre, sizes[genre], f"{share:.2f}", other))
        show(("genre", "songs", "same genre in the ten nearest", "most confused with"), rows, title=title)
    if n_hubs and lists.hubs:
        rows = []
        for hub in lists.hubs[:n_hubs]:
            song = songs[hub.song_id]
            rows.append((song.id, song.title, song.artist or "", hub.n_lists, hub.n_artists))
        caption = f"{len(lists.orphans):,} songs are in nobody's top ten."
        show(("id", "hub", "artist", "lists", "of artists"), rows, title=title, caption=caption)
