// The map's view, pointer, marks and names. It tells its owner about clicks, outlined songs, and the song that the
// pointer rests on. Strings are set as text, never as markup.

import { BASE } from "../addresses.js";
import { applyStyle, fetchStyle } from "../component.js";
import { button, element, iconButton } from "../elements.js";
import { stored } from "../storage.js";
import { Contents } from "./contents.js";
import { CoverStore, MAX_COVERS, coveredRows } from "./covers.js";
import { figureOf, saveFigure, svgElement } from "./figure.js";
import { FULL, distanceAhead, insideOf, limited, onScreen, toPlace, toScreen, viewBetween, viewOfAll, viewOfRows, zoomed } from "./geometry.js";
import { hiddenEntries, scaleTexts } from "./legend.js";
import {
  GlPoints, Landscape, MAX_FRAME_MS, MAX_PLAIN, PlainPoints, SAMPLE, canDrawGl, fetchContents, fetchMap, hideOthers, inOrderOf,
} from "./points.js";
import { followsSong, isOneLonger, walkLines } from "./walk.js";

const STYLE = await fetchStyle("map.css", import.meta.url);
const SETTLED_MS = 140; // time after the last move until the map is drawn, if drawing is slow
const SLOW_FRAME_MS = 50;
const HEARD_MS = 300; // the pointer rests so long on a song before it is heard
const LABEL_MS = 60;
const NEAR_PX = 14;
const TAP_PX = 4;
const STEP = 1.5; // zoom factor of a button or key
const MAX_NAMES = [12, 16, 24]; // by level, from the whole map to details
const ROOM_PX = 40000; // area of the stage per name
const NAME_PX = 18; // height of a name
const CROWD_PX = 6; // size of a cell in which points are counted
const FLIGHT_MS = 450;
const STEP_MS = 1000; // the line of the queue grows to the next song in this time
const MARKED = 4; // a name that covers a marked point counts as covering this many points
const MAX_COVERED = 0.01; // share of the points that a name may cover; three points are always allowed
const MANY = 100; // number of marks above which rings are thinner
const LEGEND_PX = 20; // height per legend entry in a saved figure
const LEGEND_WIDTH_PX = 180;
const DRAWING = new URL("./vendor/regl-scatterplot-1.16.0.min.js", import.meta.url).href;
const RED = "#d4002a";
const COVER_PX = 40; // side of a cover in a small window
const REST_MS = 150; // covers are loaded when the map has rested so long
const HOVER = "musicsim.map hover"; // key in the browser's storage: true to play the song under the pointer
const CONTENTS = "musicsim.map contents"; // key in the browser's storage: true if they are open
const WIDE_PX = 1300; // at this width, the contents are open at first
const MAX_FRAME = Symbol.for("musicsim.map-max-frame-ms"); // set by tests, so that any speed is accepted
const ICONS = {
  contents: "M4 6h.01M4 12h3M4 18h3M8 6h12M11 12h9M11 18h9",
  zoomIn: "M12 5v14M5 12h14",
  zoomOut: "M5 12h14",
  current: "M12 7a5 5 0 1 0 0 10 5 5 0 0 0 0-10zM12 3v4M12 17v4M3 12h4M17 12h4",
  home: "M4 11l8-7 8 7M6 10v9h12v-9",
  more: "M5 12h.01M12 12h.01M19 12h.01",
};
const WALKS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const isStill = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

const wordButton = (className, word, act, label = word) => button(label, act, { className }, word);

function tool(name, label, act) {
  const made = iconButton(ICONS[name], label, act, { className: "tool" });
  made.dataset.tool = name;
  return made;
}

/**
 * What the owner of a map does.
 * @typedef {object} Handlers
 * @property {(id: number) => void} [onPick] a song was clicked
 * @property {(id: number) => boolean} [isDisliked] with it, the map has contents, which play typical songs that are not disliked
 * @property {(id: number | null) => void} [onPreview] the pointer rests on a song; null if it has left the song
 * @property {(ids: number[]) => void} [onOutline] songs were outlined
 * @property {(isFolded: boolean) => void} [onFold] the list next to the map is to be hidden
 * @property {HTMLElement[]} [corner] controls above the map
 * @property {HTMLElement[]} [choices] controls below the other tools
 */

export class SongMap {
  /** @param {HTMLElement} parent @param {Handlers} handlers */
  constructor(parent, handlers) {
    applyStyle(parent, STYLE);
    this.handlers = handlers;
    this.root = element("div", "musicsim-map");
    this.root.dataset.testid = "map";
    /** @type {any} */ (this.root).map = this;
    parent.append(this.root);
    /** @type {import("./points.js").View} */
    this.view = { x: 0.5, y: 0.5, zoom: 1 };
    /** @type {any} names of regions, from large to small ones */
    this.levels = [];
    this.size = 1;
    this.labels = new Map();
    this.land = new Landscape();
    /** @type {any} what the owner wants to see */
    this.data = undefined;
    /** @type {any} places of the songs */
    this.places = undefined;
    /** @type {any} colors of the songs, and the legend */
    this.colors = undefined;
    /** @type {any} the points that are drawn: PlainPoints or GlPoints */
    this.points = null;
    /** @type {any} rows of the marked songs */
    this.marks = undefined;
    /** @type {any} the rows drawn as points, and the number of songs in view */
    this.shown = undefined;
    /** @type {any} size of the stage in pixels */
    this.seen = undefined;
    /** @type {Set<number> | null} codes of the legend that are shown alone */
    this.isolated = null;
    /** @type {Uint8Array | null} 1 for each song of the group that is shown alone */
    this.mask = null;
    /** @type {number[]} rows of the next songs of the queue */
    this.coming = [];
    this.walked = 1; // share of the last step of the queue's line
    this.steppedAt = 0;
    this.movedAt = -Infinity; // when the listener last moved the map
    /** @type {any} the contents next to the map, once they were opened */
    this.contents = null;
    this.covers = new CoverStore(() => this.paintMarks());
    /** @type {any} the rows in view, and for which view and picture */
    this.here = null;
    this.coverSide = COVER_PX;
    this.isMoving = false;
    this.hasCovers = false;
    /** @type {Set<number>} rows that are drawn as covers */
    this.covered = new Set();
    /** @type {any} the view that a flight leads to */
    this.destination = null;
    /** @type {number | null} row selected with the keys */
    this.at = null;
    /** @type {number | null} row under the pointer */
    this.pointed = null;
    /** @type {any} two fingers on the map */
    this.fingers = null;
    /** @type {any} the pressed pointer */
    this.held = null;
    /** @type {any} corners of the outline that is being drawn */
    this.outline = null;
    /** @type {any} the canvas of the points */
    this.canvas = null;
    /** @type {any[]} the shown names of regions */
    this.placed = [];
    this.drawn = "";
    this.isNew = true;
    this.nChosenFor = -1;
    this.closing = new AbortController();
    this.build();
    this.wire();
    this.resizing = new ResizeObserver(() => this.fit());
    this.resizing.observe(this.stage);
  }

  // ------------------------------------------------------------------------------------- elements

  build() {
    this.overlay = element("canvas", "marks");
    this.names = element("div", "names");
    this.names.setAttribute("aria-hidden", "true");
    this.tip = element("div", "tip");
    this.tip.hidden = true;
    this.words = element("div", "words", "Drawing the map…");
    this.tools = element("div", "tools");
    this.above = element("div", "above", ...(this.handlers.corner ?? []), this.tools);
    this.stage = element("div", "stage", this.land.canvas, this.overlay, this.names, this.words, this.tip);
    this.stage.tabIndex = 0;
    this.stage.setAttribute("role", "application");
    this.stage.setAttribute("aria-roledescription", "map");
    this.entries = element("div", "entries");
    this.scale = element("span", "ends");
    this.more = wordButton("more", "", () => this.showAllEntries(!this.hasAllEntries));
    this.more.hidden = true;
    this.legend = element("div", "legend", this.scale, this.entries, this.more);
    this.status = element("div", "status");
    this.said = element("div", "said");
    this.said.setAttribute("role", "status");
    this.frame = element("div", "frame", this.stage);
    this.root.append(this.above, this.frame, this.legend, this.status, this.said);
  }

  addTools({ height }) {
    const { onOutline: canSelect, onPreview: canPreview, onFold: canFold } = this.handlers;
    const act = (label, does) => wordButton("item", label, does);
    const toggle = (label, isOn, does) => {
      const made = act(label, () => press(made.getAttribute("aria-pressed") !== "true"));
      const press = (isPressed) => { made.setAttribute("aria-pressed", String(isPressed)); does(isPressed); };
      press(isOn);
      return made;
    };
    const outline = (name) => this.use(this.tool === name ? null : name);
    const save = (kind) => wordButton("kind", kind.toUpperCase(), () => saveFigure(this.figure(), "map", kind), `Save as ${kind.toUpperCase()}`);
    const lasso = act("Lasso", () => outline("lasso"));
    lasso.dataset.tool = "lasso";
    this.menu = element(
      "div",
      "menu",
      ...(canSelect ? [lasso, act("Select a rectangle", () => outline("rectangle"))] : []),
      toggle("Region names", !height, (isOn) => { this.hasNames = isOn; this.paint(); }),
      ...(canPreview && matchMedia("(hover: hover)").matches
        ? [toggle("Play on hover", Boolean(stored("localStorage", HOVER)), (isOn) => { this.isHearing = isOn; stored("localStorage", HOVER, isOn); })]
        : []),
      ...(canFold ? [toggle("Hide the list", false, (isOn) => { canFold(isOn); this.fit(); })] : []),
      ...(document.fullscreenEnabled ? [act("Full screen", () => this.expand())] : []),
      element("div", "save", "Save picture", save("png"), save("svg")),
      ...(this.handlers.choices ?? []),
    );
    this.menu.addEventListener("click", ({ target }) => target.closest("button") && this.showMenu(false));
    this.menu.addEventListener("change", () => { this.showMenu(false); this.opener.focus(); });
    this.opener = tool("more", "More tools", () => this.showMenu(this.menu.hidden));
    this.whole = tool("home", "Whole map", () => this.goHome());
    this.goCurrent = tool("current", "Current song", () => { this.flyTo(this.data.chosen); this.stage.focus(); });
    const hasContents = Boolean(this.handlers.isDisliked);
    this.listing = tool("contents", "Contents", () => this.openContents(!this.hasContents));
    this.listing.ariaExpanded = "false";
    this.tools.replaceChildren(
      ...(hasContents ? [this.listing] : []),
      tool("zoomIn", "Zoom in", () => this.zoom(STEP)),
      tool("zoomOut", "Zoom out", () => this.zoom(1 / STEP)),
      this.goCurrent, this.whole, this.opener, this.menu,
    );
    this.showMenu(false);
    if (hasContents && (stored("localStorage", CONTENTS) ?? this.root.clientWidth >= WIDE_PX)) this.showContents(true);
  }

  showMenu(isOpen) {
    this.menu.hidden = !isOpen;
    this.opener.setAttribute("aria-expanded", String(isOpen));
  }

  use(tool) {
    this.tool = tool;
    this.stage.dataset.tool = tool ?? "";
    this.menu.querySelector("[data-tool=lasso]")?.setAttribute("aria-pressed", String(tool === "lasso"));
  }

  /** Open or close the contents next to the map, as the listener wants it from now on. */
  openContents(isOpen) {
    stored("localStorage", CONTENTS, isOpen);
    this.showContents(isOpen);
    if (!isOpen && this.mask) this.showGroups(null);
    (isOpen ? this.contents.root.querySelector("[role=treeitem][tabindex='0']") : this.listing)?.focus();
  }

  showContents(isOpen) {
    this.hasContents = isOpen;
    if (isOpen && !this.contents) {
      this.contents = new Contents({
        onShow: (codes) => this.showGroups(codes), onPlay: (id) => this.handlers.onPick?.(id),
        isDisliked: (id) => Boolean(this.handlers.isDisliked?.(id)), onClose: () => this.openContents(false),
      });
      this.frame.append(this.contents.root);
    }
    if (this.contents) this.contents.root.hidden = !isOpen;
    this.root.toggleAttribute("data-contents", isOpen);
    this.listing.ariaExpanded = String(isOpen);
    if (isOpen && this.places) this.readContents();
    this.fit();
  }

  /** Fetch the contents if they are others than those shown. */
  async readContents() {
    const { order } = this.places;
    if (this.listed?.order === order) { this.contents.paint(this.colors); return; }
    try {
      const listed = await fetchContents(BASE, this.data.map);
      if (this.isClosed || listed.order !== this.places.order) return; // the next map asks again
      this.listed = listed;
      this.contents.receive(listed);
      this.contents.paint(this.colors);
    } catch (error) {
      console.error("map", error);
      this.contents.fail();
    }
  }

  /** Show the songs of some groups of the contents alone, and move there; null shows all songs. @param {Set<number> | null} codes */
  showGroups(codes) {
    this.isRedrawn = Boolean(codes || this.mask); // WebGL gets the colors with the points
    this.mask = codes ? Uint8Array.from(this.listed.codes, (code) => Number(codes.has(code))) : null;
    this.showOnly(this.isolated);
    const rows = this.mask ? [...this.mask.keys()].filter((row) => this.mask?.[row]) : [];
    this.fly(rows.length ? viewOfRows(this.places, rows) : viewOfAll(this.data.query));
  }

  expand() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.root.requestFullscreen();
  }

  // ----------------------------------------------------------------------------------------- data

  /** Show what the owner wants to see. */
  receive(data) {
    const before = this.data;
    this.data = data;
    this.stage.ariaLabel ??= data.alt;
    if (!before) this.addTools(this.data);
    if (!before || before.height !== data.height) this.fit(); // it makes the browser lay out the page
    const { map, color_by: by } = this.data;
    const isOther = JSON.stringify(before?.map) !== JSON.stringify(map);
    if (JSON.stringify(before?.query ?? null) !== JSON.stringify(this.data.query)) this.goHome();
    if (!before || isOther || before.color_by !== by) this.load(before && before.map.model !== map.model);
    else if (this.places) this.follow(before);
  }

  /** Fetch data and draw it; changes are processed one after the other. */
  load(isOtherMap) {
    this.loading = (this.loading ?? Promise.resolve()).then(() => this.loadNow(isOtherMap)).catch((error) => {
      console.error("map", error);
      this.words.textContent = "The map cannot be drawn. Reload the page.";
    });
  }

  async loadNow(isOtherMap) {
    const { map, color_by: by } = this.data;
    const isDark = getComputedStyle(this.root).colorScheme === "dark";
    const [places, colors, regions] = await fetchMap(BASE, map, by, isDark);
    if (this.isClosed) return;
    this.isolated = this.keptIsolated(colors);
    const drawn = `${map.model} ${places.tag} ${by} ${colors.tag}`;
    if (!this.stage.clientWidth) { this.isWaiting = true; return; } // behind the other tab of a phone
    const held = this.data.chosen && this.placeOf(this.data.chosen);
    const { width, height } = this.extent();
    const large = Math.max(1, Math.sqrt(width * height) / 800); // points are larger in large windows
    this.coverSide = Math.round(COVER_PX * Math.min(1.5, large));
    this.size = large * Math.min(12, Math.max(3.5, 160 / Math.sqrt(Math.max(1, places.n))));
    this.levels = regions.levels.filter((level) => level.length);
    await this.choosePoints(places, colors);
    if (this.isClosed) return;
    const moved = isOtherMap && !isStill() && this.places && inOrderOf(this.places, places, colors);
    if (this.mask && this.places?.order !== places.order) this.mask = null;
    Object.assign(this, { places, colors });
    const looks = hideOthers(colors, this.isolated, this.mask);
    this.mark();
    if (moved) {
      this.keepInHand(held);
      await this.points.draw(...moved, this.size, true);
    }
    if (drawn !== this.drawn || this.isNew) await this.points.draw(places, looks.colors, this.size, false);
    Object.assign(this, { drawn, drawnBy: by, isNew: false });
    this.points.look(looks.colors, looks.isolated, this.size);
    this.namedAt = null;
    this.words.textContent = places.n ? "" : "No songs on the map yet.";
    this.drawLegend();
    this.paint();
    this.root.dataset.state = "drawn";
    if (this.hasContents) this.readContents();
    setTimeout(() => this.spread()); // after the points
  }

  spread() {
    if (this.isClosed) return;
    const { colors, isolated } = hideOthers(this.colors, this.isolated, this.mask);
    this.land.draw(this.places, colors, isolated);
  }

  /** Use WebGL for many points if it is available and fast enough; otherwise use a plain canvas. */
  async choosePoints(places, colors) {
    if (this.points && this.nChosenFor === places.n) return;
    Object.assign(this, { nChosenFor: places.n, isNew: true });
    this.points?.close();
    this.points = null;
    if (places.n > MAX_PLAIN && canDrawGl(places.n)) {
      const points = new GlPoints(await import(DRAWING), this.newCanvas(), this.extent());
      const frameMs = await points.probe(places, colors, this.size);
      if (frameMs <= (window[MAX_FRAME] ?? MAX_FRAME_MS)) this.points = points;
      else points.close();
    }
    this.points ??= new PlainPoints(this.newCanvas());
    this.root.dataset.renderer = this.points instanceof GlPoints ? "webgl" : "canvas";
  }

  newCanvas() {
    this.canvas?.remove();
    this.canvas = element("canvas", "points");
    this.land.canvas.after(this.canvas);
    return this.canvas;
  }

  rowOf(id) {
    return this.places ? this.places.ids.indexOf(id) : -1;
  }

  /** @returns {any} */
  placeOf(id) {
    const row = this.rowOf(id);
    return row < 0 ? null : [this.places.x[row] / FULL, this.places.y[row] / FULL];
  }

  /** Mark the songs if they are others than before, and follow the song that plays unless the listener looks elsewhere. */
  follow(before) {
    const songs = ({ chosen, found, path, coming }) => JSON.stringify([chosen, found, path, coming]);
    if (songs(before) === songs(this.data)) return;
    if (isOneLonger(before.path, this.data.path)) this.growWalk();
    const [from, to] = [before, this.data].map(({ chosen }) => (chosen ? this.rowOf(chosen) : -1));
    this.mark();
    if (to < 0 || from === to) return;
    const sinceMoved = performance.now() - this.movedAt;
    if (followsSong({ isInView: this.isInView(to), wasInView: from >= 0 && this.isInView(from), sinceMoved })) this.flyTo(this.data.chosen);
  }

  /** Draw the step to the next song of the queue, as that song begins. */
  growWalk() {
    if (isStill()) return;
    const start = performance.now();
    this.steppedAt = start;
    const step = (now) => {
      if (this.isClosed || this.steppedAt !== start) return;
      this.walked = Math.min(1, Math.max(0, (now - start) / STEP_MS));
      this.paintMarks();
      if (this.walked < 1) requestAnimationFrame(step);
    };
    this.walked = 0;
    requestAnimationFrame(step);
  }

  /** Move to a song, if it is on the map. @param {number} id */
  flyTo(id) {
    const place = this.placeOf(id);
    if (place) this.fly({ x: place[0], y: place[1] });
  }

  /** True if a song is in view, or will be at the end of a flight. */
  isInView(row) {
    const { width, height } = this.seen;
    const [px, py] = onScreen(this.places, row, this.destination ?? this.view, width, height);
    return px > 0 && py > 0 && px < this.seen.width && py < this.seen.height;
  }

  /** Move to a view: smoothly if drawing is fast, and until the user moves the map. @param {Partial<import("./points.js").View>} to */
  fly(to) {
    const from = this.view;
    const goal = limited({ ...from, ...to });
    const start = performance.now();
    const isSlow = isStill() || this.points.frameMs > SLOW_FRAME_MS;
    this.destination = goal;
    this.flown = from;
    const step = (now) => {
      if (this.isClosed || this.destination !== goal) return; // another flight has begun
      if (this.view !== this.flown) { this.destination = null; return; }
      const share = isSlow ? 1 : Math.min(1, Math.max(0, (now - start) / FLIGHT_MS));
      this.look(viewBetween(from, goal, share ** 2 * (3 - 2 * share)));
      this.flown = this.view;
      if (share < 1) requestAnimationFrame(step);
      else this.destination = null;
    };
    requestAnimationFrame(step);
  }

  /** Keep the chosen song in place on the screen while other songs move to their places on a different map. */
  keepInHand(before) {
    const after = before && this.placeOf(this.data.chosen);
    if (after && this.view.zoom > 1) this.look({ x: this.view.x + after[0] - before[0], y: this.view.y + after[1] - before[1] });
  }

  // --------------------------------------------------------------------------------------- the view

  extent() {
    return { width: Math.max(1, this.stage.clientWidth), height: Math.max(1, this.stage.clientHeight) };
  }

  fit() {
    if (!this.data || !this.root.isConnected) return;
    this.root.style.height = this.root.matches(":fullscreen") ? "100vh" : this.data.height ? `${this.data.height}px` : "100%";
    if (this.isWaiting && this.stage.clientWidth) {
      this.isWaiting = false;
      this.load(false);
    }
    const { width, height } = this.extent();
    if (width === this.seen?.width && height === this.seen?.height) return;
    this.seen = { width, height };
    this.points?.resize(width, height);
    this.foldLegend();
    this.paint();
  }

  look({ x = this.view.x, y = this.view.y, zoom = this.view.zoom }) {
    this.view = limited({ x, y, zoom });
    this.hideTip();
    this.rest();
    this.move();
  }

  /** Note that the map moves, until it has rested for a moment. */
  rest() {
    this.isMoving = true;
    clearTimeout(this.resting);
    this.resting = setTimeout(() => { this.isMoving = false; this.paintMarks(); }, REST_MS);
  }

  /** Zoom by a factor around a point, given in pixels; by default, the center. @param {number} by @param {number[]} [pixels] */
  zoom(by, [px, py] = [this.seen.width / 2, this.seen.height / 2]) {
    this.movedAt = performance.now();
    this.look(zoomed(this.view, by, [px, py], this.seen));
  }

  pan(right, down) {
    const { width, height } = this.seen;
    const { x, y, zoom } = this.view;
    this.movedAt = performance.now();
    this.look({ x: x - right / width / zoom, y: y + down / height / zoom });
  }

  /** Show all songs, and the query even if it is outside the map. */
  goHome() {
    this.look(viewOfAll(this.data.query));
  }

  /** Draw in the next frame; if drawing is slow, move the picture, and draw when the movement has stopped. */
  move() {
    if (!this.seen) return;
    if (!this.painted || this.points?.frameMs <= SLOW_FRAME_MS) { this.paint(); return; }
    const { width, height } = this.seen;
    const [from, to] = [this.painted, this.view];
    const scale = to.zoom / from.zoom;
    const right = width * (0.5 - 0.5 * scale + (from.x - to.x) * to.zoom);
    const down = height * (0.5 - 0.5 * scale - (from.y - to.y) * to.zoom);
    this.canvas.style.transform = `translate(${right}px, ${down}px) scale(${scale})`;
    this.paintMarks();
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.paint(), SETTLED_MS);
  }

  paint() {
    this.painting ??= requestAnimationFrame(() => {
      this.painting = null;
      if (this.isClosed || !this.colors || !this.points) return;
      const { width, height } = this.extent();
      this.shown = this.points.paint(this.view, width, height);
      this.painted = this.view;
      this.canvas.style.transform = "";
      const { rows, nHere } = this.shown;
      this.land.canvas.hidden = Boolean(rows) && rows.length < nHere; // a sample of points has its own density
      this.whole.hidden = this.view.zoom === 1 && this.view.x === 0.5 && this.view.y === 0.5;
      this.paintMarks();
      this.say();
    });
  }

  say() {
    const { rows, nHere } = this.shown;
    const number = (n) => n.toLocaleString("en");
    const where = nHere === this.places.n ? "" : " in view";
    this.status.textContent = !rows || rows.length === this.places.n ? ""
      : rows.length === nHere ? ["No songs in view.", "The only song in view is shown."][nHere] ?? `All ${number(nHere)} songs in view are shown.`
      : `${number(rows.length)} of the ${number(nHere)} songs${where} are shown as points; darker areas contain more songs. Zoom in to see the rest.`;
    Object.assign(this.root.dataset, {
      points: String(rows ? rows.length : nHere), frameMs: String(Math.round(this.points.frameMs)),
    });
  }

  // ---------------------------------------------------------------------------------- marks, names

  /** Find the rows of the marked songs that are on the map. */
  mark() {
    const rows = new Map();
    const { chosen, found, path, coming = [] } = this.data;
    const wanted = new Set([...found, ...path, ...coming, chosen]);
    const { ids } = this.places;
    for (let row = 0; row < ids.length; row++) if (wanted.has(ids[row])) rows.set(ids[row], row); // among a million
    const here = (ids) => ids.map((id) => rows.get(id)).filter((row) => row !== undefined);
    this.marks = { chosen: here([chosen]), found: here(found), path: here(path) };
    this.coming = here(coming);
    this.paintMarks();
  }

  paintMarks() {
    if (!this.places || !this.seen) return;
    const { width, height } = this.seen;
    this.goCurrent.hidden = !this.marks.chosen.length || this.isInView(this.marks.chosen[0]);
    const ratio = window.devicePixelRatio || 1;
    Object.assign(this.overlay, { width: width * ratio, height: height * ratio });
    const context = this.overlay.getContext("2d");
    context.scale(ratio, ratio);
    this.land.place(this.view, width, height);
    const ink = getComputedStyle(this.root).color;
    const ring = (row, more, color, line) => {
      context.beginPath();
      if (this.covered.has(row)) frameCover(context, this.pixelsOf(row), this.coverSide + line + more / 3);
      else context.arc(...this.pixelsOf(row), (this.size + more) / 2, 0, 2 * Math.PI);
      Object.assign(context, { strokeStyle: color, lineWidth: line });
      context.stroke();
    };
    const { chosen, found, path } = this.marks;
    const [played, coming] = [path, this.coming].map((rows) => rows.map((row) => this.pixelsOf(row)));
    const { solid, dashed } = walkLines(played, coming, this.walked);
    this.trace(context, solid, ink, []);
    context.globalAlpha = 0.6;
    this.trace(context, dashed, ink, [5, 5]);
    context.globalAlpha = 1;
    this.paintCovers(context, ratio);
    context.globalAlpha = found.length > MANY ? 0.4 : 1; // transparent rings keep the color of marked points visible
    for (const row of found) if (this.isShown(row)) ring(row, found.length > MANY ? 2 : 6, ink, found.length > MANY ? 1 : 1.5);
    context.globalAlpha = 1;
    for (const row of path) ring(row, 6, ink, 1.5);
    for (const row of chosen) ring(row, 12, RED, 3);
    if (this.pointed !== null) ring(this.pointed, 5, ink, 2);
    if (this.at !== null && this.stage.matches(":focus")) {
      ring(this.at, 10, getComputedStyle(this.root).backgroundColor, 5);
      ring(this.at, 10, getComputedStyle(this.root).getPropertyValue("--st-primary-color") || ink, 3);
    }
    if (this.data.query) star(context, ...toScreen(this.data.query, this.view, width, height));
    if (this.outline) this.trace(context, this.corners(), ink, [4, 3]);
    this.placeNames();
  }

  /** Draw covers on top of the points, in frames with the colors of the points. */
  paintCovers(context, ratio) {
    const side = this.coverSide;
    const rows = this.view.zoom > 1 ? this.rowsInView() : [];
    const [chosen] = this.marks.chosen;
    const ordered = rows.includes(chosen) ? [chosen, ...rows.filter((row) => row !== chosen)] : rows;
    const wanted = coveredRows(this.places, ordered, this.view, this.seen, side);
    this.hasCovers = wanted.length > 0;
    this.covered = new Set();
    for (const row of wanted) {
      const cover = this.covers.get(this.address(row, "cover"), Math.round(side * ratio), this.isMoving);
      if (!cover) continue;
      this.covered.add(row);
      const [px, py] = this.pixelsOf(row);
      context.save();
      context.beginPath();
      frameCover(context, [px, py], side);
      context.clip();
      context.drawImage(cover, px - side / 2, py - side / 2, side, side);
      Object.assign(context, { strokeStyle: this.colors.entries[this.colors.codes[row]].color, lineWidth: 5 });
      context.stroke(); // the outer half is clipped
      context.restore();
    }
    this.root.dataset.covers = String(this.covered.size);
  }

  /** Return the rows of the shown songs in view, or more than can have covers. WebGL draws all songs: search them once at rest. */
  rowsInView() {
    const { shown, view } = this;
    if (!shown || (!shown.rows && this.isMoving)) return [];
    if (this.here?.shown === shown && this.here.view === view) return this.here.rows;
    const { width, height } = this.seen;
    const rows = [];
    for (let i = 0; i < (shown.rows ?? this.places.ids).length && rows.length <= MAX_COVERS; i += 1) {
      const row = shown.rows ? shown.rows[i] : i;
      const [px, py] = this.pixelsOf(row);
      if (px > 0 && py > 0 && px < width && py < height && this.isShown(row)) rows.push(row);
    }
    this.here = { shown, view, rows };
    return rows;
  }

  trace(context, points, color, dashes) {
    context.beginPath();
    for (const point of points) context.lineTo(...point);
    Object.assign(context, { strokeStyle: color, lineWidth: 1.5 });
    context.setLineDash(dashes);
    context.stroke();
    context.setLineDash([]);
  }

  /** Show the names of regions in view, of smaller ones if zoomed in, each next to its points. */
  placeNames() {
    const { width, height } = this.seen;
    const marked = [...this.marks.chosen, ...this.marks.found.slice(0, MANY), ...this.marks.path];
    const at = JSON.stringify([this.view, width, height, this.hasNames, this.hasCovers, marked]);
    if (at === this.namedAt) return;
    if (this.namedAt && this.held?.isMoved && !this.outline) { this.shiftNames(); return; } // placed again after the drag
    this.namedAt = at;
    const depth = this.view.zoom < 2 ? 0 : this.view.zoom < 5 ? 1 : 2;
    const level = this.hasNames && this.levels?.length ? this.levels[Math.min(depth, this.levels.length - 1)] : [];
    const most = Math.min(MAX_NAMES[depth], Math.max(3, (width * height) / ROOM_PX));
    const crowd = level.length ? this.crowd(new Set(marked)) : null;
    /** @type {any[]} */
    const taken = [];
    for (const { name, x, y } of [...level].sort((a, b) => b.n - a.n)) {
      const place = taken.length < most && this.freePlace(toScreen([x, y], this.view, width, height), name, taken, crowd);
      if (place) taken.push({ ...place, name });
    }
    this.placed = taken.map(({ px, py, name }) => ({ place: this.placeAt(px, py), span: element("span", "", name) }));
    this.names.replaceChildren(...this.placed.map(({ span }) => span));
    this.shiftNames();
  }

  shiftNames() {
    for (const { place, span } of this.placed) {
      const [px, py] = toScreen(place, this.view, this.seen.width, this.seen.height);
      span.style.transform = `translate(-50%, -50%) translate(${px}px, ${py}px)`;
    }
  }

  /** Return a function that counts the points in a box on the stage, `marked` ones several times; too many are Infinity. */
  crowd(marked) {
    const { width, height } = this.seen;
    const [across, down] = [Math.ceil(width / CROWD_PX) + 1, Math.ceil(height / CROWD_PX) + 1];
    const sums = new Float32Array(across * down); // points above and to the left of each corner of a cell
    const rows = this.shown?.rows ?? Array.from({ length: Math.min(SAMPLE, this.places.n) }, (_, row) => row);
    for (const row of rows) {
      const [i, j] = this.pixelsOf(row).map((at) => Math.floor(at / CROWD_PX) + 1);
      if (i > 0 && j > 0 && i < across && j < down && this.isShown(row)) sums[j * across + i] += marked.has(row) ? MARKED : 1;
    }
    for (let at = across; at < sums.length; at += 1) if (at % across) sums[at] += sums[at - 1];
    for (let at = across; at < sums.length; at += 1) sums[at] += sums[at - across];
    const corner = (x, y) => sums[Math.max(0, Math.min(down - 1, y)) * across + Math.max(0, Math.min(across - 1, x))];
    const limit = Math.max(3, MAX_COVERED * rows.length);
    return (...box) => {
      const [left, top, right, bottom] = box.map((at, k) => (k < 2 ? Math.floor : Math.ceil)(at / CROWD_PX));
      const n = corner(right, bottom) - corner(left, bottom) - corner(right, top) + corner(left, top);
      return n <= limit ? n : Infinity;
    };
  }

  /** Return the place for a name near [x, y] with the fewest points under it; null if there is none. */
  freePlace([x, y], name, taken, crowd) {
    const { width, height } = this.seen;
    const [half, edge] = [3.6 * name.length + 4, (this.hasCovers ? this.coverSide : this.size) / 2];
    /** @type {{px: number, py: number, half: number} | null} */
    let found = null;
    let least = Infinity;
    if (x < 0 || y < 0 || x > width || y > height) return found;
    for (let j = -5; j <= 5; j += 1) {
      for (let i = -3; i <= 3; i += 1) {
        const [px, py] = [x + (i * half) / 2.5, y + (j * NAME_PX) / 1.5];
        if (px < half || px > width - half || py < NAME_PX || py > height - NAME_PX) continue;
        if (taken.some((t) => t.name === name || (Math.abs(t.px - px) < t.half + half && Math.abs(t.py - py) < NAME_PX + 4))) continue;
        const covered = crowd(px - half - edge, py - NAME_PX / 2 - edge, px + half + edge, py + NAME_PX / 2 + edge);
        const cost = 8 * covered + 0.5 * Math.hypot(0.6 * (px - x), py - y);
        if (cost < least) [found, least] = [{ px, py, half }, cost];
      }
    }
    return found;
  }

  drawLegend() {
    const { entries, scale } = this.colors;
    this.legend.hidden = !this.data.legend;
    const made = [];
    entries.forEach(({ name, color, n_songs: n, is_known: isKnown }, code) => {
      if (!name || !n) return;
      const dot = element("i", "");
      dot.style.color = color;
      const entry = element("span", isKnown ? "entry" : "entry unknown", dot, name);
      entry.title = `${name}: ${n.toLocaleString("en")} ${n === 1 ? "song" : "songs"}. Click to show only these; Shift-click to add or remove them.`;
      Object.assign(entry, { role: "option", tabIndex: made.length ? -1 : 0 });
      entry.dataset.code = code;
      made.push(entry);
    });
    this.scale.replaceChildren();
    if (scale) {
      const bar = element("span", "scale");
      const colors = entries.filter(({ name }) => !name).map(({ color }) => color);
      bar.style.background = `linear-gradient(to right, ${colors.join(", ")})`;
      const { name, ends, range } = scaleTexts(this.colors.by, scale);
      this.scale.title = range;
      this.scale.append(element("span", "", name), ends[0], bar, ends[1]);
    }
    this.entries.replaceChildren(...made);
    if (made.length) Object.assign(this.entries, { role: "listbox", ariaLabel: "Colors", ariaMultiSelectable: "true" });
    else this.entries.removeAttribute("role");
    this.showIsolated();
  }

  /** Hide entries beyond the second line behind a button, unless all are to be shown. */
  foldLegend() {
    const entries = /** @type {any[]} */ ([...this.entries.children]);
    for (const entry of entries) entry.hidden = false;
    this.more.hidden = false;
    this.more.textContent = `+ ${entries.length} more`; // the widest text
    const gap = Number.parseFloat(getComputedStyle(this.entries).columnGap) || 0;
    const hidden = hiddenEntries(entries.map(({ offsetWidth }) => offsetWidth), {
      room: this.legend.clientWidth - (this.scale.childElementCount ? this.scale.offsetWidth + gap : 0), gap,
      button: this.more.offsetWidth, isChosen: (i) => Boolean(this.isolated?.has(Number(entries[i].dataset.code))),
    });
    this.more.hidden = !hidden.length;
    this.more.ariaExpanded = String(Boolean(this.hasAllEntries));
    this.more.textContent = this.hasAllEntries ? "fewer" : `+ ${hidden.length} more`;
    this.more.ariaLabel = this.hasAllEntries ? "Fewer colors" : `${hidden.length} more colors`;
    if (this.hasAllEntries) return;
    for (const i of hidden) entries[i].hidden = true;
    // one entry that is shown stays in the order of the Tab key
    const current = entries.find(({ tabIndex }) => tabIndex === 0);
    if (current?.hidden) [current.tabIndex, entries[0].tabIndex] = [-1, 0];
  }

  showAllEntries(areAll) {
    this.hasAllEntries = areAll;
    this.foldLegend();
  }

  /** Move in the legend with arrow keys; Enter and the space bar choose like a click. */
  walkLegend(event) {
    const entry = event.target.closest(".entry");
    const next = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!entry || !(next || event.key === "Enter" || event.key === " ")) return;
    event.preventDefault();
    event.stopPropagation(); // the space bar also plays
    if (!next) this.isolate(Number(entry.dataset.code), event.shiftKey);
    else {
      const shown = /** @type {any[]} */ ([...this.entries.children]).filter(({ hidden }) => !hidden);
      const to = shown[shown.indexOf(entry) + next];
      if (!to) return;
      [entry.tabIndex, to.tabIndex] = [-1, 0];
      to.focus();
    }
  }

  showIsolated() {
    for (const entry of this.entries.children) {
      entry.ariaSelected = String(Boolean(this.isolated?.has(Number(entry.dataset.code))));
    }
    this.legend.toggleAttribute("data-isolates", Boolean(this.isolated));
    this.foldLegend();
  }

  /** Show only one entry, or with Shift, add or remove it; if no entry is left, show all. */
  isolate(code, isAdded) {
    const others = new Set(isAdded ? this.isolated : []);
    const isAlone = this.isolated?.size === 1 && this.isolated.has(code);
    if (isAdded && others.has(code)) others.delete(code);
    else if (!isAlone || isAdded) others.add(code);
    this.showOnly(others.size ? others : null);
  }

  /** Return the codes of the isolated entries after the colors have changed. */
  keptIsolated({ by, entries }) {
    if (!this.isolated || by !== this.colors.by) return null;
    const names = new Set([...this.isolated].map((code) => this.colors.entries[code].name));
    const codes = entries.flatMap(({ name }, code) => (names.has(name) ? [code] : []));
    return codes.length ? new Set(codes) : null;
  }

  async showOnly(codes) {
    this.isolated = codes;
    const { colors, isolated } = hideOthers(this.colors, codes, this.mask);
    if (this.isRedrawn) await this.points.draw(this.places, colors, this.size, false);
    this.isRedrawn = false;
    this.points.look(colors, isolated, this.size);
    this.spread();
    this.namedAt = null;
    this.showIsolated();
    this.paint();
  }

  /** Show all songs again, if only some are shown. */
  showAll() {
    this.mask = null;
    this.isRedrawn = true;
    this.contents?.select(0);
    this.showOnly(null);
  }

  /** Return the view as a figure: every song as a point, with marks, names and a legend. */
  figure() {
    const { width, height } = this.seen;
    const { entries, codes } = this.colors;
    const lines = entries.map(() => []);
    for (let row = 0; row < this.places.n; row += 1) {
      const [px, py] = this.pixelsOf(row);
      if (px < 0 || py < 0 || px > width || py > height || !this.isShown(row)) continue;
      lines[codes[row]].push(`M${px.toFixed(1)} ${py.toFixed(1)}h0`); // a line of length 0 with round ends is drawn as a point
    }
    const ink = getComputedStyle(this.root).color;
    const points = lines.map((some, code) => svgElement("path", {
      d: some.join(""), stroke: entries[code].color, "stroke-linecap": "round", "stroke-opacity": 0.85,
      "stroke-width": (entries[code].is_known ? 1 : 0.7) * this.size,
    }));
    const ring = (row, more, stroke, line) => {
      const [cx, cy] = this.pixelsOf(row);
      return svgElement("circle", { cx, cy, r: (this.size + more) / 2, fill: "none", stroke, "stroke-width": line });
    };
    const { chosen, found, path } = this.marks;
    const way = path.map((row) => this.pixelsOf(row).join(",")).join(" ");
    const marks = [
      svgElement("polyline", { points: way, fill: "none", stroke: ink, "stroke-width": 1.5 }),
      ...[...found, ...path].map((row) => ring(row, 6, ink, 1.5)), ...chosen.map((row) => ring(row, 12, RED, 3)),
    ];
    const box = this.stage.getBoundingClientRect();
    const names = [...this.names.children].map((span) => {
      const { x, y, width: across, height: down } = span.getBoundingClientRect();
      const name = this.svgText(span.textContent, x + across / 2 - box.x, y + down / 2 - box.y, "middle", ink);
      const paper = getComputedStyle(this.root).backgroundColor;
      for (const [key, value] of Object.entries({ stroke: paper, "stroke-width": 3, "paint-order": "stroke" })) name.setAttribute(key, value);
      return name;
    });
    const shown = entries.flatMap(({ name, color, n_songs: n }, code) => (name && n && lines[code].length ? [[name, color]] : []));
    const legend = shown.slice(0, Math.floor(height / LEGEND_PX)).flatMap(([name, color], i) => [
      svgElement("circle", { cx: width + 12, cy: (i + 0.5) * LEGEND_PX, r: 5, fill: color }),
      this.svgText(name, width + 24, (i + 0.5) * LEGEND_PX, "start", ink),
    ]);
    return figureOf(width + (legend.length ? LEGEND_WIDTH_PX : 0), height, this.root, ...points, ...marks, ...names, ...legend);
  }

  svgText(text, x, y, anchor, fill) {
    return svgElement("text", { x, y, fill, "text-anchor": anchor, "dominant-baseline": "middle", "font-size": 13 }, text);
  }

  // -------------------------------------------------------------------------------------- pointing

  isShown(row) {
    return (!this.mask || this.mask[row] === 1) && (!this.isolated || this.isolated.has(this.colors.codes[row]));
  }

  /** Return the row with the smallest `measure(px, py)`, among drawn points or all rows, or null. */
  best(measure, isOfAll = false) {
    if (!this.places || !this.shown) return null;
    const { x, y, n } = this.places;
    const { width, height } = this.seen;
    const { zoom, x: vx, y: vy } = this.view;
    const rows = isOfAll ? null : this.shown.rows;
    /** @type {number | null} */
    let found = null;
    let least = Infinity;
    for (let i = 0; i < (rows ? rows.length : n); i += 1) {
      const row = rows ? rows[i] : i;
      const value = measure(((x[row] / FULL - vx) * zoom + 0.5) * width, (0.5 - (y[row] / FULL - vy) * zoom) * height);
      if (value < least && this.isShown(row)) [found, least] = [row, value];
    }
    return found;
  }

  nearest(px, py, most = this.covered.size ? Math.max(NEAR_PX, 0.6 * this.coverSide) : NEAR_PX) {
    const limit = most ** 2;
    return this.best((x, y) => {
      const distance = (x - px) ** 2 + (y - py) ** 2;
      return distance <= limit ? distance : Infinity;
    });
  }

  /** Return a song's position on the stage, in pixels. */
  pixelsOf(row) {
    return onScreen(this.places, row, this.view, this.seen.width, this.seen.height);
  }

  /** @returns {[number, number]} */
  pixels(event) {
    const box = this.stage.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  point(event) {
    const row = this.nearest(...this.pixels(event));
    if (row === this.pointed) return;
    this.pointed = row;
    this.unpoint();
    this.stage.style.cursor = row === null ? "" : "pointer";
    this.paintMarks();
    if (row === null) { this.hideTip(); return; }
    this.naming = setTimeout(() => this.showTip(row), LABEL_MS);
    if (this.isHearing) {
      this.hearing = setTimeout(() => this.handlers.onPreview?.(this.places.ids[row]), HEARD_MS);
    }
  }

  /** Return the address of something about a song. */
  address(row, name) {
    return new URL(`songs/${this.places.ids[row]}/${name}?library=${encodeURIComponent(this.data.map.library)}`, BASE).href;
  }

  async label(row) {
    const id = this.places.ids[row];
    if (!this.labels.has(id)) {
      const answer = await fetch(this.address(row, "label"));
      if (!answer.ok) return null;
      this.labels.set(id, await answer.json());
    }
    return this.labels.get(id);
  }

  async showTip(row) {
    const label = await this.label(row);
    if (!label || this.pointed !== row) return;
    const [px, py] = this.pixelsOf(row);
    const cover = Object.assign(element("img", ""), { alt: "", src: this.address(row, "cover") });
    this.tip.replaceChildren(cover, element("b", "", label.title), element("span", "", label.by));
    this.tip.hidden = false;
    const isRight = px > this.seen.width / 2;
    this.tip.style.transform = `translate(${px}px, ${py}px) translate(${isRight ? "calc(-100% - 10px)" : "10px"}, -50%)`;
  }

  hideTip() {
    this.tip.hidden = true;
    this.pointed = null;
    this.unpoint();
  }

  /** The pointer has left a song. */
  unpoint() {
    clearTimeout(this.hearing);
    clearTimeout(this.naming);
    if (this.isHearing) this.handlers.onPreview?.(null);
  }

  pick(row) {
    if (row !== null) this.handlers.onPick?.(this.places.ids[row]);
  }

  // ---------------------------------------------------------------------- mouse, fingers and keys

  wire() {
    const on = (target, name, act, options = {}) => {
      target.addEventListener(name, act, { signal: this.closing.signal, ...options });
    };
    on(this.legend, "click", ({ target, shiftKey }) => {
      const entry = target.closest(".entry");
      if (entry) this.isolate(Number(entry.dataset.code), shiftKey);
    });
    on(this.legend, "keydown", (event) => this.walkLegend(event));
    on(document, "pointerdown", (event) => { if (!event.composedPath().includes(this.tools)) this.showMenu(false); });
    on(this.tools, "keydown", ({ key }) => {
      if (key !== "Escape" || this.menu.hidden) return;
      this.showMenu(false);
      this.opener.focus();
    });
    on(this.stage, "wheel", (event) => {
      if (!this.places) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), this.pixels(event));
    }, { passive: false });
    on(this.stage, "pointerdown", (event) => this.down(event));
    on(this.stage, "pointermove", (event) => this.drag(event));
    on(this.stage, "pointerup", (event) => this.up(event));
    on(this.stage, "pointercancel", () => this.letGo());
    on(this.stage, "pointerleave", () => { if (!this.held) { this.hideTip(); this.paintMarks(); } });
    on(this.stage, "dblclick", () => this.goHome());
    on(this.stage, "touchstart", (event) => this.touch(event), { passive: false });
    on(this.stage, "touchmove", (event) => this.touch(event), { passive: false });
    on(this.stage, "touchend", () => { this.fingers = null; });
    on(this.stage, "keydown", (event) => this.key(event));
    on(this.stage, "focus", () => this.paintMarks());
    on(this.stage, "blur", () => this.paintMarks());
    on(window, "resize", () => this.fit());
    on(document, "fullscreenchange", () => this.fit());
  }

  down(event) {
    if (event.button !== 0 || !this.places || this.fingers) return;
    const at = this.pixels(event);
    this.held = { start: at, last: at, isMoved: false };
    const isMouse = event.pointerType !== "touch";
    if (this.handlers.onOutline && (this.tool || (isMouse && event.shiftKey))) this.outline = [at];
    else if (!isMouse) return; // one finger scrolls the page; a tap is a click
    this.stage.setPointerCapture(event.pointerId);
  }

  drag(event) {
    if (!this.held) {
      if (event.pointerType !== "touch" && this.places) this.point(event);
      return;
    }
    const at = this.pixels(event);
    const [[x0, y0], [x1, y1]] = [this.held.last, at];
    this.held.isMoved ||= Math.hypot(at[0] - this.held.start[0], at[1] - this.held.start[1]) > TAP_PX;
    if (!this.held.isMoved) return;
    this.held.last = at;
    if (this.outline) {
      this.outline.push(at);
      this.paintMarks();
    } else if (event.pointerType !== "touch" && !this.fingers) {
      this.pan(x1 - x0, y1 - y0);
    }
  }

  up(event) {
    const { held, outline } = this;
    if (held && outline && held.isMoved) this.encircle();
    else if (held && !held.isMoved && !this.fingers) {
      const row = this.nearest(...this.pixels(event), ...(event.pointerType === "touch" ? [2 * NEAR_PX] : []));
      this.at = row;
      this.pick(row);
    }
    this.letGo();
  }

  letGo() {
    this.held = null;
    this.outline = null;
    this.paintMarks();
  }

  /** Return the place on the map under a pixel of the stage. */
  placeAt(px, py) {
    return toPlace(px, py, this.view, this.seen);
  }

  /** Return the corners of the drawn outline, in pixels. */
  corners() {
    if (this.tool !== "rectangle") return [...this.outline, this.outline[0]];
    const [[x0, y0], [x1, y1]] = [this.outline[0], this.outline.at(-1)];
    return [[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]];
  }

  /** Tell the songs inside the outline that belong to the entries shown. */
  encircle() {
    const corners = this.corners().map(([px, py]) => this.placeAt(px, py));
    const rows = insideOf(this.places, corners).filter((row) => this.isShown(row));
    this.use(null);
    this.handlers.onOutline?.(rows.map((row) => this.places.ids[row]));
  }

  /** Move and zoom the map with two fingers; one finger scrolls the page, except while drawing an outline. */
  touch(event) {
    if (this.outline) { event.preventDefault(); return; }
    if (event.touches.length !== 2 || !this.seen) return;
    event.preventDefault();
    const [a, b] = [...event.touches].map((touch) => this.pixels(touch));
    const now = { at: [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2], apart: Math.hypot(a[0] - b[0], a[1] - b[1]) };
    this.held = null;
    if (this.fingers && event.type === "touchmove") {
      this.pan(now.at[0] - this.fingers.at[0], now.at[1] - this.fingers.at[1]);
      this.zoom(now.apart / Math.max(1, this.fingers.apart), now.at);
    }
    this.fingers = now;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.places) return;
    const acts = {
      Enter: () => this.pick(this.at), Escape: () => { this.use(null); this.showAll(); },
      "+": () => this.zoom(STEP), "-": () => this.zoom(1 / STEP), 0: () => this.goHome(), c: () => this.flyTo(this.data.chosen),
    };
    const act = event.key in WALKS ? () => this.walk(...WALKS[event.key]) : acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  /** Go to the nearest song in a direction. */
  walk(right, down) {
    const { width, height } = this.seen;
    const from = this.at ?? this.marks.chosen[0];
    if (from === undefined) {
      this.standOn(this.nearest(width / 2, height / 2, Infinity));
      return;
    }
    const at = this.pixelsOf(from);
    this.standOn(this.best((x, y) => distanceAhead(at, [x, y], [right, down]), true));
  }

  async standOn(row) {
    if (row === null) return;
    this.at = row;
    const { width, height } = this.seen;
    const [px, py] = this.pixelsOf(row);
    const [x, y] = [this.places.x[row] / FULL, this.places.y[row] / FULL];
    const isSeen = px > 30 && py > 30 && px < width - 30 && py < height - 30;
    if (isSeen) this.paintMarks();
    else this.look({ x, y });
    const label = await this.label(row);
    if (this.at !== row || !label) return;
    const name = `${label.title}, ${label.by}`;
    this.stage.setAttribute("aria-label", `${name}. Arrow keys move from song to song; Enter plays the song.`);
    this.said.textContent = name;
    this.pointed = row;
    this.showTip(row);
  }

  close() {
    this.isClosed = true;
    clearTimeout(this.settling);
    clearTimeout(this.resting);
    this.unpoint();
    this.closing.abort();
    this.resizing.disconnect();
    this.points?.close();
    this.root.remove();
  }
}

/** Add the outline of a cover to the path. */
function frameCover(context, [px, py], side) {
  context.roundRect(px - side / 2, py - side / 2, side, side, side / 8);
}

/** Draw the query as a five-pointed star. */
function star(context, px, py) {
  context.beginPath();
  for (let k = 0; k < 10; k += 1) {
    const radius = k % 2 ? 5 : 12;
    const angle = (k * Math.PI) / 5 - Math.PI / 2;
    context.lineTo(px + radius * Math.cos(angle), py + radius * Math.sin(angle));
  }
  context.closePath();
  Object.assign(context, { fillStyle: RED, strokeStyle: "white", lineWidth: 1.5 });
  context.fill();
  context.stroke();
}
