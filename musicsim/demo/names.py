"""Generate names for artists, songs and albums from words; they are legal file names on every system."""

from collections.abc import Callable

import numpy as np

_ADJECTIVES = [
    "Amber", "Velvet", "Quiet", "Paper", "Silver", "Hollow", "Crimson", "Gentle", "Distant", "Copper",
    "Marble", "Feathered", "Painted", "Drifting", "Sleepless", "Wooden", "Scarlet", "Patient", "Winding",
    "Frosted", "Tangled", "Golden", "Restless", "Lucid", "Salted", "Mossy", "Woven", "Pale", "Luminous",
    "Borrowed", "Northern", "Secret", "Folded", "Tidal", "Crooked", "Humming", "Indigo", "Wandering",
    "Early", "Late",
]  # fmt: skip
_NOUNS = [
    "Lantern", "Meadow", "Harbour", "Signal", "Orchard", "Comet", "Thistle", "Window", "Engine", "Falcon",
    "Garden", "Mirror", "Ferry", "Cedar", "Kite", "Canyon", "Tunnel", "Compass", "Willow", "Station",
    "Anchor", "Prism", "Sparrow", "Attic", "Bridge", "Ember", "River", "Pocket", "Staircase", "Island",
    "Clockwork", "Parade", "Antenna", "Otter", "Juniper", "Rooftop", "Avenue", "Satellite", "Teacup",
    "Lighthouse",
]  # fmt: skip
_FIRST = [
    "Alma", "Boris", "Cilla", "Dario", "Edda", "Fenn", "Greta", "Hanno", "Ilka", "Jorin", "Kaisa", "Lorn",
    "Maren", "Nilo", "Odile", "Pavo", "Quilla", "Runa", "Silke", "Tamsin", "Ulla", "Viggo", "Wanda",
    "Yorick", "Zelda", "Anselm", "Brisa", "Corin", "Delphine", "Elio",
]  # fmt: skip
_LAST_HEAD = [
    "Ar", "Bel", "Cor", "Dal", "Esk", "Fal", "Gren", "Hol", "Il", "Jas", "Kel", "Lor", "Mar", "Nor",
    "Oster", "Pel", "Quin", "Ros", "Sel", "Tor", "Ul", "Vas", "Wil", "Yar", "Zan",
]  # fmt: skip
_LAST_TAIL = [
    "anden", "bury", "coft", "dell", "esk", "field", "gard", "holm", "ivar", "ket", "lund", "mere", "nova",
    "onde", "pike", "quist", "rud", "sund", "tova", "veld", "wick",
]  # fmt: skip
_BAND = [
    "Collective", "Trio", "Ensemble", "Assembly", "Club", "Union", "Society", "Machine", "Theory",
    "Department", "Weather", "Orchestra",
]  # fmt: skip
_PLACES = [
    "Lisbon Street", "the Old Mill", "Winter", "the North Sea", "Platform Nine", "the Greenhouse", "Sunday",
    "the Valley", "Blue Hour", "the Terrace", "September", "the Ferry Home", "Low Tide", "the Long Road",
    "Midnight", "the Garden Wall",
]  # fmt: skip
_GERUNDS = [
    "Leaving", "Finding", "Crossing", "Remembering", "Following", "Awaiting", "Counting", "Painting",
    "Waking", "Chasing",
]  # fmt: skip


def _pick(rng: np.random.Generator, words: list[str]) -> str:
    return words[int(rng.integers(len(words)))]


def _artist(rng: np.random.Generator) -> str:
    form = int(rng.integers(5))
    if form <= 1:
        return f"{_pick(rng, _FIRST)} {_pick(rng, _LAST_HEAD)}{_pick(rng, _LAST_TAIL)}"
    if form == 2:
        return f"{_pick(rng, _ADJECTIVES)} {_pick(rng, _NOUNS)} {_pick(rng, _BAND)}"
    if form == 3:
        return f"The {_pick(rng, _ADJECTIVES)} {_pick(rng, _LAST_HEAD)}{_pick(rng, _LAST_TAIL)}s"
    return f"{_pick(rng, _LAST_HEAD)}{_pick(rng, _LAST_TAIL)} {_pick(rng, _BAND)}"


def _title(rng: np.random.Generator) -> str:
    form = int(rng.integers(6))
    if form == 0:
        return f"{_pick(rng, _ADJECTIVES)} {_pick(rng, _NOUNS)}"
    if form == 1:
        return f"{_pick(rng, _GERUNDS)} {_pick(rng, _PLACES)}"
    if form == 2:
        return f"{_pick(rng, _NOUNS)} in {_pick(rng, _PLACES)}"
    if form == 3:
        return f"{_pick(rng, _NOUNS)} and {_pick(rng, _NOUNS)}"
    if form == 4:
        return f"The {_pick(rng, _ADJECTIVES)} {_pick(rng, _NOUNS)}"
    return f"{_pick(rng, _ADJECTIVES)} {_pick(rng, _PLACES).removeprefix('the ').title()}"


def _draw_distinct(draw: Callable[[np.random.Generator], str], rng: np.random.Generator, n: int) -> list[str]:
    """Draw `n` names; when the words run out, add a number."""
    names: list[str] = []
    used: set[str] = set()  # case-folded names
    while len(names) < n:
        name = draw(rng)
        for _ in range(12):
            if name.casefold() not in used:
                break
            name = draw(rng)
        if name.casefold() in used:
            name = f"{name} {len(names) + 1}"
        if name.casefold() not in used:
            used.add(name.casefold())
            names.append(name)
    return names


def draw_artist_names(rng: np.random.Generator, n: int) -> list[str]:
    """Draw `n` artist names that differ in more than case, because some file systems ignore case."""
    return _draw_distinct(_artist, rng, n)


def draw_titles(rng: np.random.Generator, n: int) -> list[str]:
    """Draw `n` titles for songs or albums that differ in more than case."""
    return _draw_distinct(_title, rng, n)
