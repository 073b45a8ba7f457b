// The view of the music player. It can be removed and mounted again, because it has no state of its own: it shows the
// state of the engine.

import { resolve } from "../addresses.js";
import { applyStyle, fetchStyle, fetchTemplate } from "../component.js";
import { clock, drawBars, element, icon, penOf } from "../elements.js";

const STYLE = await fetchStyle("player.css", import.meta.url);
const TEMPLATE = await fetchTemplate("player.html", import.meta.url);

const NOTICE_MS = 6000;
const NUDGE_S = 5;
const EMPTY_TEXT = "Nothing is playing: choose a song";

class View {
  constructor(engine, root) {
    this.engine = engine;
    this.root = root;
    this.heights = null;
    this.drawn = null; // uid of the track whose waveform is shown
    this.canvas = root.querySelector("canvas");
    // Streamlit may mount the same elements again after they are closed, so the old listeners must be removed.
    this.closing = new AbortController();
    this.wire();
    this.resizing = new ResizeObserver(() => this.draw());
    this.resizing.observe(this.canvas);
  }

  part(name) {
    return this.root.querySelector(`[data-testid="player-${name}"]`);
  }

  on(part, name, act) {
    part.addEventListener(name, act, { signal: this.closing.signal });
  }

  wire() {
    const { engine } = this;
    const click = (name, act) => this.on(this.part(name), "click", act);
    click("play", () => engine.toggle());
    click("prev", () => engine.previous());
    click("next", () => engine.next());
    click("title", () => engine.onOpen(engine.track, false));
    click("more", () => {
      this.part("menu-panel").hidePopover();
      engine.onOpen(engine.track, true);
    });
    click("mute", () => engine.setVolume({ muted: !engine.volume.muted }));
    click("queue-order", () => engine.orderForMixing());
    click("queue-clear", () => engine.clear());
    click("retry", () => engine.retry());
    for (const [name, value] of [["thumb-up", 1], ["thumb-down", -1]]) {
      click(name, () => engine.rate(value));
    }
    this.on(this.part("volume"), "input", ({ target }) => engine.setVolume({ level: Number(target.value), muted: false }));
    this.wireQueue();
    this.wireMenu();
    this.wireWave(this.part("wave"));
  }

  /** Connect a panel to the button that opens it, and return the panel. */
  wirePanel(name) {
    const [opener, panel] = [this.part(name), this.part(`${name}-panel`)];
    // The browser links the two, because it would close the panel before it called a click handler.
    opener.popoverTargetElement = panel;
    this.on(panel, "toggle", ({ newState }) => {
      opener.setAttribute("aria-expanded", String(newState === "open"));
      if (newState === "open") this.placeAbove(panel, opener);
    });
    return panel;
  }

  wireMenu() {
    const { engine } = this;
    this.wirePanel("menu");
    const change = (name, act) => this.on(this.part(name), "change", ({ target }) => act(target));
    change("level", ({ checked }) => engine.set({ level: checked }));
    change("between", ({ value }) => {
      engine.set({ between: value });
      this.renderQueue();
    });
    change("radio", ({ checked }) => engine.set({ radio: checked }));
    change("presentation", ({ checked }) => engine.present(checked));
  }

  wireQueue() {
    this.panel = this.wirePanel("queue");
    this.on(this.panel, "toggle", ({ newState }) => newState === "open" && this.renderQueue());
    this.on(this.part("queue-list"), "click", ({ target }) => {
      const button = target.closest("button");
      if (!button) return;
      const uid = Number(button.closest("li").dataset.uid);
      const acts = { jump: () => this.engine.jump(uid), remove: () => this.engine.remove(uid) };
      (acts[button.dataset.act] ?? (() => this.engine.move(uid, Number(button.dataset.by))))();
    });
  }

  wireWave(wave) {
    const { engine } = this;
    const seekTo = (event) => {
      const box = wave.getBoundingClientRect();
      engine.seek(((event.clientX - box.left) / box.width) * engine.duration);
    };
    this.on(wave, "pointerdown", (event) => {
      if (event.button !== 0 || !Number.isFinite(engine.duration)) return;
      wave.setPointerCapture(event.pointerId);
      seekTo(event);
    });
    this.on(wave, "pointermove", (event) => {
      if (wave.hasPointerCapture(event.pointerId)) seekTo(event);
    });
    this.on(wave, "keydown", (event) => {
      const to = {
        ArrowLeft: engine.position - NUDGE_S,
        ArrowRight: engine.position + NUDGE_S,
        Home: 0,
        End: engine.duration,
      }[event.key];
      if (!Number.isFinite(to)) return;
      event.preventDefault();
      engine.seek(to);
    });
  }

  close() {
    this.closing.abort();
    this.resizing.disconnect();
    clearTimeout(this.noticeTimer);
  }

  // ----------------------------------------------------------------------------------- rendering

  render() {
    const { engine, root } = this;
    const { track, state, tracks, volume } = engine;
    root.dataset.state = state;
    root.dataset.muted = String(volume.muted || volume.level === 0);
    root.dataset.queueLength = String(tracks.length);
    root.dataset.songId = track ? String(track.song_id) : "";
    this.part("title").textContent = track ? track.title : EMPTY_TEXT;
    this.part("title").title = track ? `${track.title}\nShow this song` : "";
    this.part("artist").textContent = track ? by(track) : EMPTY_TEXT; // the title is hidden if there is no song
    this.part("artist").title = track ? by(track) : "";
    this.renderCover(track);
    this.label("play", state === "playing" ? "Pause" : "Play", " (space)");
    this.label("mute", volume.muted ? "Unmute" : "Mute");
    this.part("volume").value = String(volume.muted ? 0 : volume.level);
    for (const name of ["play", "prev"]) this.part(name).disabled = !track;
    for (const name of ["thumb-up", "thumb-down"]) this.part(name).disabled = !track?.song_id;
    // both actions would reveal the song
    for (const name of ["title", "more"]) this.part(name).disabled = !track?.song_id || Boolean(track.is_blind);
    this.part("next").disabled = !engine.hasNext && !engine.goesOn;
    const { level, between, radio } = engine.settings;
    [this.part("level").checked, this.part("between").value, this.part("radio").checked] = [level, between, radio];
    this.part("presentation").checked = engine.isPresented;
    const opinion = track ? engine.thumb(track.song_id) : 0;
    this.part("thumb-up").setAttribute("aria-pressed", String(opinion === 1));
    this.part("thumb-down").setAttribute("aria-pressed", String(opinion === -1));
    const queued = tracks.length > 1 ? String(tracks.length) : "";
    this.part("queue-count").textContent = queued;
    this.part("queue").setAttribute("aria-label", queued ? `Queue: ${queued} songs` : "Queue");
    this.renderMix();
    this.renderPosition();
    this.renderLost();
    this.fetchWave(track);
  }

  /** Show how the next song follows; the tempos of hidden songs would reveal them. */
  renderMix() {
    const { mixes, mixer, tracks, index } = this.engine;
    const isShown = mixes && !tracks.some((track) => track.is_blind);
    const words = isShown ? mixer.words : "";
    const line = this.part("mix");
    line.textContent = words && `Next: ${words}`;
    line.hidden = !words;
    this.part("next").title = words ? `Next (k)\n${words}` : "Next (k)";
    this.part("queue-order").hidden = !isShown || tracks.length - index < 3;
  }

  renderLost() {
    this.part("lost").hidden = !this.engine.isLost;
  }

  renderCover(track) {
    const url = track?.cover_url ? resolve(track.cover_url) : "";
    const { style } = this.part("cover");
    const image = url ? `url("${url}")` : "";
    if (style.backgroundImage !== image) style.backgroundImage = image;
  }

  label(name, text, hint = "") {
    const part = this.part(name);
    part.setAttribute("aria-label", text);
    part.title = text + hint;
  }

  renderPosition() {
    const { position, duration, track } = this.engine;
    this.root.dataset.position = track ? String(Math.round(position)) : "";
    this.part("time").textContent = track ? `${clock(position)} / ${clock(duration)}` : "";
    const wave = this.part("wave");
    wave.tabIndex = track ? 0 : -1;
    wave.setAttribute("aria-disabled", String(!track));
    wave.setAttribute("aria-valuemax", String(Math.round(duration) || 0));
    wave.setAttribute("aria-valuenow", String(Math.round(position) || 0));
    wave.setAttribute("aria-valuetext", `${clock(position)} of ${clock(duration)}`);
    this.draw();
  }

  fetchWave(track) {
    if ((track?.uid ?? null) === this.drawn) return;
    this.drawn = track?.uid ?? null;
    this.heights = null;
    this.part("wave").dataset.kind = "bar";
    if (!track) return;
    this.engine.peaksOf(track).then((heights) => {
      if (this.drawn !== track.uid) return; // the song has changed in the meantime
      this.heights = heights;
      this.part("wave").dataset.kind = heights ? "wave" : "bar";
      this.draw();
    });
  }

  draw() {
    const pen = penOf(this.canvas);
    if (!pen) return;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const { position, duration } = this.engine;
    const played = duration > 0 ? Math.min(1, position / duration) : 0;
    const style = getComputedStyle(this.root);
    const [past, future] = [style.getPropertyValue("--st-primary-color"), style.color];
    if (this.heights) drawBars(pen, this.heights, { top: 1, tall: height - 2 }, (share) => (share < played ? [past, 1] : [future, 0.32]));
    else drawSeekBar(pen, { width, height, played: played * width, past, future });
  }

  renderQueue() {
    const { tracks, index } = this.engine;
    const count = tracks.length === 1 ? "1 song" : `${tracks.length} songs`;
    this.part("queue-summary").textContent = `Queue · ${count}`;
    this.part("queue-clear").disabled = !tracks.length;
    if (!this.panel.matches(":popover-open")) return;
    const list = this.part("queue-list");
    const focused = this.root.getRootNode().activeElement;
    const row = focused?.closest("li");
    const [at, uid, act] = [[...list.children].indexOf(row), row?.dataset.uid, focused?.dataset.label];
    const { mixes } = this.engine;
    list.replaceChildren(...tracks.map((track, i) => queueRow(track, i, index, tracks.length, mixes ? measures(track) : "")));
    if (!tracks.length) list.append(element("li", { className: "empty", textContent: "The queue is empty." }));
    if (row) refocus(list, { at, uid, act });
    this.placeAbove(this.panel, this.part("queue"));
  }

  placeAbove(panel, anchor) {
    const box = anchor.getBoundingClientRect();
    panel.style.bottom = `${window.innerHeight - this.root.getBoundingClientRect().top + 8}px`;
    const width = document.documentElement.clientWidth;
    panel.style.right = `${Math.max(8, Math.min(width - box.right, width - panel.offsetWidth - 8))}px`;
  }

  notify(text, kind) {
    const notice = this.part("message");
    notice.dataset.kind = kind;
    notice.textContent = text;
    notice.showPopover();
    const box = this.root.getBoundingClientRect();
    notice.style.bottom = `${window.innerHeight - box.top + 10}px`;
    notice.style.left = `${Math.max(12, box.left)}px`;
    clearTimeout(this.noticeTimer);
    this.noticeTimer = setTimeout(() => notice.hidePopover(), NOTICE_MS);
  }

  showKeys() {
    const sheet = this.part("keys");
    sheet.togglePopover();
    if (sheet.matches(":popover-open")) sheet.focus();
  }

  announce() {
    const { track } = this.engine;
    this.part("live").textContent = track ? `Now playing: ${track.title}, ${track.artist}` : EMPTY_TEXT;
  }
}

function drawSeekBar(pen, { width, height, played, past, future }) {
  const [thick, knob] = [4, 6];
  const middle = height / 2;
  const line = (to, color, alpha) => {
    [pen.fillStyle, pen.globalAlpha] = [color, alpha];
    pen.beginPath();
    pen.roundRect(0, middle - thick / 2, to, thick, thick / 2);
    pen.fill();
  };
  line(width, future, 0.22);
  line(played, past, 1);
  pen.beginPath();
  pen.arc(Math.max(knob, Math.min(width - knob, played)), middle, knob, 0, 2 * Math.PI);
  pen.fill();
}

/** Return the artist of a song and, if the player chose the song, the reason. */
function by({ artist, reason }) {
  return [artist, reason].filter(Boolean).join(" · ");
}

/** Return tempo and key of a song, for mixing. */
function measures({ tempo, key, is_blind: isBlind }) {
  return isBlind ? "" : [tempo ? `${Math.round(tempo)} beats/min` : "", key].filter(Boolean).join(", ");
}

function queueRow(track, i, current, n, measured) {
  const below = [measured, by(track)].filter(Boolean).join(" · ");
  const names = element("span", { className: "names" }, element("span", { textContent: track.title }), element("span", { textContent: below }));
  const number = element("span", { className: "number", textContent: i === current ? "▶" : String(i + 1) });
  const act = (label, path, data, disabled = false) => {
    const button = element("button", { type: "button", className: "icon", title: label, disabled }, icon(path));
    button.setAttribute("aria-label", `${label}: ${track.title}`);
    Object.assign(button.dataset, data, { label });
    return button;
  };
  const jump = element("button", { type: "button", className: "jump" }, number, names);
  Object.assign(jump.dataset, { act: "jump", label: "jump" });
  const item = element(
    "li",
    {},
    jump,
    act("Move up", "M6 15l6-6 6 6", { by: "-1" }, i === 0),
    act("Move down", "M6 9l6 6 6-6", { by: "1" }, i === n - 1),
    act("Remove", "M6 6l12 12M18 6L6 18", { act: "remove" }),
  );
  item.dataset.uid = String(track.uid);
  if (i === current) item.setAttribute("aria-current", "true");
  return item;
}

/** After the list was rebuilt, focus the same song, or the one in its place. */
function refocus(list, { at, uid, act }) {
  const rows = [...list.children];
  const row = rows.find((item) => item.dataset.uid === uid) ?? rows[Math.min(at, rows.length - 1)];
  const enabled = [...row.querySelectorAll("button:enabled")];
  (enabled.find((button) => button.dataset.label === act) ?? enabled[0])?.focus();
}

/** Show the player of an engine in an element, once. */
export function showPlayer(engine, parentElement) {
  applyStyle(parentElement, STYLE);
  if (!parentElement.querySelector(".player")) parentElement.append(TEMPLATE.content.cloneNode(true));
  engine.attach(parentElement, View);
}
