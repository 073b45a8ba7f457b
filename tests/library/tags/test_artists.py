"""Tests of artists: names without meaning, folders used instead, and spellings of one artist."""

import itertools
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musicsim.library.tags.artists import artist_group, parse_artist, similar_spellings, stand_in_name

ROOTS = [Path("/media/collection"), Path("/home/ann/Music/Jazz")]
names = st.one_of(st.text(max_size=40), st.text(alphabet="aábcdeE12 &+,.!$-'nthTHEft ", min_size=1, max_size=14))


# Names


@pytest.mark.parametrize(
    "name",
    [
        *(None, "", "  ", "\t\n", "unknown", "UNKNOWN", "Unknown Artist", "<unknown>", "[Unknown Artist]"),
        *("unknown_artist", "various", "Various Artists", "VARIOUS ARTISTS.", "VA", "V.A.", "v/a", "AA. VV."),
        *("n/a", "N.A.", "artist", "Track Artist", "no artist", "-", "--", "???", "?", ".", "...", "_", "\ufffd"),
        *("Unbekannter Künstler", "Unbekannter Ku\u0308nstler", "unbekannt", "Verschiedene Interpreten"),
        *("Diverse", "Artiste inconnu", "Interprète inconnu", "Interprete Inconnu", "Artistes Divers"),
        *("Artista desconocido", "Varios Artistas", "Artista sconosciuto", "Artisti Vari", "Vários Artistas"),
        *("Неизвестный исполнитель", "НЕИЗВЕСТЕН", "Разные исполнители", "Okänd artist", "Nieznany wykonawca"),
        *("Bilinmeyen sanatçı", "不明なアーティスト", "未知艺术家", "群星", "알 수 없는 아티스트", "ＶＡ"),
        *("Άγνωστος καλλιτέχνης", "Onbekende artiest", "Diverși artiști", "none", "(null)"),
    ],
)
def test_placeholders_are_not_artists(name):
    assert parse_artist(name) is None


@pytest.mark.parametrize(
    "name",
    [
        *("Björk", "The The", "!!!", "†††", "+/-", "Unknown Mortal Orchestra", "Various Production", "Vast"),
        *("Nas", "Noname", "The Artist Formerly Known as Prince", "Artist vs. Poet", "A", "Ø", "311", "-M-"),
        *("Diversity", "Кино", "椎名林檎", "여자친구", "Anonymous 4", "Untitled Band", "M", "∆"),
    ],
)
def test_real_names_are_artists(name):
    assert parse_artist(name) == name


def test_artist_name_is_one_line():
    assert parse_artist("  Nora \n Vale ") == "Nora Vale"


@given(names)
def test_known_artist_is_idempotent_and_ignores_case(name):
    known = parse_artist(name)
    assert parse_artist(known) == known
    assert (parse_artist(name.upper()) is None) <= (known is None)
    assert (parse_artist(f"<{name}>") is None) == (known is None)


# Groups


@given(names)
def test_artist_group_is_idempotent_and_ignores_spaces(name):
    group = artist_group(name, Path("/"), [])
    if group is not None:
        assert artist_group(group, Path("/"), []) == group
        assert artist_group(f" {name}  ", Path("/"), []) == group


def test_artist_group_ignores_folder_case_and_width():
    a = artist_group("Nora  VALE", Path("/media/collection/x"), ROOTS)
    assert a == artist_group("nora vale", Path("/elsewhere"), []) == "nora vale"
    assert artist_group("ＮＯＲＡ Vale", Path("/"), []) == a
    assert artist_group("Straße", Path("/"), []) == artist_group("STRASSE", Path("/"), [])
    assert artist_group("Cafe", Path("/"), []) != artist_group("Café", Path("/"), [])


@pytest.mark.parametrize("artist", [None, "", "Unknown Artist", "VA", "???"])
@pytest.mark.parametrize(
    ("folder", "stands"),
    [
        ("/media/collection/Nora Vale/First", "/media/collection/Nora Vale/First"),
        ("/media/collection/First/CD1", "/media/collection/First"),
        ("/media/collection/First/Disc 2", "/media/collection/First"),
        ("/media/collection/First/disk 01", "/media/collection/First"),
        ("/media/collection/First/CD 1 - Live in Rome", "/media/collection/First"),
        ("/media/collection/First/[Disc_3]", "/media/collection/First"),
        ("/media/collection/First/Disc One", "/media/collection/First"),
        ("/media/collection/First/Box/Disk II/CD2", "/media/collection/First/Box"),
        ("/media/collection/Discovery", "/media/collection/Discovery"),
        ("/media/collection/Disco", "/media/collection/Disco"),
        ("/media/collection/Sideways", "/media/collection/Sideways"),
        ("/media/collection/CD Collection", "/media/collection/CD Collection"),
        ("/media/collection/Blink 182", "/media/collection/Blink 182"),
        ("/media/collection/U2", "/media/collection/U2"),
        ("/media/collection/王", "/media/collection/王"),
        ("/elsewhere/Nora Vale", "/elsewhere/Nora Vale"),
        # a root folder, its parent, a disc inside of it, and the file system root
        ("/media/collection", None),
        ("/media", None),
        ("/media/collection/CD1", None),
        ("/home/ann", None),
        ("/", None),
        # a folder next to the root whose name begins with the root's
        ("/media/collection of mine", "/media/collection of mine"),
        # names without meaning
        *(
            (f"/media/collection/{name}", None)
            for name in (
                *("Music", "MP3", "mp3s", "Downloads", "Unknown Artist", "Unknown Album", "Misc", "New Folder"),
                *("New Folder (2)", "Neuer Ordner", "Various", "Various Artists - Summer 2003", "VA - Summer"),
                *("uploads", "_uploads_", "Musik", "Musique", "Música", "Музыка", "Unbekanntes Album", "A", "a-c"),
                *("0-9", "#", "1987", "80s", "1990s", "Unknown Album (3-12-2011 10-04 PM)", "-", "???", "CDs"),
                *("Artiste inconnu", "Album inconnu", "Я", "iTunes Media", "flac", "Downloads 2", "My Music", "snd"),
            )
        ),
    ],
)
def test_folder_replaces_unknown_artist(artist, folder, stands):
    group = artist_group(artist, Path(folder), ROOTS)
    assert group == (None if stands is None else f"folder:{stands}")
    assert stand_in_name(Path(folder), ROOTS) == (None if stands is None else Path(stands).name)


def test_non_unicode_folder_name_is_displayable():
    assert stand_in_name(Path("/media/collection/caf\udce9"), ROOTS) == "caf?"


@given(st.lists(st.sampled_from(["a b", "Album", "CD1", "Disc 2", "music", "1999", "Nora"]), max_size=6))
def test_substitute_folder_is_ancestor_below_root(parts):
    folder = Path("/media/collection", *parts)
    group = artist_group(None, folder, ROOTS)
    name = stand_in_name(folder, ROOTS)
    assert (group is None) == (name is None)
    if group is not None:
        stands = Path(group.removeprefix("folder:"))
        assert stands.name == name
        assert folder.is_relative_to(stands)
        assert ROOTS[0] in stands.parents
        assert artist_group(None, stands, ROOTS) == group


# Spellings


def together(*pair):
    return bool(similar_spellings(dict.fromkeys(pair, 1)))


SAME = [
    ("The Beatles", "Beatles, The"),
    ("The Beatles", "beatles"),
    ("Beatles,The", "BEATLES"),
    ("Simon & Garfunkel", "Simon and Garfunkel"),
    ("Simon + Garfunkel", "Simon And Garfunkel"),
    ("Florence + The Machine", "Florence & the Machine"),
    ("Guns N' Roses", "Guns and Roses"),
    ("AC/DC", "ACDC"),
    ("AC/DC", "AC-DC"),
    ("R.E.M.", "REM"),
    ("Björk", "Bjork"),
    ("Sigur Rós", "Sigur Ros"),
    ("Mø", "MO"),
    ("Motörhead", "MOTORHEAD"),
    ("Beyonce\u0301", "Beyoncé"),
    ("Jay-Z", "Jay Z"),
    ("P!nk", "Pink"),
    ("Ke$ha", "Kesha"),
    ("Godspeed You! Black Emperor", "Godspeed You Black Emperor!"),
    ("Prince feat. Sheena Easton", "Prince ft Sheena Easton"),
    ("Prince (featuring Sheena Easton)", "Prince Feat Sheena Easton"),
    ("Die Ärzte", "Ärzte, Die"),
    ("A Tribe Called Quest", "Tribe Called Quest, A"),
    ("Pink Floyd", "Pink Flyod"),
    ("Pink Floyd", "PinkFloyd"),
    ("Radiohead", "Radiohaed"),
    ("Radiohead", "Radio Head"),
    ("Radiohead", "Radiohad"),
    ("Led Zeppelin", "Led Zepelin"),
    ("Michael Jackson", "Micheal Jackson"),
    ("Metallica", "Metalica"),
    ("Arctic Monkeys", "Artcic Monkeys"),
    ("John Lennon", "Jonh Lennon"),
    ("Blink 182", "Blink-182"),
    ("Кино", "КИНО"),
    ("Наутилус Помпилиус", "Наутилус Помпилеус"),
    ("Ｐｅｒｆｕｍｅ", "Perfume"),
]
DIFFERENT = [
    ("Blink 182", "Blink 183"),
    ("Sum 41", "Sum 42"),
    ("Front Line Assembly 1", "Front Line Assembly 2"),
    ("Front Line Assembly", "Front Line Assembly 2"),
    ("Vitamin C", "Vitamin D"),
    ("Vitamin C", "Vitamin"),
    ("Black Keys", "Black Keys A"),
    ("Prince", "Prince & The Revolution"),
    ("Prince & the Revolution", "Prince and Revolution"),
    ("Jon Anderson", "John Anderson"),
    ("Queen", "Queens"),
    ("Abba", "Abby"),
    ("Madness", "Madmess"),
    ("Black Cats", "Black Bats"),
    ("Stone Roses", "Phone Roses"),
    ("Nick Cave", "Nick Drake"),
    ("Michael Jackson", "Michael Jacks"),
    ("Michael Jackson", "Mikhael Jakson"),
    ("Bach", "Back"),
    ("김민수", "김민서"),
    ("कि", "कु"),
    ("ハハ", "ババ"),
    ("!!!", "???"),
    ("!!!", "†††"),
    ("Unknown Artist", "unknown artist"),
    ("Various Artists", "Various Artist"),
]


@pytest.mark.parametrize("pair", SAME, ids=" = ".join)
def test_spellings_of_one_artist_are_grouped(pair):
    assert together(*pair)
    assert together(*reversed(pair))


@pytest.mark.parametrize("pair", DIFFERENT, ids=" - ".join)
def test_different_artists_are_not_grouped(pair):
    assert not together(*pair)
    assert not together(*reversed(pair))


def test_most_used_spelling_is_suggested_and_groups_are_sorted():
    counts = {"Beatles": 3, "The Beatles": 40, "beatles, the": 3, "Nora Vale": 9, "Bjork": 30, "Björk": 30, "Queen": 99}
    assert similar_spellings(counts) == [("Bjork", "Björk"), ("The Beatles", "Beatles", "beatles, the")]


def test_typo_and_spelling_join_one_group():
    counts = {"Led Zeppelin": 50, "Led Zepelin": 1, "LED-ZEPPELIN": 2, "led zepelin": 1}
    (group,) = similar_spellings(counts)
    assert group == ("Led Zeppelin", "LED-ZEPPELIN", "Led Zepelin", "led zepelin")


def test_typos_do_not_chain():
    counts = {"Starsailing": 9, "Starsailang": 3, "Starsaitang": 2, "Startaitang": 1}
    groups = similar_spellings(counts)
    assert groups == [("Starsailing", "Starsailang"), ("Starsaitang", "Startaitang")]


def test_no_similar_spellings_in_few_names():
    assert similar_spellings({}) == []
    assert similar_spellings({"Nora Vale": 3}) == []


collections = st.dictionaries(names, st.integers(1, 50), max_size=30)


@given(collections, st.randoms())
def test_groups_are_disjoint_and_ignore_order(counts, random):
    groups = similar_spellings(counts)
    shuffled = list(counts.items())
    random.shuffle(shuffled)
    assert similar_spellings(dict(shuffled)) == groups
    grouped = [name for group in groups for name in group]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) <= set(counts)
    for group in groups:
        assert len(group) > 1
        used = [counts[name] for name in group]
        assert used == sorted(used, reverse=True)
        assert all(parse_artist(name) is not None for name in group)


@given(names, names)
def test_grouping_is_symmetric_and_ignores_counts(a, b):
    assert together(a, b) == together(b, a)
    assert bool(similar_spellings({a: 1, b: 9})) == bool(similar_spellings({a: 9, b: 1}))


@given(names)
def test_case_and_punctuation_variants_are_grouped(name):
    if parse_artist(name) is None or not any(c.isalnum() for c in name):
        return
    for other in (name.upper(), f"{name}.", f" {name}", name.casefold()):
        assert other == name or together(name, other)


def damerau(a, b):
    """Count the edits between two texts (restricted Damerau-Levenshtein) by the table of the definition."""
    d = {(i, 0): i for i in range(len(a) + 1)} | {(0, j): j for j in range(len(b) + 1)}
    for i, j in itertools.product(range(1, len(a) + 1), range(1, len(b) + 1)):
        d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a[i - 1] != b[j - 1]))
        if i > 1 and j > 1 and a[i - 2 : i] == b[j - 1] + b[j - 2]:
            d[i, j] = min(d[i, j], d[i - 2, j - 2] + 1)
    return d[len(a), len(b)]


@settings(max_examples=300)
@given(
    st.text(alphabet=string.ascii_lowercase, min_size=8, max_size=12),
    st.lists(st.tuples(st.integers(1, 11), st.sampled_from("isdt"), st.sampled_from("abz")), max_size=2),
)
def test_words_one_edit_apart_are_grouped(word, edits):
    other = word
    for at, kind, letter in edits:
        at = min(at, len(other) - 1)  # noqa: PLW2901
        if kind == "i":
            other = other[:at] + letter + other[at:]
        elif kind == "s":
            other = other[:at] + letter + other[at + 1 :]
        elif kind == "d":
            other = other[:at] + other[at + 1 :]
        else:
            other = other[: at - 1] + other[at] + other[at - 1] + other[at + 1 :]
    if other == word or min(len(other), len(word)) < 8 or parse_artist(other) is None or parse_artist(word) is None:
        return
    # the first letter of a word may only be swapped
    alike = damerau(word, other) == 1 and (word[0] == other[0] or sorted(word) == sorted(other))
    assert together(word, other) == alike


def test_thousands_of_names_match_brute_force(rng):
    words = made_words(rng, 1500)
    counts = dict.fromkeys(words, 1)
    for name in words[:300]:
        at = int(rng.integers(1, len(name) - 1))
        counts[name[:at] + name[at + 1 :]] = 1
    found = {frozenset(group) for group in similar_spellings(counts)}
    # With equal counts, the first in alphabetical order wins. Similar names join it unless they joined one before.
    hubs, joined = [], {}
    for name in sorted(counts):
        near = (h for h in hubs if abs(len(h) - len(name)) < 2 and h[0] == name[0] and one_edit(h, name))
        hub = next(near, None)
        if hub is None:
            hubs.append(name)
        joined.setdefault(hub or name, set()).add(name)
    assert found == {frozenset(group) for group in joined.values() if len(group) > 1}
    assert len(found) >= 290


def one_edit(a, b):
    if len(a) == len(b):
        different = [i for i in range(len(a)) if a[i] != b[i]]
        swapped = len(different) == 2 and different[1] == different[0] + 1
        return len(different) == 1 or (
            swapped and a[different[0]] == b[different[1]] and a[different[1]] == b[different[0]]
        )
    longer, shorter = sorted((a, b), key=len, reverse=True)
    return any(longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer)))


def made_words(rng, n):
    """Return words of 9 to 12 letters from few syllables, so that many are similar."""
    syllables = ["kan", "ron", "mil", "tor", "bes", "lan"]
    words = set()
    while len(words) < n:
        words.add("".join(rng.choice(syllables, int(rng.integers(3, 5)))) + str(rng.choice(list("aeiou"))))
    return sorted(words)
