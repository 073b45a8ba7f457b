// Select part of a song on its waveform: one range with a handle at each end, to drag or to move with keys. A drag that
// starts away from the handles selects a new part.

import { applyStyle, fetchStyle } from "../component.js";
import { clock, drawBars, element, penOf } from "../elements.js";

const STYLE = await fetchStyle("wave_part.css", import.meta.url);
const STEP_S = 0.5;
const SHORTEST_S = 2;
const GRIP_PX = 14; // a handle can be dragged from this far away

/** @typedef {[number, number]} Part start and end in seconds */

export class WavePart {
  /** @param {HTMLElement} root @param {{onPart: (part: Part | null) => void}} events `onPart` gets null for the whole song */
  constructor(root, { onPart }) {
    this.container = root;
    this.onPart = onPart;
    this.root = element("div", { className: "musicsim-part" });
    this.root.dataset.testid = "wave-part";
    /** @type {any} */
    this.data = undefined;
    /** @type {number | undefined} the end of the part that stays while the other one is dragged */
    this.held = undefined;
    this.canvas = element("canvas", { ariaHidden: "true" });
    this.sliders = ["Start", "End"].map((name) => {
      const slider = element("input", { type: "range", min: 0, step: STEP_S, ariaLabel: `${name} of the part, in seconds` });
      slider.addEventListener("input", () => this.set(...this.bounds(), slider));
      slider.addEventListener("change", () => this.send());
      return slider;
    });
    this.words = element("span", { role: "status" });
    this.whole = element("button", { type: "button", textContent: "Whole song" });
    this.whole.addEventListener("click", () => { this.set(0, this.data.duration_s); this.send(); });
    // only to see: the slider below a handle has the focus and the keys
    this.handles = ["start", "end"].map((name) => element("div", { className: `handle ${name}`, ariaHidden: "true" }));
    this.root.append(
      element("div", { className: "stage" }, this.canvas, ...this.sliders, ...this.handles),
      element("div", { className: "foot" }, this.words, this.whole),
    );
    this.canvas.addEventListener("pointerdown", (event) => this.begin(event));
    this.canvas.addEventListener("pointermove", (event) => this.held !== undefined && this.set(this.held, this.secondAt(event)));
    this.canvas.addEventListener("pointerup", () => this.end());
    this.canvas.addEventListener("pointercancel", () => this.end()); // the finger scrolls the page
    this.resizing = new ResizeObserver(() => this.paint());
    this.resizing.observe(this.canvas);
    root.append(this.root);
  }

  /**
   * Show a song and its selected part, null for the whole song. While the user drags, only another song changes the part.
   * @param {{song: unknown, peaks: number[], duration_s: number, part: Part | null}} data
   */
  show(data) {
    applyStyle(this.container, STYLE);
    if (data.song !== this.data?.song) this.held = undefined;
    this.data = data;
    for (const slider of this.sliders) slider.max = data.duration_s;
    if (this.held === undefined) this.set(...(data.part ?? [0, data.duration_s]));
    else this.paint();
  }

  begin(event) {
    event.preventDefault();
    this.canvas.setPointerCapture(event.pointerId);
    const [from, to] = this.bounds();
    const grip = (GRIP_PX / this.canvas.clientWidth) * this.data.duration_s;
    const second = this.secondAt(event);
    const [toFrom, toTo] = [Math.abs(second - from), Math.abs(second - to)];
    if (Math.min(toFrom, toTo) > grip) this.held = second; // a new part starts here
    else this.held = toFrom < toTo ? to : from; // the other end stays
    this.sliders[toFrom < toTo ? 0 : 1].focus({ preventScroll: true });
  }

  end() {
    const isHeld = this.held !== undefined;
    this.held = undefined;
    if (isHeld) this.send();
  }

  secondAt(event) {
    const box = this.canvas.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) * this.data.duration_s;
  }

  bounds() {
    return this.sliders.map((slider) => Number(slider.value));
  }

  /** Show a part; if it would be too short, the moving slider pushes the other one. */
  set(a, b, moved) {
    let [from, to] = [Math.min(a, b), Math.max(a, b)];
    const shortest = Math.min(SHORTEST_S, this.data.duration_s);
    if (to - from < shortest) {
      if (moved === this.sliders[1] || from + shortest > this.data.duration_s) from = Math.max(0, to - shortest);
      to = Math.min(this.data.duration_s, from + shortest);
    }
    [this.sliders[0].value, this.sliders[1].value] = [from, to];
    this.paint();
  }

  send() {
    const [from, to] = this.bounds();
    const isWhole = from <= 0 && to >= this.data.duration_s - STEP_S;
    this.onPart(isWhole ? null : [from, to]);
  }

  paint() {
    const pen = this.data && penOf(this.canvas);
    if (!pen) return;
    const [from, to] = this.bounds();
    const style = getComputedStyle(this.root);
    const { peaks, duration_s: duration } = this.data;
    const isIn = (second) => second >= from && second <= to;
    const looks = { true: [style.getPropertyValue("--st-primary-color"), 1], false: [style.color, 0.25] };
    drawBars(pen, peaks, { top: 0, tall: this.canvas.clientHeight }, (share) => looks[isIn(share * duration)]);
    [from, to].forEach((second, i) => {
      this.handles[i].style.left = `${(100 * second) / duration}%`;
      this.handles[i].dataset.time = clock(second);
      this.sliders[i].setAttribute("aria-valuetext", clock(second));
    });
    const isWhole = from <= 0 && to >= duration - STEP_S;
    this.words.textContent = isWhole ? "Drag an end to search with only part of the song." : `Only ${clock(from)} to ${clock(to)}`;
    this.whole.hidden = isWhole;
  }

  close() {
    this.resizing.disconnect();
    this.root.remove();
  }
}
