// Places on the map, which are shares of its width and height, and pixels of the stage that shows a part of the map.

/**
 * The place at the center of the stage, and how much larger the map is than the stage.
 * @typedef {{x: number, y: number, zoom: number}} View
 * @typedef {{width: number, height: number}} Size
 * @typedef {[number, number]} Pair a place, or pixels from the left and from the top
 */

export const FULL = 65535; // largest coordinate of a song along each axis
const ZOOM = [0.1, 60];
const FARTHEST = [-9, 10];
const FILLED = 0.7; // share of the stage that a group of songs fills
const OUTSIDE = 0.05; // share of a group's songs that may be outside, at each edge
const CLOSEST = 6; // largest zoom for a group
const ROOM = 0.06; // margin around a query outside the map

const between = (/** @type {number} */ value, /** @type {number[]} */ [low, high]) => Math.min(high, Math.max(low, value));

/** Return the pixels of a place. @param {number[]} place @param {View} view @param {number} width @param {number} height @returns {Pair} */
export function toScreen([x, y], view, width, height) {
  return [((x - view.x) * view.zoom + 0.5) * width, (0.5 - (y - view.y) * view.zoom) * height];
}

/** Return a song's position on the stage, in pixels. @param {any} places @param {number} row @param {View} view @param {number} width @param {number} height */
export function onScreen({ x, y }, row, view, width, height) {
  return toScreen([x[row] / FULL, y[row] / FULL], view, width, height);
}

/** Return the place of a pixel. @param {number} px @param {number} py @param {View} view @param {Size} size @returns {Pair} */
export function toPlace(px, py, { x, y, zoom }, { width, height }) {
  return [(px / width - 0.5) / zoom + x, (0.5 - py / height) / zoom + y];
}

/** Return a view on the way between two; the zoom grows by equal factors. @param {View} from @param {View} to @param {number} share @returns {View} */
export function viewBetween(from, to, share) {
  const zoom = from.zoom * (to.zoom / from.zoom) ** share;
  // the place that both views show at the same pixel stays there
  const way = Math.abs(1 / to.zoom - 1 / from.zoom) < 1e-9 ? share : (1 / zoom - 1 / from.zoom) / (1 / to.zoom - 1 / from.zoom);
  return { x: from.x + (to.x - from.x) * way, y: from.y + (to.y - from.y) * way, zoom };
}

/** Return a view without its excess: the map stays near, neither too large nor too small. @param {View} view @returns {View} */
export function limited({ x, y, zoom }) {
  return { x: between(x, FARTHEST), y: between(y, FARTHEST), zoom: between(zoom, ZOOM) };
}

/** Return a view that is larger by a factor; the place of one pixel stays. @param {View} view @param {number} by @param {number[]} pixel @param {Size} size @returns {View} */
export function zoomed(view, by, [px, py], size) {
  const zoom = between(view.zoom * by, ZOOM);
  const [x, y] = toPlace(px, py, view, size);
  return { x: x - (px / size.width - 0.5) / zoom, y: y - (0.5 - py / size.height) / zoom, zoom };
}

/** Return the view of all songs, and of a query even if it is outside the map. @param {number[] | null} query @returns {View} */
export function viewOfAll(query) {
  if (!query?.some((at) => at < 0 || at > 1)) return { x: 0.5, y: 0.5, zoom: 1 };
  const [left, bottom] = query.map((at) => Math.min(0, at - ROOM));
  const [right, top] = query.map((at) => Math.max(1, at + ROOM));
  return { x: (left + right) / 2, y: (bottom + top) / 2, zoom: 1 / Math.max(right - left, top - bottom) };
}

/** Return the view of most of some songs, without the farthest ones. @param {{x: ArrayLike<number>, y: ArrayLike<number>}} places @param {number[]} rows @returns {View} */
export function viewOfRows({ x, y }, rows) {
  const [across, up] = [x, y].map((values) => {
    const sorted = rows.map((row) => values[row] / FULL).sort((a, b) => a - b);
    const cut = Math.floor(OUTSIDE * sorted.length);
    return [sorted[cut], sorted[sorted.length - 1 - cut]];
  });
  const zoom = between(FILLED / Math.max(across[1] - across[0], up[1] - up[0], 1e-6), [1, CLOSEST]);
  if (zoom === 1) return viewOfAll(null);
  return { x: (across[0] + across[1]) / 2, y: (up[0] + up[1]) / 2, zoom };
}

/**
 * Return how far a point is from another one in a direction; sideways distance counts double. Points that are more
 * sideways than ahead are infinitely far.
 * @param {number[]} from @param {number[]} to @param {number[]} direction @returns {number}
 */
export function distanceAhead([px, py], [x, y], [right, down]) {
  const along = (x - px) * right + (y - py) * down;
  const aside = Math.abs((x - px) * down) + Math.abs((y - py) * right);
  return along > 0.01 && aside <= along ? along + 2 * aside : Infinity;
}

/**
 * Return the rows of the songs inside a closed outline, whose corners are places on the map.
 * @param {{x: ArrayLike<number>, y: ArrayLike<number>, n: number}} places @param {number[][]} corners @returns {number[]}
 */
export function insideOf({ x, y, n }, corners) {
  const [xs, ys] = [0, 1].map((axis) => corners.map((corner) => corner[axis] * FULL));
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const rows = [];
  for (let row = 0; row < n; row += 1) {
    const [px, py] = [x[row], y[row]];
    if (px < left || px > right || py < low || py > high) continue;
    let isInside = false; // a ray to the right crosses the outline an odd number of times
    for (let i = 0, j = xs.length - 1; i < xs.length; j = i, i += 1) {
      const isCrossed = ys[i] > py !== ys[j] > py && px < ((xs[j] - xs[i]) * (py - ys[i])) / (ys[j] - ys[i]) + xs[i];
      if (isCrossed) isInside = !isInside;
    }
    if (isInside) rows.push(row);
  }
  return rows;
}
