// Two songs with the passages in which their shared codewords are strongest. A separate <audio> plays exactly one
// passage at a time, while the page's player is paused and keeps its queue.

import { applyStyle, closeIfGone, fetchStyle, pagePlayer, resolve } from "./component.js";
import { clock, drawBars, element, penOf } from "./elements.js";

const STYLE = await fetchStyle("two_waves.css", import.meta.url);
const FLAG_PX = 28; // width of a passage's button, however short the passage is
const STEM_PX = 10; // distance between the buttons and the waveform
const [DARK, LIGHT] = ["#1f2a2e", "#ffffff"];

/** Return the relative luminance of a color "#rrggbb" (WCAG 2). */
function luminance(colour) {
  const linear = (at) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(1) + 0.7152 * linear(3) + 0.0722 * linear(5);
}

function inkOn(colour) {
  const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const background = luminance(colour);
  const on = (ink) => contrast(background, luminance(ink));
  return on(LIGHT) > on(DARK) ? LIGHT : DARK;
}

/** Return the centers of the buttons: as close to their passages as possible without overlap. */
function spread(wanted, width) {
  const order = wanted.map((x, i) => [x, i]).sort((a, b) => a[0] - b[0]);
  const places = new Array(wanted.length);
  let last = -FLAG_PX / 2;
  for (const [x, i] of order) last = places[i] = Math.max(x, last + FLAG_PX);
  let next = width + FLAG_PX / 2;
  for (const [, i] of order.reverse()) next = places[i] = Math.min(places[i], next - FLAG_PX);
  return places;
}

// ------------------------------------------------------------------------------------- the sound

class Sound {
  constructor(changed, closing) {
    this.changed = changed;
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
    for (const sound of pagePlayer()?.sounds ?? []) on(sound, "play", () => this.stop());
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
    pagePlayer()?.pause();
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
    const { letter, colour } = this.slots[passage.slot];
    const made = element("button", { type: "button", className: "flag", textContent: letter });
    Object.assign(made.style, { background: colour, color: inkOn(colour) });
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
    const places = spread(middles, width);
    passages.forEach(({ start_s: start, end_s: end, slot }, i) => {
      this.buttons[i].style.left = `${places[i] - FLAG_PX / 2}px`;
      [pen.fillStyle, pen.strokeStyle, pen.lineWidth] = [this.slots[slot].colour, this.slots[slot].colour, 1.5];
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
      return inside ? [this.slots[inside.slot].colour, 1] : [ink, 0.4];
    });
  }
}

// --------------------------------------------------------------------------------------- legend

function legend(slots, sides, sound) {
  const rows = slots.map(({ letter, colour, words }, slot) => {
    const items = sides.map((side) => ({ side: side.data, passage: side.data.passages[slot] }));
    const chip = element("i", { textContent: letter });
    Object.assign(chip.style, { background: colour, color: inkOn(colour) });
    const both = element("button", { type: "button", textContent: "▶ both" });
    both.setAttribute("aria-label", `Play ${letter} in both songs`);
    both.addEventListener("click", () => sound.toggle(items));
    return element("li", {}, chip, element("span", { textContent: words }), both);
  });
  return element("ul", { className: "legend" }, ...rows);
}

export default function ({ data, parentElement }) {
  applyStyle(parentElement, STYLE);
  const shown = JSON.stringify(data);
  const old = parentElement.querySelector("[data-testid=two-waves]");
  if (old?.shown === shown) return closeIfGone(parentElement, old.close); // the page ran again, for example for the player's next song
  old?.close();
  const closing = new AbortController();
  const message = element("div", { className: "message" });
  message.setAttribute("role", "status");
  const sides = [];
  const sound = new Sound(() => {
    message.textContent = sound.message;
    for (const side of sides) side.render();
  }, closing.signal);
  sides.push(...data.sides.map((side) => new Side(side, data.slots, sound)));
  const root = element("div", { className: "two-waves" }, ...sides.map((side) => side.root));
  root.append(legend(data.slots, sides, sound), message, sound.audio);
  root.dataset.testid = "two-waves";
  const resizing = new ResizeObserver(() => {
    for (const side of sides) side.render();
  });
  for (const side of sides) resizing.observe(side.canvas);
  root.shown = shown;
  root.close = () => {
    closing.abort();
    resizing.disconnect();
    sound.stop();
    root.remove();
  };
  parentElement.append(root);
  return closeIfGone(parentElement, root.close);
}
