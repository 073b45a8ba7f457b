// What a map's legend shows: as many entries as fit, and the words of a scale.

const LINES = 2; // lines of entries before a button shows the others

/** Return how many elements with these widths, the first ones, fit in the lines of a legend. */
export function nFitting(/** @type {number[]} */ widths, room, gap, nLines = LINES) {
  let [line, used] = [1, 0];
  for (const [i, width] of widths.entries()) {
    const isFirst = used === 0;
    if (!isFirst && used + gap + width > room) [line, used] = [line + 1, width];
    else used += (isFirst ? 0 : gap) + width;
    if (line > nLines) return i;
  }
  return widths.length;
}

/**
 * Return the entries that are hidden behind a button. If all fit without the button, none is hidden. Chosen entries
 * are always shown, because a listener must see which songs the map shows.
 * @param {number[]} widths of the entries
 * @param {{room: number, gap: number, button: number, isChosen: (i: number) => boolean}} look
 * @returns {number[]}
 */
export function hiddenEntries(widths, { room, gap, button, isChosen }) {
  if (nFitting(widths, room, gap) === widths.length) return [];
  const left = room - button - gap;
  const isFirst = (i, n) => i < n || isChosen(i);
  let n = Math.max(1, nFitting(widths, left, gap));
  for (; n > 1; n -= 1) {
    const shown = widths.filter((_, i) => isFirst(i, n));
    if (nFitting(shown, left, gap) === shown.length) break;
  }
  return widths.flatMap((_, i) => (isFirst(i, n) ? [] : [i]));
}

/**
 * Return the texts of a scale: its name, both ends, and the exact range. Ends without words are numbers.
 * @param {string} by
 * @param {{low: number, high: number, unit: string, low_word: string, high_word: string}} scale
 */
export function scaleTexts(by, scale) {
  const { low, high, unit, low_word: lowWord, high_word: highWord } = scale;
  const numbers = [low, high].map((value) => String(Math.round(value)));
  return {
    name: `${by}:`, ends: lowWord && highWord ? [lowWord, highWord] : numbers,
    range: `${numbers.join(" to ")}${unit ? ` ${unit}` : ""}`,
  };
}
