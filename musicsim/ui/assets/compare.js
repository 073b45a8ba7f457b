// Songs to compare by ear; the listener hears each of them, and answers with a click or a key. The songs have their own
// sound: the page's player is paused meanwhile, keeps its queue, and goes on when they are left. Answers are sent to
// Python as one trigger, "action", with their turn.

import { resolve } from "../../web/addresses.js";
import { fetchStyle, mount, pagePlayer } from "../../web/component.js";
import { element, icon } from "../../web/elements.js";
import { hasOwnSpace, isTyping } from "../../web/keys.js";

const STYLE = await fetchStyle("compare.css", import.meta.url);
const LOOK_MS = 250; // interval for showing the state of the sound
const HEARD_MS = 2000; // playing time after which a song counts as heard
const MAX_LOOK_MS = 1500; // a background tab polls less often; after a longer pause, the tab was suspended and silent
const PATIENCE_MS = 5000; // after this time, an unanswered action may be sent again
const PLAY = "M8 5.5v13l11-6.5z";
const PAUSE = "M8 5.5h3v13H8zM13.5 5.5h3v13h-3z";

/** A button with its key; after a change, the focus returns to the button with this `name`. */
function keyButton(name, words, key, act, disabled = false) {
  const made = element("button", { type: "button", className: "act", disabled }, words);
  if (key) made.append(" ", element("kbd", { textContent: key })); // without the space, screen readers join both
  Object.assign(made.dataset, { name, testid: `compare-${name}` });
  if (key) made.setAttribute("aria-keyshortcuts", key);
  made.addEventListener("click", act);
  return made;
}

/** Return true if the key belongs to a text field, a list, a slider or a dialog. */
function isTaken(event, target) {
  const texts = "input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable=true]";
  const others = "[role=textbox], [role=combobox], [role=listbox], [role=dialog]";
  if (target.closest(`${texts}, ${others}`)) return true;
  const moves = "[role=slider], [role=radiogroup], [role=tablist], [role=menu], input";
  return event.key.startsWith("Arrow") && target.closest(moves) !== null;
}

class Comparison {
  constructor(root) {
    this.root = root;
    this.cards = [];
    this.broken = new Set(); // URLs that could not be played
    this.heard = new Map(); // URL -> milliseconds that it has played in this turn
    this.looked = 0; // time of the last look
    this.isQueueWaiting = false; // true if these songs paused the queue, and nobody has started it since
    this.content = element("div");
    this.status = element("div", { className: "status" }); // never removed, because screen readers would then miss changes
    this.status.setAttribute("role", "status");
    this.reminder = element("div", { className: "reminder" }); // says what is missing before an answer counts
    this.reminder.setAttribute("role", "status");
    this.waiting = element("div", { className: "waiting" }); // says that the queue is paused
    root.append(this.content, this.reminder, this.waiting, this.status);
    this.closing = new AbortController();
    const { signal } = this.closing;
    root.addEventListener("keydown", (event) => this.onCard(event), { signal });
    document.addEventListener("keydown", (event) => this.onKey(event), { signal });
    // before the page's player, which would play its queue
    document.addEventListener("keydown", (event) => this.onSpace(event), { signal, capture: true });
    this.looking = setInterval(() => this.look(), LOOK_MS);
    /** @type {any} the song whose sound is loaded */
    this.current = null;
    this.send = (/** @type {string} */ _kind, /** @type {number | null} */ _chosen) => {};
    this.sound = element("audio");
    this.sound.dataset.testid = "compare-audio";
    document.body.append(this.sound); // outside the component's shadow, so that the page's player notices it
    const on = (name, act) => this.sound.addEventListener(name, () => act(), { signal });
    on("loadedmetadata", () => { this.sound.currentTime = this.current?.track.start_s ?? 0; });
    on("ended", () => this.playNext());
    on("error", () => this.broken.add(this.current?.track.url));
    for (const name of ["play", "pause", "error", "timeupdate"]) on(name, () => this.look());
  }

  close() {
    this.closing.abort();
    clearInterval(this.looking);
    clearTimeout(this.unlocking);
    this.sound.pause();
    this.sound.remove();
    this.root.remove();
    if (this.isQueueWaiting && pagePlayer()?.state === "paused") pagePlayer()?.start();
  }

  receive({ data, setTriggerValue }) {
    const isNew = data.turn !== this.data?.turn;
    const wasPlaying = !this.sound.paused;
    const isOpening = !this.data;
    this.data = data;
    this.send = (kind, chosen) => setTriggerValue("action", { kind, at: data.turn, chosen });
    if (isNew) {
      this.broken.clear();
      this.heard.clear();
      this.reminder.classList.remove("stressed");
      this.unlock();
    }
    this.draw(isNew);
    if (isOpening && !isTyping(document.activeElement)) this.cards[0].root.focus({ preventScroll: true });
    if (isNew && !isOpening) this.takeOver(wasPlaying);
  }

  // ------------------------------------------------------------------------------------- the songs

  isCurrent(song) {
    return song.track !== null && this.current?.track.url === song.track.url;
  }

  isPlaying(song) {
    return this.isCurrent(song) && !this.sound.paused && !this.sound.error;
  }

  /** Play a song from its most typical part, then the others; pause the song if it is playing. */
  play(index) {
    const song = this.data.songs[index];
    if (!song.track) return;
    if (this.isPlaying(song)) {
      this.sound.pause();
      return;
    }
    if (!this.isCurrent(song) || this.sound.error) this.load(song);
    this.isQueueWaiting ||= pagePlayer()?.state === "playing"; // the player then pauses by itself
    this.sound.play().catch((error) => console.debug("compare:", error.name)); // the event "error" has the reasons
  }

  load(song) {
    this.current = song;
    this.sound.src = resolve(song.track.url);
    this.setVolume();
  }

  setVolume() {
    if (this.current) pagePlayer()?.setVolumeOf(this.sound, this.current.track);
  }

  playNext() {
    const at = this.data.songs.findIndex((song) => this.isCurrent(song));
    const next = this.data.songs.findIndex((song, index) => index > at && song.track);
    if (next >= 0) this.play(next);
  }

  /** End the sound of the previous question; if it was playing, play the first song of the new one. */
  takeOver(wasPlaying) {
    const first = this.data.songs.findIndex((song) => song.track);
    this.sound.pause();
    this.current = null;
    if (wasPlaying && first >= 0) this.play(first);
  }

  seek(song, share) {
    if (this.isCurrent(song) && this.sound.duration > 0) this.sound.currentTime = share * this.sound.duration;
  }

  // ------------------------------------------------------------------------------------ the answer

  choose(index) {
    if (index === 0 && this.data.form === "like") this.play(0);
    else if (index < this.cards.length) this.answer("choose", index);
  }

  /** Return true if a song was heard long enough. A song without sound counts as heard if its name is shown. */
  isHeard({ track, title }) {
    if (!track || this.broken.has(track.url)) return title !== null;
    return (this.heard.get(track.url) ?? 0) >= HEARD_MS;
  }

  /** Return why an answer would not count yet; empty if it counts. */
  missing() {
    const unheard = this.cards.filter(({ song }) => !this.isHeard(song));
    const silent = unheard.find(({ song }) => !song.track || this.broken.has(song.track.url));
    if (silent) return `${silent.name} cannot be played, so this question cannot be answered. Choose another question.`;
    const names = unheard.map((card) => card.name);
    if (!names.length) return "";
    const listed = names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
    const rest = names.length > 1 ? "each of them" : "it";
    return `Answers count once you have heard every song. Still to hear: ${listed}. Two seconds of ${rest} are enough.`;
  }

  /** Send one answer per turn, even if a key is pressed again before the next question arrives. */
  answer(kind, chosen = null) {
    if (kind === "undo" && !this.data.last) return;
    const isAnswer = kind === "choose" || kind === "unsure"; // the names are shown after these
    const trouble = this.isLocked ? "The next question is on its way." : isAnswer ? this.missing() : "";
    if (trouble) {
      this.remind(trouble);
      return;
    }
    this.isLocked = true;
    this.unlocking = setTimeout(() => [this.unlock(), this.draw()], PATIENCE_MS);
    if (chosen !== null) this.cards[chosen].root.dataset.state = "chosen";
    this.send(kind, chosen);
  }

  unlock() {
    clearTimeout(this.unlocking);
    this.isLocked = false;
  }

  /** Show a line below the songs, and stress it if the listener tried to answer too early. */
  remind(line, isStressed = true) {
    if (this.reminder.textContent !== line) this.reminder.textContent = line;
    this.reminder.classList.toggle("stressed", isStressed && line !== "");
  }

  // -------------------------------------------------------------------------------------- the keys

  /** Handle Enter on a card itself; on its buttons, this key presses the button. */
  onCard(event) {
    const index = this.cards.findIndex((card) => card.root === event.target);
    if (index < 0 || event.key !== "Enter" || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.choose(index);
  }

  /** Play or pause the selected song, else the one that played last, else the first one. */
  onSpace(event) {
    const target = event.composedPath()[0];
    if (event.key !== " " || event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (!(target instanceof Element) || isTaken(event, target) || hasOwnSpace(target)) return;
    event.preventDefault();
    const selected = this.cards.findIndex((card) => card.root === target);
    const last = this.data.songs.findIndex((song) => this.isCurrent(song));
    this.play(Math.max(0, selected >= 0 ? selected : last));
  }

  onKey(event) {
    const target = event.composedPath()[0];
    if (event.defaultPrevented || event.repeat || !(target instanceof Element) || isTaken(event, target)) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const isHeld = event.ctrlKey || event.metaKey;
    if (event.altKey || event.shiftKey || (isHeld && key !== "z")) return;
    const acts = { s: "skip", u: "unsure", z: "undo" };
    if (key in acts) this.answer(acts[key]);
    else if (/^[1-4]$/.test(key)) this.choose(Number(key) - (this.data.form === "odd" ? 1 : 0));
    else if (!this.move(key, target)) return;
    event.preventDefault();
  }

  /** Go to the previous or next card. Up and down work only on cards, because elsewhere they scroll the page. */
  move(key, target) {
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[key];
    const at = this.cards.findIndex((card) => card.root.contains(target));
    if (!by || (at < 0 && (key === "ArrowUp" || key === "ArrowDown"))) return false;
    const last = this.cards.length - 1;
    const to = at < 0 ? (by > 0 ? 0 : last) : Math.max(0, Math.min(last, at + by));
    this.cards[to].root.focus();
    return true;
  }

  // --------------------------------------------------------------------------------------- drawing

  /** Rebuild all elements and restore the focus; for a new question, the focus moves to the first song. */
  draw(isNew = false) {
    const { data, root } = this;
    const focused = root.getRootNode().activeElement?.closest("[data-name]")?.dataset.name;
    const focus = focused && isNew ? "card-0" : focused;
    this.cards = data.songs.map((song, index) => this.card(song, index));
    const list = element("ol", { className: "cards" }, ...this.cards.map((card) => card.root));
    list.dataset.n = String(data.songs.length);
    const heading = element("h2", { textContent: data.question });
    this.content.replaceChildren(heading, list, this.acts(), this.last());
    if (isNew) this.status.textContent = [data.last?.said, `Question ${data.turn}: ${data.question}`].filter(Boolean).join(" ");
    Object.assign(root.dataset, { turn: String(data.turn), form: data.form });
    if (focus) root.querySelector(`[data-name="${focus}"]`)?.focus({ preventScroll: true });
    this.look();
  }

  card(song, index) {
    const isAskedAbout = this.data.form === "like" && index === 0;
    const name = song.title ?? (isAskedAbout ? "The first song" : `Song ${song.mark}`);
    const play = element("button", { type: "button", className: "play", disabled: !song.track });
    play.dataset.testid = "compare-play";
    play.addEventListener("click", () => this.play(index));
    const words = element("div", { className: "words" }, element("div", { className: "title", textContent: name }));
    const sub = element("div", { className: "sub", textContent: song.by ?? "" });
    words.append(sub);
    words.title = [name, song.by].filter(Boolean).join("\n");
    const bar = element("i");
    const seek = element("div", { className: "seek" }, element("div", { className: "bar" }, bar));
    seek.dataset.testid = "compare-seek";
    seek.addEventListener("click", ({ offsetX }) => this.seek(song, offsetX / seek.clientWidth));
    const root = element(
      "li",
      { className: "card", tabIndex: 0 },
      element("span", { className: "mark", textContent: isAskedAbout ? "★" : song.mark }),
      play,
      words,
      seek,
    );
    root.setAttribute("aria-label", name);
    Object.assign(root.dataset, { name: `card-${index}`, testid: "compare-card" });
    if (isAskedAbout) root.append(element("div", { className: "asked", textContent: "compare with this song" }));
    else root.append(this.chooser(song, index, name));
    return { root, play, sub, bar, song, name };
  }

  chooser(song, index, name) {
    const words = this.data.form === "odd" ? "Does not belong" : "More like the first";
    const chooser = keyButton(`choose-${index}`, words, song.mark, () => this.choose(index));
    chooser.classList.add("choose");
    chooser.setAttribute("aria-label", `${words} ${song.mark}: ${name}`);
    return chooser;
  }

  acts() {
    return element(
      "div",
      { className: "acts" },
      keyButton("unsure", "I am unsure", "u", () => this.answer("unsure")),
      keyButton("skip", "Another question", "s", () => this.answer("skip")),
      ...(this.data.last ? [keyButton("undo", "Undo", "z", () => this.answer("undo"))] : []),
      element("span", { className: "keys", textContent: "← → to move, space to play, Enter to choose" }),
    );
  }

  last() {
    const box = element("div", { className: "last" });
    box.dataset.testid = "compare-last";
    const { last } = this.data;
    if (!last) return box;
    box.append(element("span", { textContent: last.said }));
    for (const { mark, name, is_chosen: isChosen } of last.songs) {
      box.append(element("span", { className: isChosen ? "name chosen" : "name", textContent: `${mark}: ${name}` }));
    }
    return box;
  }

  /** Show the state of the sound for these songs. */
  look() {
    this.setVolume();
    if (this.sound.paused && pagePlayer()?.state === "playing") this.isQueueWaiting = false;
    const line = this.isQueueWaiting ? "Your queue is paused. It goes on when you leave." : "";
    if (this.waiting.textContent !== line) this.waiting.textContent = line;
    const now = performance.now();
    const passed = Math.min(now - this.looked, MAX_LOOK_MS);
    this.looked = now;
    const url = this.cards.find(({ song }) => this.isPlaying(song))?.song.track.url;
    if (url && url === this.playing) this.heard.set(url, (this.heard.get(url) ?? 0) + passed);
    this.playing = url;
    for (const card of this.cards) this.show(card);
    const missing = this.missing();
    const answers = this.content.querySelectorAll("[data-name^=choose], [data-name=unsure]");
    for (const button of answers) button.setAttribute("aria-disabled", String(missing !== ""));
    if (!this.isLocked) this.remind(missing, this.reminder.classList.contains("stressed"));
  }

  show({ root, play, sub, bar, song, name }) {
    const isPlaying = this.isPlaying(song);
    const url = song.track?.url;
    if (isPlaying) this.broken.delete(url);
    const trouble = !url ? "the file is missing" : this.broken.has(url) ? "cannot be played" : "";
    const isHeard = !trouble && this.isHeard(song);
    const state = isPlaying ? "playing" : trouble ? "silent" : isHeard ? "heard" : "new";
    root.dataset.heard = String(isHeard);
    if (root.dataset.state !== state || !play.firstChild) {
      if (root.dataset.state !== "chosen") root.dataset.state = state;
      play.replaceChildren(icon(isPlaying ? PAUSE : PLAY));
      const label = `${isPlaying ? "Pause" : "Play"} ${name}`;
      play.setAttribute("aria-label", label);
      play.title = label;
      sub.textContent = trouble || (song.by ?? "");
    }
    const { currentTime, duration } = this.sound;
    const share = this.isCurrent(song) && duration > 0 ? currentTime / duration : 0;
    bar.style.width = `${(100 * Math.min(1, share)).toFixed(1)}%`;
  }
}

export default (component) => mount(component, "compare", "compare", Comparison, STYLE);
