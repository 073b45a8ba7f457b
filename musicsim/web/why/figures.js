// Positions and colors of what *Why?* draws, without elements.

const [DARK, LIGHT] = ["#1f2a2e", "#ffffff"];

/** Return the relative luminance of a color "#rrggbb" (WCAG 2). @param {string} color */
function luminance(color) {
  const linear = (/** @type {number} */ at) => {
    const value = parseInt(color.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(1) + 0.7152 * linear(3) + 0.0722 * linear(5);
}

/** Return the color of letters that are easier to read on a background "#rrggbb". @param {string} color */
export function inkOn(color) {
  const contrast = (/** @type {number} */ a, /** @type {number} */ b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const background = luminance(color);
  const on = (/** @type {string} */ ink) => contrast(background, luminance(ink));
  return on(LIGHT) > on(DARK) ? LIGHT : DARK;
}

/**
 * Return the centers of the buttons of passages: as close to their passages as possible without overlap.
 * @param {number[]} wanted
 * @param {number} width
 * @param {number} size width of a button
 * @returns {number[]}
 */
export function spread(wanted, width, size) {
  const order = wanted.map((x, i) => [x, i]).sort((a, b) => a[0] - b[0]);
  const places = new Array(wanted.length);
  let last = -size / 2;
  for (const [x, i] of order) last = places[i] = Math.max(x, last + size);
  let next = width + size / 2;
  for (const [, i] of order.reverse()) next = places[i] = Math.min(places[i], next - size);
  return places;
}

/**
 * A bar: where it starts and how long it is, in percent of the width, and its points out of 100.
 * @typedef {{left: number, width: number, isNegative: boolean, points: string}} Bar
 */

/**
 * Return the bars of the parts of a similarity, before learning (null without it) and now, on a common scale.
 * @param {{words: string, share: number, share_before: number | null}[]} parts
 * @returns {{words: string, before: Bar | null, now: Bar}[]}
 */
export function barsOf(parts) {
  const shares = parts.flatMap((part) => [part.share, part.share_before ?? 0]);
  const low = Math.min(0, ...shares);
  const span = Math.max(0, ...shares) - low || 1;
  const bar = (/** @type {number} */ share) => ({
    left: (100 * (Math.min(share, 0) - low)) / span,
    width: (100 * Math.abs(share)) / span,
    isNegative: share < 0,
    points: (Math.round(1000 * share) / 10 || 0).toFixed(1).replace("-", "−"),
  });
  return parts.map(({ words, share, share_before: before }) => ({ words, before: before === null ? null : bar(before), now: bar(share) }));
}

/** Return the letter of the shared sound with this place. @param {number} place */
export const letterAt = (place) => String.fromCharCode("A".charCodeAt(0) + place);

/**
 * Return what the two waveforms show: the shared sounds, and both songs with curves on a common scale, up to 1.
 * @param {any} answer
 * @param {(songId: number | null) => string | null} addressOf returns where the sound of a song can be heard
 */
export function wavesOf(answer, addressOf) {
  const loudest = Math.max(1e-9, ...answer.songs.flatMap((song) => song.curve));
  return {
    slots: answer.shared_sounds.map((words, place) => ({ letter: letterAt(place), color: answer.sound_colors[place], words })),
    sides: answer.songs.map((song) => ({
      title: song.title,
      sub: song.by,
      duration_s: song.duration_s,
      starts_s: song.starts_s,
      heard_s: song.heard_s,
      url: addressOf(song.id),
      peaks: song.peaks,
      curve: song.curve.map((value) => Math.max(0, value / loudest)),
      passages: song.passages.map(({ start_s, end_s, sound }) => ({ start_s, end_s, slot: sound })),
    })),
  };
}
