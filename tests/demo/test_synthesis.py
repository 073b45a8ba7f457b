"""The demo collection: plans, sound, files."""

import hashlib
import os
import pickle
import subprocess
import sys
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import PurePosixPath

import mutagen
import numpy as np
import pytest
import soundfile

from musicsim.demo import SAMPLE_RATE, is_packaged, plan_collection, render, synthesis, write_song
from musicsim.demo.composition import compose_drums, compose_score
from musicsim.demo.drums import DRUMS, KITS, TEXTURES, play_drum, play_texture
from musicsim.demo.effects import balance, compress, glide, room_tone
from musicsim.demo.first_songs import FOLDER, N_SONGS, find_sound, read_sound
from musicsim.demo.names import draw_titles
from musicsim.demo.styles import STYLES, find_style
from musicsim.demo.voices import PATCHES, Patch, play_note, softer, sustain

FORBIDDEN = set('<>:"/\\|?*') | {chr(i) for i in range(32)}


@pytest.fixture(scope="module")
def plans():
    return plan_collection()


@pytest.fixture(scope="module")
def one_of_each(plans):
    """The first song of every style, rendered."""
    return {p.style: (p, render(p)) for p in plans[: len(STYLES)]}


def spectrum_peak(sound):
    magnitude = np.abs(np.fft.rfft(sound * np.hanning(sound.size), 1 << 18))
    return np.argmax(magnitude) * SAMPLE_RATE / (1 << 18)


# Plans


def test_collection_size_and_style_interleaving(plans):
    assert len(plans) == len(STYLES) * 5 * 6
    assert len(STYLES) == 12
    assert len({p.style for p in plans[: len(STYLES)]}) == len(STYLES)
    assert len({p.artist for p in plans[: len(STYLES) * 5]}) == len(STYLES) * 5


def test_names_and_paths_are_unique_and_safe(plans):
    assert len({(p.artist.casefold(), p.title.casefold()) for p in plans}) == len(plans)
    assert len({p.relative_path.casefold() for p in plans}) == len(plans)
    for p in plans:
        folder, name = PurePosixPath(p.relative_path).parts
        assert folder == p.artist
        assert name.startswith(f"{p.track:02d} ")
        for piece in (folder, name):
            assert piece.isascii()
            assert not FORBIDDEN & set(piece)
            assert piece == piece.strip(" .")
            assert len(piece) < 100


def test_names_stay_unique_after_words_run_out():
    many = draw_titles(np.random.default_rng(0), 9000)  # the words make about 6,000
    assert len({t.casefold() for t in many}) == 9000
    assert any(t[-1].isdigit() for t in many)


def test_albums_are_consistent(plans):
    albums = defaultdict(list)
    for p in plans:
        albums[p.artist, p.album].append(p)
    for songs in albums.values():
        assert len({p.year for p in songs}) == 1
        assert sorted(p.track for p in songs) == list(range(1, len(songs) + 1))


def test_years_span_decades_but_careers_are_short(plans):
    careers = defaultdict(list)
    for p in plans:
        careers[p.artist].append(p.year)
    assert len({p.year // 10 for p in plans}) >= 5
    assert max(max(y) - min(y) for y in careers.values()) <= 18


def test_tempo_and_duration_are_in_range(plans):
    for p in plans:
        style = find_style(p.style)
        assert style.tempo[0] <= p.tempo <= style.tempo[1]
        assert 20.0 <= p.duration_s <= 26.0
        assert p.n_bars * style.beats * 60.0 / p.tempo < p.duration_s


def test_songs_by_same_artist_differ(plans):
    songs = [p for p in plans if p.artist == plans[0].artist]
    assert len({p.seed for p in songs}) == len({p.tempo for p in songs}) == len(songs)
    assert 1 < len({p.key for p in songs}) <= 3  # the keys that lie well for this artist


def test_seed_determines_plans(plans):
    assert plan_collection() == plans
    other = plan_collection(seed=1)
    assert not {p.relative_path for p in other} & {p.relative_path for p in plans}


def test_larger_collection_keeps_artists_of_smaller_one(plans):
    larger = plan_collection(n_artists_per_style=7)
    assert {p.artist for p in plans} < {p.artist for p in larger}
    assert set(plans) < set(larger)


def test_plan_can_be_pickled(plans):
    assert pickle.loads(pickle.dumps(plans[3])) == plans[3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_artists_per_style": 0}, "n_artists_per_style=0 must be at least 1"),
        ({"n_songs_per_artist": -1}, "n_songs_per_artist=-1"),
        ({"seed": -1}, "seed=-1"),
        ({"styles": ["Polka"]}, "style 'Polka' is unknown"),
        ({"styles": []}, "at least one style"),
        ({"styles": ["House", "House"]}, "without duplicates"),
    ],
)
def test_rejects_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        plan_collection(**arguments)


# Instruments


def test_every_instrument_plays_low_to_high():
    for name, patch in PATCHES.items():
        for pitch in (28, 60, 96):
            sound = play_note(patch, pitch, 0.5, seed=1)
            assert sound.dtype == np.float32
            assert np.isfinite(sound).all(), name
            assert 0.02 < np.abs(sound).max() < 1.5, name
            assert np.abs(sound[:, -1]).max() < 1e-3, name  # no click at the end


def test_soft_touch_lowers_brightness():
    for name in ("nylon guitar", "saw lead", "electric piano"):
        firm, soft = (play_note(p, 60, 1.0, seed=2)[0] for p in (PATCHES[name], softer(PATCHES[name])))
        assert centroid(soft) < 0.95 * centroid(firm), name


def test_drone_loops_without_seam_or_movement():
    loop = sustain(PATCHES["string pad"], 45, (1.0, 1.5, 2.0), np.random.default_rng(0))
    twice = np.tile(loop, 2)
    steps = np.abs(np.diff(twice, axis=1))
    assert steps[:, loop.shape[1] - 1].max() <= np.delete(steps, loop.shape[1] - 1, axis=1).max()
    # Twenty windows: the spectrum of each octave moves by less than the 3 dB of a beating twin at 0.25.
    windows = loop[0].reshape(20, -1) * np.hanning(loop.shape[1] // 20)
    power = np.square(np.abs(np.fft.rfft(windows, axis=1)))
    octaves = np.add.reduceat(power[:, :1024], 2 ** np.arange(3, 10), axis=1)
    assert (10.0 * np.log10(octaves)).std(axis=0).max() < 3.0
    # In just intonation everything is a multiple of half the tonic, 55 Hz here, or its twin half a hertz above.
    magnitude = np.abs(np.fft.rfft(loop[0]))
    hz = np.flatnonzero(magnitude > 1e-3 * magnitude.max()) / 2.0
    assert (np.minimum(hz % 55.0, (hz - 0.5) % 55.0) < 1e-9).all()


@pytest.mark.parametrize("source", ["saw", "triangle", "organ", "string", "piano"])
def test_notes_are_in_tune(source):
    # Bright partials may be louder than the fundamental: the peak must be a harmonic, to 2 cents
    # (the FFT's bins are 0.17 Hz apart, 1.3 cents at 220 Hz).
    peak = spectrum_peak(play_note(Patch(source, cutoff_hz=300.0), 57, 1.5, seed=3)[0])
    harmonic = max(1, round(peak / 220.0))
    assert abs(1200.0 * np.log2(peak / (220.0 * harmonic))) < 2.0


def test_no_energy_above_wavetable_limit():
    sound = play_note(Patch("saw", cutoff_hz=15_000.0, attack_s=0.02, release_s=0.05), 93, 1.0, seed=0)[0]
    power = np.abs(np.fft.rfft(sound * np.hanning(sound.size))) ** 2
    hz = np.fft.rfftfreq(sound.size, 1.0 / SAMPLE_RATE)
    # Reading tables of 2048 samples without interpolation leaves noise of about -50 dB.
    assert power[hz > 15_500].sum() < 1e-4 * power.sum()


def test_plucked_string_decays_high_frequencies_first():
    sound = play_note(PATCHES["steel guitar"], 52, 3.0, seed=0)[0]
    early, late = sound[4000:12000], sound[80000:88000]
    assert late.std() < 0.5 * early.std()
    assert centroid(late) < 0.8 * centroid(early)


def centroid(sound):
    magnitude = np.abs(np.fft.rfft(sound * np.hanning(sound.size)))
    return (magnitude * np.fft.rfftfreq(sound.size, 1.0 / SAMPLE_RATE)).sum() / magnitude.sum()


def test_every_drum_is_audible():
    for kit in KITS.values():
        for name in DRUMS:
            hit = play_drum(kit, name, seed=2)
            assert np.isfinite(hit).all()
            assert 0.05 < np.abs(hit).max() < 3.0
        kick, hat = (centroid(play_drum(kit, name, seed=2)) for name in ("kick", "hat"))
        assert kick < 0.5 * hat


def test_textures_span_song_in_stereo():
    for name in TEXTURES:
        bed = play_texture(name, 5 * SAMPLE_RATE, np.random.default_rng(0))
        assert bed.shape == (2, 5 * SAMPLE_RATE)
        assert 0.005 < bed.std() < 0.5, name
        assert np.corrcoef(bed)[0, 1] < 0.7, name


# Finishing


def octave_levels(sound):
    """Power in the octaves round 63 ... 8000 Hz in dB, by one transform of the whole sound."""
    power = np.square(np.abs(np.fft.rfft(sound.sum(axis=0))))
    hz = np.fft.rfftfreq(sound.shape[1], 1.0 / SAMPLE_RATE)
    edges = 62.5 * 2.0 ** (np.arange(9) - 0.5)
    return 10.0 * np.log10([power[(hz >= lo) & (hz < hi)].sum() for lo, hi in pairwise(edges)])


def test_balance_reaches_target_within_9_db():
    noise = np.random.default_rng(0).standard_normal((2, 5 * SAMPLE_RATE), dtype=np.float32)
    before = octave_levels(noise)
    target = before + np.array([4.0, 2.0, 0.0, -1.0, 1.0, 0.0, -3.0, -6.0])
    reached = octave_levels(balance(noise, target, np.zeros(24), 1.0)) - target
    # The gains are joined by straight lines between the middles of the octaves: a decibel or two is lost.
    assert np.abs(reached - reached[2:6].mean()).max() < 2.0
    far = octave_levels(balance(noise, before + 40.0 * (np.arange(8) == 7), np.zeros(24), 1.0)) - before
    assert far[7] - far[2:6].mean() < 9.5


def test_compression_narrows_dynamic_range():
    rng = np.random.default_rng(1)
    gain = np.repeat([1.0, 0.3], 2 * SAMPLE_RATE)
    sound = (gain * rng.standard_normal((2, gain.size))).astype(np.float32)
    loud, quiet = (half.std() for half in np.split(compress(sound, 0.5), 2, axis=1))
    # Ten decibels become five; the edge between the halves is smoothed over 0.2 s.
    assert 20.0 * np.log10(loud / quiet) == pytest.approx(0.5 * 20.0 * np.log10(1.0 / 0.3), abs=0.5)


def test_room_tone_has_given_level_and_tilt():
    for tilt in (-5.0, 1.0):
        noise = room_tone(6 * SAMPLE_RATE, -60.0, tilt, np.random.default_rng(2))
        assert 20.0 * np.log10(noise.std()) == pytest.approx(-60.0, abs=0.1)
        # From one octave to the next there are twice as many hertz: 3 dB more than the density says.
        slope = np.polyfit(np.arange(7), octave_levels(noise)[1:], 1)[0]
        assert slope == pytest.approx(tilt + 3.0, abs=0.5)


def test_glide_interpolates_values():
    curve = glide(np.array([0.0, 1.0, 0.5]), 4, 7)
    np.testing.assert_array_equal(curve, np.float32([0.0, 0.25, 0.5, 0.75, 1.0, 0.875, 0.75]))


# Composition


def test_chords_are_voice_led_and_in_scale():
    for style in STYLES:
        rng = np.random.default_rng(5)
        score = compose_score(style, 12, 3, rng, style.scales[0])
        assert sum(s.n_bars for s in score.sections) == 12
        scale = {(3 + step) % 12 for step in score.scale}
        diatonic = [p for p in style.parts if p.figure not in ("texture", "chug", "fingerpick")]
        for part in diatonic:
            notes = list(synthesis.FIGURES[part.figure](score, part, rng))
            assert {n.pitch % 12 for n in notes} <= scale
            assert all(0.0 <= n.start < 12 * style.beats and n.length > 0.0 for n in notes)
            assert all(0.0 < n.velocity <= 1.0 for n in notes)
            if part.figure == "hold":
                # semitones a voice; parallel shifts would reach 7
                assert largest_move(notes) <= 4.0, style.name


def largest_move(notes):
    """How far a chord's voices go to the next one, in the mean over the voices; the worst change."""
    chords = defaultdict(list)
    for n in notes:
        chords[n.start].append(n.pitch)
    rows = [sorted(chords[start]) for start in sorted(chords)]
    return max((np.abs(np.subtract(a, b)).mean() for a, b in pairwise(rows)), default=0.0)


def test_still_bars_have_given_share_and_no_notes():
    style = find_style("House")
    for seed in range(20):
        rng = np.random.default_rng(seed)
        score = compose_score(style, 20, 0, rng, "minor", 0.3)
        still = {bar for bar, _ in score.bars("s")}
        assert 0.15 <= len(still) / 20 <= 0.4  # 0.3, in one or two places of whole bars
        assert {score.chords[bar] for bar in still} == {0}
        played = [n for p in style.parts for n in synthesis.FIGURES[p.figure](score, p, rng)]
        played += compose_drums(style, score, rng, 0)
        assert not still & {int(n.start // style.beats) for n in played}
        assert not compose_score(style, 20, 0, np.random.default_rng(seed), "minor").bars("s")


def test_drums_vary_in_strength():
    style = find_style("Drum and Bass")
    rng = np.random.default_rng(0)
    hits = compose_drums(style, compose_score(style, 16, 0, rng, "minor"), rng, 0)
    strengths = {round(h.velocity, 3) for h in hits if h.drum == "snare"}
    assert len(strengths) > 10


# Sound


@pytest.mark.long
def test_rendered_levels_duration_and_stereo(one_of_each):
    for style, (plan, sound) in one_of_each.items():
        assert sound.shape == (round(plan.duration_s * SAMPLE_RATE), 2)
        assert sound.dtype == np.float32
        assert np.isfinite(sound).all(), style
        assert 0.2 < np.abs(sound).max() <= 0.95, style
        assert 0.03 < sound.std() < 0.25, style
        assert np.abs(sound.mean(axis=0)).max() < 0.01, style
        assert np.abs(sound[[0, -1]]).max() < 1e-3, style  # faded in and out
        # two channels, not one twice, and they do not cancel in mono
        assert (sound[:, 0] - sound[:, 1]).std() > 0.05 * sound.std(), style
        assert sound.mean(axis=1).std() > 0.5 * sound.std(), style


def test_songs_have_no_silent_second(one_of_each):
    # Solo instruments may breathe and reverbs bridge: -50 dB below the whole is still heard.
    for plan, sound in one_of_each.values():
        seconds = sound[: int(plan.duration_s - 3) * SAMPLE_RATE].reshape(-1, SAMPLE_RATE * 2)
        assert seconds.std(axis=1).min() > 0.003 * sound.std(), plan.style


def test_plan_and_seed_determine_samples(plans):
    small = plan_collection(styles=["Folk"], n_artists_per_style=1, n_songs_per_artist=2)
    first = render(small[0])
    np.testing.assert_array_equal(first, render(small[0]))
    second = render(small[1])
    n = min(len(first), len(second))
    assert abs(np.corrcoef(first[:n, 0], second[:n, 0])[0, 1]) < 0.5


@pytest.mark.long
def test_other_process_renders_same_samples(one_of_each):
    # Another hash seed: nothing may depend on the order of sets or on hash().
    plan, sound = one_of_each["Choral"]
    code = (
        "import hashlib; from musicsim.demo import plan_collection, render;"
        f"p = next(p for p in plan_collection() if p.relative_path == {plan.relative_path!r});"
        "print(hashlib.sha256(render(p).tobytes()).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == hashlib.sha256(sound.tobytes()).hexdigest()


def test_styles_sound_different(one_of_each):
    def low_share(name):
        sound = one_of_each[name][1].mean(axis=1)
        power = np.abs(np.fft.rfft(sound)) ** 2
        hz = np.fft.rfftfreq(sound.size, 1.0 / SAMPLE_RATE)
        return power[hz < 110].sum() / power.sum()

    assert low_share("Techno") > 2 * low_share("Baroque")
    assert low_share("Drum and Bass") > 2 * low_share("Choral")


@pytest.mark.long
def test_songs_by_same_artist_share_balance(plans):
    artists = list(dict.fromkeys(p.artist for p in plans if p.style in ("Folk", "Jazz")))[:4]
    songs = [[p for p in plans if p.artist == artist][:2] for artist in artists]
    # below 180 Hz it depends on whether a bass plays
    levels = np.array([[octave_levels(render(p).T)[2:] for p in pair] for pair in songs])
    levels -= levels.mean(axis=2, keepdims=True)
    within = np.abs(levels[:, 0] - levels[:, 1]).mean()
    between = np.abs(levels[:, None, 0] - levels[None, :, 1])[~np.eye(4, dtype=bool)].mean()
    assert within < 0.6 * between


# Files


@pytest.fixture(scope="module")
def two_formats(plans):
    flac = next(p for p in plans if p.relative_path.endswith(".flac") and not is_packaged(p))
    ogg = next(p for p in plans if p.relative_path.endswith(".ogg"))
    return flac, ogg


def test_most_artists_use_flac_and_some_ogg(plans):
    ogg = {p.artist for p in plans if p.relative_path.endswith(".ogg")}
    flac = {p.artist for p in plans if p.relative_path.endswith(".flac")}
    assert not ogg & flac
    assert 0.05 < len(ogg) / (len(ogg) + len(flac)) < 0.25


def test_written_files_contain_sound_and_tags(two_formats, tmp_path):
    for plan in two_formats:
        path = write_song(plan, tmp_path)
        assert path == tmp_path / plan.relative_path
        tags = mutagen.File(path)
        expected = {"title": plan.title, "artist": plan.artist, "albumartist": plan.artist, "album": plan.album}
        expected |= {"tracknumber": str(plan.track), "date": str(plan.year), "genre": plan.style}
        assert {key: tags[key] for key in expected} == {key: [value] for key, value in expected.items()}
        assert tags.info.length == pytest.approx(plan.duration_s, abs=1e-4)
        samples, rate = soundfile.read(path, dtype="float32")
        assert rate == SAMPLE_RATE
        sound = render(plan)
        assert samples.shape == sound.shape
        assert np.abs(samples).max() < 1.0  # a lossy codec may exceed the ceiling a little
        if path.suffix == ".flac":
            # half a step of 16 bits, plus one for how the file's reader scales
            np.testing.assert_allclose(samples, sound, atol=1.6 / 32768)
    assert not list(tmp_path.rglob("*.part"))


def test_packaged_sounds_are_those_of_first_songs(plans, one_of_each):
    """If this fails after a change of the demo, run ``python -m docs.demo_songs``."""
    first = plans[:N_SONGS]
    assert {path.name for path in FOLDER.iterdir()} == {f"{synthesis.mark(plan)}.ogg" for plan in first}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 3e6
    assert [is_packaged(plan) for plan in plans[: N_SONGS + 1]] == [True] * N_SONGS + [False]
    for plan in first:
        _, sound = one_of_each[plan.style]
        error = read_sound(find_sound(synthesis.mark(plan))) - sound
        # Vorbis at this rate leaves 16 to 23 dB; another song would leave less than 0
        assert 10 * np.log10(np.square(sound).mean() / np.square(error).mean()) > 12, plan.style


def test_first_songs_are_written_without_composing(plans, tmp_path, monkeypatch):
    monkeypatch.setattr(synthesis, "render", lambda _: pytest.fail("composed"))
    tags = mutagen.File(write_song(plans[0], tmp_path))
    assert (tags["title"], tags["artist"]) == ([plans[0].title], [plans[0].artist])
    assert tags.info.length == pytest.approx(plans[0].duration_s, abs=1e-4)


@pytest.mark.long
def test_other_process_writes_same_bytes(two_formats, tmp_path):
    # models are fitted on songs sorted by the hash of their bytes
    code = (
        "import sys; from musicsim.demo import plan_collection, write_song;"
        "[write_song(p, sys.argv[1]) for p in plan_collection() if p.relative_path in sys.argv[2:]]"
    )
    names = [plan.relative_path for plan in two_formats]
    subprocess.run([sys.executable, "-c", code, tmp_path / "there", *names], check=True)
    for plan in two_formats:
        path = write_song(plan, tmp_path / "here")
        assert path.read_bytes() == (tmp_path / "there" / plan.relative_path).read_bytes(), plan.relative_path


def test_only_changed_plan_rewrites_file(two_formats, tmp_path, monkeypatch):
    plan = two_formats[0]
    path = write_song(plan, tmp_path)
    os.utime(path, (1, 1))
    monkeypatch.setattr(synthesis, "render", lambda plan: pytest.fail("rendered again"))
    write_song(plan, tmp_path)
    assert path.stat().st_mtime == 1
    monkeypatch.undo()
    monkeypatch.setattr(synthesis, "VERSION", 999)
    write_song(plan, tmp_path)
    assert path.stat().st_mtime != 1


def test_invalid_existing_file_is_replaced(two_formats, tmp_path):
    plan = two_formats[0]
    path = tmp_path / plan.relative_path
    path.parent.mkdir()
    path.write_bytes(b"half a file")
    assert mutagen.File(write_song(plan, tmp_path)).info.length > 20


def test_failed_write_leaves_no_file(two_formats, tmp_path, monkeypatch):
    plan = two_formats[0]

    def disk_full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", disk_full)
    with pytest.raises(OSError, match="No space left"):
        write_song(plan, tmp_path)
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_killed_write_leaves_no_partial_file(two_formats, tmp_path):
    plan = two_formats[0]
    child = os.fork()
    if child == 0:
        os.replace = lambda source, target: os._exit(9)  # the process ends between writing and renaming
        write_song(plan, tmp_path)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    path = tmp_path / plan.relative_path
    assert not path.exists()
    (left,) = path.parent.glob(".*.part")
    two_hours_ago = time.time() - 7200
    os.utime(left, (two_hours_ago, two_hours_ago))
    write_song(plan, tmp_path)
    assert [p.name for p in path.parent.iterdir()] == [path.name]  # what the dead run left is swept up
