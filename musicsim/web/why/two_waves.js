// Two songs with the passages in which their shared sounds are strongest. A separate <audio> plays exactly one passage
// at a time, while the player is paused and keeps its queue.

import { resolve } from "../addresses.js";
import { applyStyle, fetchStyle } from "../component.js";
import { clock, drawBars, element, penOf } from "../elements.js";
import { inkOn, spread } from "./figures.js";

const STYLE = await fetchStyle("two_waves.css", import.meta.url);
const FLAG_PX = 28; // width of a passage's button with its margins, however short the passage is
const FINGER_PX = 46; // the same on phones
const STEM_PX = 10; // distance between the buttons and the waveform

const flagWidth = () => (matchMedia("(max-width: 640px)").matches ? FINGER_PX : FLAG_PX);

// ------------------------------------------------------------------------------------- the sound

class Sound {
  /** @param {() => void} changed @param {import("../player/engine.js").Engine} player @param {AbortSignal} closing */
  constructor(changed, player, closing) {
    this.changed = changed;
    this.player = player;
    /** @type {{side: any, passage: any} | null} */
    this.playing = null;
    /** @type {{side: any, passage: any}[]} */
    this.queue = [];
    this.frame = 0;
    this.message = "";
    this.audio = element("audio", { preload: "none" });
    this.audio.dataset.testid = "why-audio";
    const on = (target, name, act) => target.addEventListener(name, act, { signal: closing });
    on(this.audio, "loadedmetadata", () => this.seek()); // some browsers lose an earlier seek
    on(this.audio, "timeupdate", () => this.check());
    on(this.audio, "ended", () => this.advance());
    on(this.audio, "error", () => this.playing && this.fail());
    for (const sound of player.sounds) on(sound, "play", () => this.stop());
  }

  /** Play passages one after the other; if they are already playing, stop. */
  toggle(items) {
    if (items.some(({ passage }) => passage === this.playing?.passage)) return this.stop();
    this.queue = [...items];
    return this.advance();
  }

  advance() {
    const next = this.queue.shift();
    if (!next) return this.stop();
    this.player.giveWay(this.audio);
    this.message = "";
    this.playing = next;
    if (!next.side.url) return this.fail();
    const url = resolve(next.side.url);
    if (this.audio.src !== url) this.audio.src = url;
    this.seek();
    this.audio.play().catch((error) => error.name === "AbortError" || this.fail());
    this.follow();
    return this.changed();
  }

  seek() {
    if (this.playing) this.audio.currentTime = this.playing.side.starts_s + this.playing.passage.start_s;
  }

  stop() {
    [this.playing, this.queue] = [null, []];
    this.audio.pause();
    cancelAnimationFrame(this.frame);
    this.changed();
  }

  fail() {
    this.message = `“${this.playing?.side.title ?? ""}” cannot be played.`;
    this.stop();
  }

  /** Check the position in every frame: "timeupdate" events are too rare for passages of a second. */
  follow() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      this.check();
      if (this.playing) this.follow();
    });
  }

  check() {
    if (!this.playing) return;
    if (!this.audio.isConnected) return this.stop(); // otherwise, it would be heard after its page has gone
    if (this.audio.currentTime >= this.playing.side.starts_s + this.playing.passage.end_s) {
      this.audio.pause();
      this.advance();
    } else {
      this.changed();
    }
  }
}

// -------------------------------------------------------------------------------------- drawing

class Side {
  constructor(data, slots, sound) {
    this.data = data;
    this.slots = slots;
    this.sound = sound;
    this.x = (/** @type {number} */ seconds) => seconds; // pixels from the left
    this.canvas = element("canvas");
    this.canvas.dataset.testid = "why-wave";
    this.buttons = data.passages.map((passage) => this.button(passage));
    this.flags = element("div", { className: "flags" }, ...this.buttons);
    const name = element("b", { textContent: data.title });
    const by = element("span", { textContent: data.sub });
    const times = [element("span", { textContent: "0:00" }), element("span", { textContent: clock(data.duration_s) })];
    this.root = element(
      "section",
      { className: "side" },
      element("div", { className: "name" }, name, " ", by),
      this.flags,
      this.canvas,
      element("div", { className: "times" }, ...times),
    );
  }

  button(passage) {
    const { letter, color } = this.slots[passage.slot];
    const made = element("button", { type: "button", className: "flag", textContent: letter });
    Object.assign(made.style, { background: color, color: inkOn(color) });
    made.addEventListener("click", () => this.sound.toggle([{ side: this.data, passage }]));
    return made;
  }

  render() {
    this.data.passages.forEach((passage, i) => {
      const playing = this.sound.playing?.passage === passage;
      const when = `${clock(passage.start_s)} to ${clock(passage.end_s)}`;
      const label = `${playing ? "Stop" : "Play"} ${when} of ${this.data.title}`;
      this.buttons[i].setAttribute("aria-label", label);
      this.buttons[i].setAttribute("aria-pressed", String(playing));
      this.buttons[i].title = `${this.slots[passage.slot].words}: ${when}`;
    });
    this.draw();
  }

  draw() {
    const { canvas, data } = this;
    const pen = penOf(canvas);
    if (!pen) return;
    const { clientWidth: width, clientHeight: height } = canvas;
    this.x = (seconds) => (seconds / data.duration_s) * width;
    const ink = getComputedStyle(this.root).color;
    this.drawCurve(pen, height, ink);
    this.drawPassages(pen, width, height);
    this.drawWave(pen, height, ink);
    if (this.sound.playing?.side === data) {
      [pen.globalAlpha, pen.fillStyle] = [1, ink];
      pen.fillRect(this.x(this.sound.audio.currentTime - data.starts_s), STEM_PX, 1.5, height - STEM_PX);
    }
  }

  drawCurve(pen, height, ink) {
    const { curve, heard_s: heard } = this.data;
    if (!curve.length) return;
    [pen.globalAlpha, pen.fillStyle] = [0.13, ink];
    pen.beginPath();
    pen.moveTo(0, height);
    curve.forEach((value, i) => {
      pen.lineTo(this.x(((i + 0.5) / curve.length) * heard), height - value * (height - STEM_PX));
    });
    pen.lineTo(this.x(heard), height);
    pen.fill();
  }

  drawPassages(pen, width, height) {
    const { passages } = this.data;
    const middles = passages.map(({ start_s: start, end_s: end }) => this.x((start + end) / 2));
    const places = spread(middles, width, flagWidth());
    passages.forEach(({ start_s: start, end_s: end, slot }, i) => {
      this.buttons[i].style.left = `${places[i] - flagWidth() / 2}px`;
      [pen.fillStyle, pen.strokeStyle, pen.lineWidth] = [this.slots[slot].color, this.slots[slot].color, 1.5];
      pen.globalAlpha = 0.3;
      pen.fillRect(this.x(start), STEM_PX, Math.max(2, this.x(end) - this.x(start)), height - STEM_PX);
      pen.globalAlpha = 1;
      pen.beginPath();
      pen.moveTo(places[i], 0);
      pen.lineTo(middles[i], STEM_PX);
      pen.stroke();
    });
  }

  drawWave(pen, height, ink) {
    const { peaks, passages, duration_s: duration } = this.data;
    drawBars(pen, peaks, { top: STEM_PX + 2, tall: height - STEM_PX - 4 }, (share) => {
      const inside = passages.find(({ start_s: start, end_s: end }) => start <= share * duration && share * duration < end);
      return inside ? [this.slots[inside.slot].color, 1] : [ink, 0.4];
    });
  }
}

// --------------------------------------------------------------------------------------- legend

function legend(slots, sides, sound) {
  const rows = slots.map(({ letter, color, words }, slot) => {
    const items = sides.map((side) => ({ side: side.data, passage: side.data.passages[slot] }));
    const chip = element("i", { textContent: letter });
    Object.assign(chip.style, { background: color, color: inkOn(color) });
    const both = element("button", { type: "button", textContent: "▶ both" });
    both.setAttribute("aria-label", `Play ${letter} in both songs`);
    both.addEventListener("click", () => sound.toggle(items));
    return element("li", {}, chip, element("span", { textContent: words }), both);
  });
  return element("ul", { className: "legend" }, ...rows);
}

// ----------------------------------------------------------------------------------------- both

/** Both waveforms, one below the other, and a legend of the shared sounds. */
export class TwoWaves {
  /** @param {HTMLElement} root @param {import("../player/engine.js").Engine} player */
  constructor(root, player) {
    this.container = root;
    this.player = player;
    this.root = element("div", { className: "two-waves" });
    this.root.dataset.testid = "two-waves";
    this.closing = new AbortController();
    /** @type {Side[]} */
    this.sides = [];
    this.resizing = new ResizeObserver(() => this.render());
    root.append(this.root);
  }

  /** Show two songs and their shared sounds, as `wavesOf` returns them. */
  show({ slots, sides }) {
    this.stop();
    applyStyle(this.container, STYLE);
    this.closing = new AbortController();
    const message = element("div", { className: "message", role: "status" });
    this.sound = new Sound(() => {
      message.textContent = this.sound?.message ?? "";
      this.render();
    }, this.player, this.closing.signal);
    this.sides = sides.map((side) => new Side(side, slots, this.sound));
    this.root.replaceChildren(...this.sides.map((side) => side.root), legend(slots, this.sides, this.sound), message, this.sound.audio);
    for (const side of this.sides) this.resizing.observe(side.canvas);
  }

  render() {
    for (const side of this.sides) side.render();
  }

  stop() {
    this.closing.abort();
    this.resizing.disconnect();
    this.sides = [];
    this.sound?.stop();
  }

  close() {
    this.stop();
    this.root.remove();
  }
}
