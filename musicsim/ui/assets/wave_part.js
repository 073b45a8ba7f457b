// Select part of a song on its waveform: one range with a handle at each end, to drag or to move with keys. A drag that
// starts away from the handles selects a new part.

const STEP_S = 0.5;
const SHORTEST_S = 2;
const GRIP_PX = 14; // a handle can be dragged from this far away

function clockOf(seconds) {
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
}

class WavePart {
  constructor(root) {
    this.root = root;
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    this.sliders = ["Start", "End"].map((name) => {
      const slider = document.createElement("input");
      Object.assign(slider, { type: "range", min: 0, step: STEP_S });
      slider.setAttribute("aria-label", `${name} of the part, in seconds`);
      slider.addEventListener("input", () => this.set(...this.bounds(), slider));
      slider.addEventListener("change", () => this.send());
      return slider;
    });
    this.words = document.createElement("span");
    this.words.setAttribute("role", "status");
    this.whole = document.createElement("button");
    Object.assign(this.whole, { type: "button", textContent: "Whole song" });
    this.whole.addEventListener("click", () => { this.set(0, this.data.duration_s); this.send(); });
    const foot = document.createElement("div");
    foot.className = "foot";
    foot.append(this.words, this.whole);
    this.handles = ["start", "end"].map((name) => {
      const handle = document.createElement("div"); // only to see: the slider below it has the focus and the keys
      handle.className = `handle ${name}`;
      handle.setAttribute("aria-hidden", "true");
      return handle;
    });
    const stage = document.createElement("div");
    stage.className = "stage";
    stage.append(this.canvas, ...this.sliders, ...this.handles);
    root.append(stage, foot);
    this.canvas.addEventListener("pointerdown", (event) => this.begin(event));
    this.canvas.addEventListener("pointermove", (event) => this.held !== undefined && this.set(this.held, this.secondAt(event)));
    this.canvas.addEventListener("pointerup", () => { if (this.held !== undefined) this.send(); this.held = undefined; });
    this.resizing = new ResizeObserver(() => this.paint());
    this.resizing.observe(this.canvas);
  }

  receive(component) {
    const said = ({ song, part } = {}) => JSON.stringify([song, part]);
    const isNew = said(this.data) !== said(component.data); // the song is different, or Python has reset the part
    Object.assign(this, { component, data: component.data });
    for (const slider of this.sliders) slider.max = this.data.duration_s;
    if (isNew && this.held === undefined) this.set(...(this.data.part ?? [0, this.data.duration_s]));
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
    this.component.setTriggerValue("part", { song: this.data.song, seconds: isWhole ? null : [from, to] });
  }

  paint() {
    if (!this.data || !this.canvas.clientWidth) return;
    const [from, to] = this.bounds();
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = window.devicePixelRatio || 1;
    Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    const style = getComputedStyle(this.root);
    const { peaks, duration_s: duration } = this.data;
    for (let x = 0; x < width; x += 3) {
      const second = (x / width) * duration;
      const peak = peaks[Math.floor((x / width) * peaks.length)] ?? 0;
      const isIn = second >= from && second <= to;
      context.fillStyle = isIn ? style.getPropertyValue("--st-primary-color") : style.color;
      context.globalAlpha = isIn ? 1 : 0.25;
      const tall = Math.max(1, peak * height);
      context.fillRect(x, (height - tall) / 2, 2, tall);
    }
    [from, to].forEach((second, i) => {
      this.handles[i].style.left = `${(100 * second) / duration}%`;
      this.handles[i].dataset.time = clockOf(second);
      this.sliders[i].setAttribute("aria-valuetext", clockOf(second));
    });
    const isWhole = from <= 0 && to >= duration - STEP_S;
    this.words.textContent = isWhole ? "Drag an end to search with only part of the song." : `Only ${clockOf(from)} to ${clockOf(to)}`;
    this.whole.hidden = isWhole;
  }

  close() {
    this.resizing.disconnect();
    this.root.remove();
  }
}

export default function (component) {
  const { parentElement } = component;
  let root = parentElement.querySelector(".musicsim-part");
  if (!root) {
    root = document.createElement("div");
    root.className = "musicsim-part";
    root.dataset.testid = "wave-part";
    root.wave = new WavePart(root);
    parentElement.append(root);
  }
  root.wave.receive(component);
  return () => root.wave.close();
}
