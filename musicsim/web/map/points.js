// Fetch the map's data and draw its points. Up to 20,000 points are drawn on a plain canvas, which is fast enough. More
// points are drawn with WebGL. If WebGL is missing or too slow, the plain canvas shows a sample of the points on top of
// a picture of the density of all songs.

import { FULL, onScreen, toScreen } from "./geometry.js";

export const SAMPLE = 8000; // points that the plain canvas shows of a larger map
export const MAX_PLAIN = 20000; // maximum number of songs that are all drawn on the plain canvas
const PROBE = 100000; // number of points for measuring WebGL's speed
const POINT_MS = Symbol.for("musicsim.map-point-ms"); // time to draw a point on this machine, measured once
export const MAX_FRAME_MS = 400; // if drawing takes longer, only a sample is shown
const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;
const MOVE_MS = 600;
const MAX_TRIES = 5;
const CELL_PX = 3; // size of a density cell
const DARKEST = 0.42; // opacity at the highest density
const SHADE = [77, 110, 120]; // a color between ink and accent that no genre has
const GRID = 96; // cells of the landscape along each axis
const SHORE = 8; // cells along its edges where it fades out
const TERRACES = 6;
const HIGHEST = 0.3; // opacity of the highest terrace
const NO_INDEX = new Uint8Array([0xdb, 0x17, 16, 0, 0, 0, 0, 0]).buffer; // empty index, because the library's own point search is not used

/**
 * @typedef {import("./geometry.js").View} View
 * @typedef {{n: number, order: string, tag: string | null, ids: Uint32Array, x: Uint16Array, y: Uint16Array}} Places
 */

/** Fetch and parse a column from /maps: a line of JSON, then arrays. */
async function fetchColumn(base, { model, library }, name) {
  const answer = await fetch(new URL(`maps/${model}/${name}?library=${encodeURIComponent(library)}`, base));
  if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
  const bytes = await answer.arrayBuffer();
  const end = new Uint8Array(bytes).indexOf(10) + 1;
  const said = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 0, end)));
  return { ...said, tag: answer.headers.get("ETag"), bytes, end };
}

async function fetchPlaces(base, map) {
  const { n, order, tag, bytes, end } = await fetchColumn(base, map, "places");
  return {
    n,
    order,
    tag,
    ids: new Uint32Array(bytes, end, n),
    x: new Uint16Array(bytes, end + 4 * n, n),
    y: new Uint16Array(bytes, end + 6 * n, n),
  };
}

/** Return a color, mixed with white if it is too dark for a dark page. */
export function lighten(color) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  if (0.3 * red + 0.59 * green + 0.11 * blue > 75) return color;
  return `#${[red, green, blue].map((part) => Math.round(0.6 * part + 102).toString(16).padStart(2, "0")).join("")}`;
}

async function fetchColors(base, map, by, isDark) {
  const { order, entries, scale, tag, bytes, end } = await fetchColumn(base, map, by);
  const shown = isDark ? entries.map((entry) => ({ ...entry, color: lighten(entry.color) })) : entries;
  return { order, by, tag, entries: shown, scale, codes: new Uint8Array(bytes, end) };
}

/** Fetch the regions and groups of a map, and the group of each song. */
export async function fetchContents(base, map) {
  const { bytes, end, ...said } = await fetchColumn(base, map, "contents");
  return { ...said, codes: new Uint16Array(bytes.slice(end)) };
}

const HIDDEN = { name: "", color: "#808080", n_songs: 0, is_known: false };

/** Return colors, and the codes to show, that hide the songs outside a mask as one more color. */
export function hideOthers(colors, isolated, mask) {
  if (!mask) return { colors, isolated };
  const { entries } = colors;
  const codes = colors.codes.map((code, row) => (mask[row] ? code : entries.length));
  return { colors: { ...colors, entries: [...entries, HIDDEN], codes }, isolated: isolated ?? new Set(entries.keys()) };
}

/** Fetch places and colors of the same songs, and regions. If the library changes between the answers, try again. */
export async function fetchMap(base, map, by, isDark) {
  for (let nTries = 1; ; nTries += 1) {
    const columns = await Promise.all([
      fetchPlaces(base, map), fetchColors(base, map, by, isDark), fetchColumn(base, map, "regions"),
    ]);
    const [places, colors] = columns;
    if (places.order === colors.order) return columns;
    if (nTries === MAX_TRIES) throw new Error("the library keeps changing");
  }
}

/** Return true if WebGL is available; for many points, only in hardware, because probing software takes seconds. */
export function canDrawGl(n) {
  const context = document.createElement("canvas").getContext("webgl");
  const can = Boolean(context?.getExtension("OES_texture_float"));
  const told = context?.getExtension("WEBGL_debug_renderer_info");
  const renderer = told ? context?.getParameter(told.UNMASKED_RENDERER_WEBGL) : "";
  context?.getExtension("WEBGL_lose_context")?.loseContext();
  return can && !(n > PROBE && SOFTWARE.test(renderer));
}

/** Draws all points with regl-scatterplot; SongMap handles the pointer. */
export class GlPoints {
  constructor({ default: createScatterplot, createRenderer }, canvas, { width, height }) {
    this.renderer = createRenderer();
    this.plot = createScatterplot({
      canvas, width, height, renderer: this.renderer, aspectRatio: width / height, cameraIsFixed: true,
      pointScaleMode: "constant", colorBy: "category", opacityBy: "category", sizeBy: "category",
      deselectOnDblClick: false, deselectOnEscape: false,
    });
    this.frameMs = 0;
  }

  /** Return the expected milliseconds per frame for all points; the speed is measured once, on some of them. */
  async probe(places, colors, size) {
    window[POINT_MS] ??= await this.measure(places, colors, size);
    this.frameMs = places.n * window[POINT_MS];
    return this.frameMs;
  }

  async measure(places, colors, size) {
    const n = Math.min(places.n, PROBE);
    await this.draw({ n, x: places.x.subarray(0, n), y: places.y.subarray(0, n) }, colors, size, false);
    const gl = this.renderer.regl._gl;
    const times = [];
    for (let turn = 0; turn < 3; turn += 1) {
      times.push(await new Promise((done) => {
        this.plot.subscribe("drawing", () => {
          gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4)); // waits until the points are drawn
          done(performance.now() - Number(document.timeline.currentTime)); // time since the frame began
        }, 1);
        this.plot.redraw();
      }));
    }
    return times.sort((a, b) => a - b)[1] / n;
  }

  async draw(places, colors, size, moves) {
    this.look(colors, null, size);
    const toView = (values) => Float32Array.from(values, (value) => (2 * value) / FULL - 1);
    const points = { x: toView(places.x), y: toView(places.y), z: colors.codes.subarray(0, places.n) };
    await this.plot.draw(points, {
      zDataType: "categorical", spatialIndex: NO_INDEX, transition: moves, transitionDuration: MOVE_MS,
    });
    this.n = places.n;
  }

  look({ entries }, isolated, size) {
    const isShown = (code) => !isolated || isolated.has(code);
    this.plot.set({
      pointColor: entries.map(({ color }) => color),
      opacity: entries.map((_, code) => (isShown(code) ? 0.85 : 1e-4)),
      pointSize: entries.map(({ is_known: isKnown }) => (isKnown ? size : 0.7 * size)),
    });
  }

  paint({ x, y, zoom }, width, height) {
    const matrix = new Float32Array(16);
    [matrix[0], matrix[5], matrix[10], matrix[15]] = [zoom, zoom, 1, 1];
    matrix[12] = (width / height) * zoom * (1 - 2 * x);
    matrix[13] = zoom * (1 - 2 * y);
    this.plot.view(matrix, { preventEvent: true });
    return { rows: null, nHere: this.n };
  }

  resize(width, height) {
    this.plot.set({ width, height, aspectRatio: width / height });
  }

  close() {
    this.plot.destroy();
    this.renderer.destroy();
  }
}

/** Draws all points, or a sample of them and the density of all songs, on a plain canvas. */
export class PlainPoints {
  constructor(canvas) {
    this.canvas = canvas;
    this.frameMs = 0;
    /** @type {any} places of the points */
    this.places = null;
    /** @type {any} */
    this.colors = null;
    /** @type {Set<number> | null} codes of the shown points; null shows all */
    this.isolated = null;
    this.size = 1;
    /** @type {[View, number, number] | null} what was painted last */
    this.last = null;
  }

  async draw(places, colors, size, moves) {
    if (moves && this.last && places.n <= MAX_PLAIN) await this.glide(this.places, places);
    this.places = places;
    this.look(colors, null, size);
  }

  /** Animate every point from its old position to its new one. */
  async glide(from, to) {
    const start = performance.now();
    for (let share = 0; share < 1; ) {
      share = Math.min(1, (await new Promise(requestAnimationFrame) - start) / MOVE_MS);
      const eased = Math.max(0, share) ** 2 * (3 - 2 * share);
      const between = (a, b) => Uint16Array.from(b, (value, i) => a[i] + (value - a[i]) * eased);
      this.places = { ...from, x: between(from.x, to.x), y: between(from.y, to.y) };
      if (this.last) this.paint(...this.last);
    }
  }

  look(colors, isolated, size) {
    Object.assign(this, { colors, isolated, size });
  }

  paint(view, width, height) {
    const start = performance.now();
    this.last = [view, width, height];
    const ratio = window.devicePixelRatio || 1;
    Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    const { rows, nHere } = this.inView(view);
    if (nHere > rows.length) this.paintDensity(context, view, width, height);
    this.paintPoints(context, rows, view, width, height, nHere > rows.length);
    this.frameMs = performance.now() - start;
    return { rows, nHere };
  }

  /** Return the rows in view to draw as points (the first ones if there are many), and the number in view. */
  inView({ x, y, zoom }) {
    const { n, x: xs, y: ys } = this.places;
    const most = n <= MAX_PLAIN ? n : SAMPLE;
    const [left, right, bottom, top] = [x - 0.5 / zoom, x + 0.5 / zoom, y - 0.5 / zoom, y + 0.5 / zoom]
      .map((share) => share * FULL);
    const { codes } = this.colors;
    const rows = [];
    let nHere = 0;
    for (let i = 0; i < n; i += 1) {
      if (xs[i] < left || xs[i] > right || ys[i] < bottom || ys[i] > top) continue;
      if (this.isolated && !this.isolated.has(codes[i])) continue;
      nHere += 1;
      if (rows.length < most) rows.push(i);
    }
    return { rows, nHere };
  }

  paintPoints(context, rows, view, width, height, isSample) {
    const of = this.colors.entries.map(() => []);
    for (const row of rows) of[this.colors.codes[row]].push(row);
    context.globalAlpha = isSample ? 0.8 : 0.85;
    of.forEach((some, code) => {
      if (!some.length) return;
      const { color, is_known: isKnown } = this.colors.entries[code];
      const radius = ((isKnown ? 1 : 0.7) * this.size) / 2;
      Object.assign(context, { fillStyle: color, strokeStyle: color, lineWidth: 1.4 });
      context.beginPath();
      for (const row of some) {
        const [px, py] = onScreen(this.places, row, view, width, height);
        context.moveTo(px + radius, py);
        context.arc(px, py, radius, 0, 2 * Math.PI);
      }
      if (isKnown) context.fill();
      else context.stroke();
    });
    context.globalAlpha = 1;
  }

  paintDensity(context, view, width, height) {
    const [across, down] = [Math.ceil(width / CELL_PX), Math.ceil(height / CELL_PX)];
    const counts = new Float32Array(across * down);
    const { places, isolated, colors: { codes } } = this;
    for (let i = 0; i < places.n; i += 1) {
      if (isolated && !isolated.has(codes[i])) continue;
      const column = Math.floor((((places.x[i] / FULL - view.x) * view.zoom + 0.5) * width) / CELL_PX);
      const line = Math.floor(((0.5 - (places.y[i] / FULL - view.y) * view.zoom) * height) / CELL_PX);
      if (column >= 0 && column < across && line >= 0 && line < down) counts[line * across + column] += 1;
    }
    const cells = blurred(counts, across, 1).map(Math.log1p);
    const top = 0.95 * cells.reduce((most, value) => Math.max(most, value), 0);
    const image = new ImageData(across, down);
    for (let i = 0; i < cells.length; i += 1) {
      [image.data[4 * i], image.data[4 * i + 1], image.data[4 * i + 2]] = SHADE;
      image.data[4 * i + 3] = Math.round(255 * DARKEST * Math.min(1, cells[i] / top));
    }
    const small = new OffscreenCanvas(across, down);
    small.getContext("2d")?.putImageData(image, 0, 0);
    context.drawImage(small, 0, 0, across * CELL_PX, down * CELL_PX);
  }

  resize() {}

  close() {}
}

/** A soft landscape under the points: how many songs are nearby, in their mean color. The browser scales the picture. */
export class Landscape {
  constructor() {
    this.canvas = Object.assign(document.createElement("canvas"), { className: "land", width: GRID, height: GRID });
  }

  draw({ n, x, y }, { entries, codes }, isolated) {
    const planes = [0, 1, 2, 3].map(() => new Float32Array(GRID * GRID));
    const looks = entries.map(({ color }, code) => (
      !isolated || isolated.has(code) ? [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16)) : null
    ));
    for (let i = 0; i < n; i += 1) {
      const look = looks[codes[i]];
      if (!look) continue;
      const at = Math.floor(((FULL - y[i]) * GRID) / (FULL + 1)) * GRID + Math.floor((x[i] * GRID) / (FULL + 1));
      for (let k = 0; k < 3; k += 1) planes[k][at] += look[k];
      planes[3][at] += 1;
    }
    const radius = Math.max(1, Math.round(0.11 * GRID * Math.max(1, n) ** (-1 / 6)));
    const [red, green, blue, dense] = planes.map((plane) => blurred(plane, GRID, radius));
    const top = dense.reduce((most, value) => Math.max(most, value), 1e-9);
    const image = new ImageData(GRID, GRID);
    const shore = (place) => Math.min(1, (Math.min(place, GRID - 1 - place) + 0.5) / SHORE);
    for (let i = 0; i < dense.length; i += 1) {
      if (dense[i] < 1e-3 * top) continue;
      const level = TERRACES * Math.sqrt(dense[i] / top);
      const height = (Math.floor(level) + Math.max(0, 4 * (level % 1) - 3)) / TERRACES; // flat, then a short slope
      image.data[4 * i] = red[i] / dense[i];
      image.data[4 * i + 1] = green[i] / dense[i];
      image.data[4 * i + 2] = blue[i] / dense[i];
      image.data[4 * i + 3] = 255 * HIGHEST * height * shore(i % GRID) * shore(Math.floor(i / GRID));
    }
    this.canvas.getContext("2d")?.putImageData(image, 0, 0);
    this.canvas.dataset.state = "drawn";
  }

  place(view, width, height) {
    const [left, top] = toScreen([0, 1], view, width, height);
    this.canvas.style.transform = `translate(${left}px, ${top}px) scale(${view.zoom})`;
    this.canvas.style.opacity = String(Math.min(1, 2 / view.zoom)); // close up, it would be one flat color
  }
}

/** Blur rows of `across` cells with three means along each axis, which are nearly a Gaussian. */
export function blurred(cells, across, radius) {
  const down = cells.length / across;
  let [from, to] = [cells, new Float32Array(cells.length)];
  for (const [step, n, line, nLines] of [[1, across, across, down], [across, down, 1, across]]) {
    for (let turn = 0; turn < 3; turn += 1) {
      for (let first = 0; first < nLines; first += 1) {
        let sum = 0;
        for (let at = -radius; at < n; at += 1) {
          if (at + radius < n) sum += from[first * line + (at + radius) * step];
          if (at - radius > 0) sum -= from[first * line + (at - radius - 1) * step];
          if (at >= 0) to[first * line + at * step] = sum / (2 * radius + 1);
        }
      }
      [from, to] = [to, from];
    }
  }
  return from;
}

/**
 * Return the new map's rows in the order of the old map, so that points can move; null if the songs differ.
 * @param {Pick<Places, "n" | "ids">} old @param {Places} places @param {any} colors
 */
export function inOrderOf(old, places, colors) {
  if (old.n !== places.n) return null;
  /** @type {Map<number, number>} */
  const rowOf = new Map();
  for (const [row, id] of places.ids.entries()) rowOf.set(id, row);
  const rows = Uint32Array.from(old.ids, (id) => rowOf.get(id) ?? 0);
  if (rows.some((row, i) => places.ids[row] !== old.ids[i])) return null;
  const taken = (/** @type {any} */ values) => values.constructor.from(rows, (/** @type {number} */ row) => values[row]);
  return [
    { ...places, ids: old.ids, x: taken(places.x), y: taken(places.y) },
    { ...colors, codes: taken(colors.codes) },
  ];
}
