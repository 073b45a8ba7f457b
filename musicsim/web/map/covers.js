// Covers on the map instead of points, if few songs are in view and there is room for them.

import { onScreen } from "./geometry.js";

export const MAX_COVERS = 60; // songs in view; with more, the map shows points
const MIN_ZOOM = 2; // the whole map shows points, however few
const MIN_SHARE = 0.6; // of the songs in view must have room for a cover
const GAP_PX = 4;
const MAX_KEPT = 150; // covers in memory, each a small canvas of some 20 kB

/**
 * Return the rows that get a cover: those that do not overlap an earlier one; none if there is too little room.
 * @param {any} places @param {number[]} rows songs in view @param {import("./geometry.js").View} view
 * @param {import("./geometry.js").Size} size @param {number} side of a cover in pixels @returns {number[]}
 */
export function coveredRows(places, rows, view, { width, height }, side) {
  if (view.zoom < MIN_ZOOM || !rows.length || rows.length > MAX_COVERS) return [];
  /** @type {[number, number][]} */
  const taken = [];
  const free = rows.filter((row) => {
    const [px, py] = onScreen(places, row, view, width, height);
    if (taken.some(([x, y]) => Math.abs(x - px) < side + GAP_PX && Math.abs(y - py) < side + GAP_PX)) return false;
    taken.push([px, py]);
    return true;
  });
  return free.length >= MIN_SHARE * rows.length ? free : [];
}

/** The pictures of covers, small and ready to be drawn; the least recently drawn ones are forgotten. */
export class CoverStore {
  /** @param {() => void} onLoad a cover is ready */
  constructor(onLoad) {
    this.onLoad = onLoad;
    /** @type {Map<string, HTMLCanvasElement | null>} keyed by address; null while it loads, or if it cannot be loaded */
    this.kept = new Map();
  }

  /** Return a cover; if it is not there yet, load it unless the map moves. @param {string} address @param {number} pixels @param {boolean} isMoving */
  get(address, pixels, isMoving) {
    const key = `${address} ${pixels}`;
    const cover = this.kept.get(key);
    if (cover) {
      this.kept.delete(key); // comes last now
      this.kept.set(key, cover);
    } else if (cover === undefined && !isMoving) {
      this.load(address, pixels, key);
    }
    return cover ?? null;
  }

  async load(address, pixels, key) {
    this.kept.set(key, null);
    if (this.kept.size > MAX_KEPT) this.kept.delete(this.kept.keys().next().value ?? "");
    const image = new Image();
    image.src = address;
    try {
      await image.decode();
    } catch {
      return; // the point stays
    }
    const canvas = Object.assign(document.createElement("canvas"), { width: pixels, height: pixels });
    const { naturalWidth: width, naturalHeight: height } = image;
    const side = Math.min(width, height);
    canvas.getContext("2d")?.drawImage(image, (width - side) / 2, (height - side) / 2, side, side, 0, 0, pixels, pixels);
    if (!this.kept.has(key)) return;
    this.kept.set(key, canvas);
    this.onLoad();
  }
}
