// The dialog that explains the similarity of two songs with waveforms, shared sounds, tags and listeners.

import { ask, Refusal } from "../addresses.js";
import { applyStyle, fetchStyle } from "../component.js";
import { button, element, icon, iconButton } from "../elements.js";
import { trackOf } from "../player/engine.js";
import { barsOf, inkOn, letterAt, wavesOf } from "./figures.js";
import { TwoWaves } from "./two_waves.js";
import {
  describeCommon,
  describeDifferences,
  describeExamples,
  describeList,
  describePoints,
  describeSimilarity,
  describeUnlike,
  rankExamples,
} from "./words.js";

const STYLE = await fetchStyle("why.css", import.meta.url);
const NAME = "Why are these two similar?";
const CROSS = "M6 6l12 12M18 6L6 18";
const INFO = "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 11v5M12 8v.01";
const PLAYER_KEYS = " jk"; // all other keys do nothing on the page behind the dialog

/**
 * What the dialog is about: a result, and the example or examples that it resembles.
 * @typedef {object} Question
 * @property {HTMLElement | ShadowRoot} parent where the dialog is appended; it has the theme's variables
 * @property {() => HTMLElement | null} [findOpener] finds what gets the focus when the dialog closes
 * @property {number} other id of the result
 * @property {number | null} [song] id of the song that the list starts from
 * @property {string | null} [sound] instead of a song: digest of a sound that is not in the library
 * @property {string | null} [soundUrl] where this sound can be heard
 * @property {string | null} [soundName] its name in the dialog
 * @property {number[]} [examples] ids of further songs that results should resemble
 * @property {number[]} [unlike] ids of songs that results should not resemble
 * @property {[number, number] | null} [part] the only seconds of the song or sound that are compared
 * @property {string} [factor] the only factor that the list compares
 * @property {string} [library]
 * @property {string} [model]
 */

/** Return true if an error may not happen again. @param {unknown} error */
const mayPass = (error) => !(error instanceof Refusal) || [0, 429, 503].includes(error.status);

const paragraph = (/** @type {string} */ text, className = "") => element("p", { className, textContent: text });

/** Return a paragraph of three texts; the one in the middle is bold. @param {string[]} texts */
const emphasized = ([before, bold, after]) => element("p", {}, before, element("strong", { textContent: bold }), after);

const heading = (/** @type {string} */ text) => element("h3", { textContent: text });

/** Return gray shapes that are shown while the answer is computed. */
function bones() {
  const shapes = ["line", "wave", "wave", "line", "line short"].map((name) => element("div", `bone ${name}`));
  return element("div", { className: "bones", role: "status", ariaLabel: "The explanation is being computed." }, ...shapes);
}

// ---------------------------------------------------------------------------------------- bars

/** @param {import("./figures.js").Bar} bar @param {string} stage */
function drawBar({ left, width, isNegative, points }, stage) {
  const drawn = element("div", { className: "bar" });
  Object.assign(drawn.style, { left: `${left}%`, width: `${width}%` });
  const value = element("span", { className: "points" }, element("span", { className: "unseen", textContent: `${stage}: ` }), points);
  if (isNegative) value.style.right = `${100 - left}%`;
  else value.style.left = `${left + width}%`;
  return element("div", { className: `track ${stage.split(" ")[0]}` }, drawn, value);
}

/** Draw the parts of the similarity as bars, with the letters of shared sounds. */
function drawParts({ parts, shared_sounds: shared, sound_colors: colors }) {
  const bars = barsOf(parts);
  const isLearned = bars.some(({ before }) => before);
  const now = isLearned ? "after learning" : "share";
  const rows = bars.map((bar) => {
    const place = shared.indexOf(bar.words);
    const words = element("div", { className: "words" });
    if (place >= 0) {
      const chip = element("i", { textContent: letterAt(place) });
      Object.assign(chip.style, { background: colors[place], color: inkOn(colors[place]) });
      words.append(chip, " ");
    }
    words.append(bar.words);
    const tracks = [...(bar.before ? [drawBar(bar.before, "before learning")] : []), drawBar(bar.now, now)];
    return element("li", {}, words, ...tracks);
  });
  const list = element("ul", { className: "bars" }, ...rows);
  list.classList.toggle("signed", bars.some((bar) => bar.now.isNegative || bar.before?.isNegative));
  if (!isLearned) return [list];
  const legend = ["before learning", "after learning"].map((stage) =>
    element("span", { className: stage.split(" ")[0] }, element("i"), stage),
  );
  return [list, element("div", { className: "stages", ariaHidden: "true" }, ...legend)];
}

// -------------------------------------------------------------------------------------- dialog

export class WhyDialog {
  /** @param {{player: import("../player/engine.js").Engine, context: import("../client.js").Context}} client */
  constructor(client) {
    this.client = client;
    /** @type {Question | null} */
    this.question = null;
    this.asking = new AbortController();
    /** @type {TwoWaves | null} */
    this.waves = null;
    this.pressed = /** @type {EventTarget | null} */ (null);
    this.examples = element("div", { className: "examples" });
    this.explanation = element("div", { className: "explanation" });
    this.dialog = element(
      "dialog",
      { className: "musicsim-why", ariaLabel: NAME },
      element(
        "div",
        { className: "inside" },
        element("header", {}, element("h2", { textContent: NAME }), iconButton(CROSS, "Close", () => this.close(), { className: "close" })),
        this.examples,
        this.explanation,
      ),
    );
    this.dialog.addEventListener("close", () => this.forget());
    this.dialog.addEventListener("pointerdown", ({ target }) => { this.pressed = target; });
    this.dialog.addEventListener("click", ({ target }) => {
      if (target === this.dialog && this.pressed === target) this.close(); // a click on the backdrop
    });
    this.dialog.addEventListener("keydown", (event) => {
      if (!PLAYER_KEYS.includes(event.key)) event.stopPropagation();
    });
  }

  /** Open the dialog, and fill it when the answer has arrived. @param {Question} question */
  async show(question) {
    if (this.question) this.close();
    this.question = question;
    applyStyle(question.parent, STYLE);
    question.parent.append(this.dialog);
    this.examples.replaceChildren();
    this.dialog.showModal();
    await this.explain(null);
  }

  close() {
    this.dialog.close();
    this.forget(); // at once: the event "close" comes later
  }

  forget() {
    if (!this.question || this.dialog.open) return;
    const { findOpener } = this.question;
    this.question = null;
    this.empty();
    this.dialog.remove();
    findOpener?.()?.focus(); // a list may have been drawn again in the meantime
  }

  empty() {
    this.asking.abort();
    this.waves?.close();
    this.waves = null;
  }

  /** Explain the similarity to one of the examples, by default the nearest. @param {number | null} place */
  async explain(place) {
    const { question } = this;
    if (!question) return;
    this.empty();
    this.asking = new AbortController();
    const { signal } = this.asking;
    this.explanation.replaceChildren(bones());
    try {
      const answer = await this.ask(question, place, signal);
      if (signal.aborted) return;
      if (answer.examples && place === null) this.showExamples(answer.examples);
      this.showExplanation(answer, question);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Refusal)) console.error(error);
      const words = error instanceof Refusal ? error.message : "The similarity cannot be explained now.";
      this.explanation.replaceChildren(element("p", { role: "alert", textContent: words }));
      if (mayPass(error)) this.explanation.append(button("Try again", () => this.explain(place), { textContent: "Try again", className: "again" }));
    }
  }

  /** @param {Question} question @param {number | null} place @param {AbortSignal} signal */
  ask(question, place, signal) {
    const { song, sound, soundName: name, other, examples = [], unlike = [], part } = question;
    const { library = this.client.context.library, model = this.client.context.model } = question;
    const [first, ...like] = song || sound ? [song, ...examples] : examples;
    const address = sound ? `api/sounds/${encodeURIComponent(sound)}/why` : `api/songs/${first}/why`;
    return ask(address, { other, like, unlike, part, name: sound && name, example: place, library, model }, { signal });
  }

  /** Show the similarity to all examples, and let the user choose the one to compare with. */
  showExamples(examples) {
    const parts = [emphasized(describeExamples(examples))];
    const away = describeUnlike(examples);
    if (away) parts.push(paragraph(away, "small"));
    if (examples.like.length > 1) {
      const options = rankExamples(examples).map(({ title, place }) => element("option", { value: place, textContent: title }));
      const select = element("select", {}, ...options);
      select.value = String(examples.explained);
      select.addEventListener("change", () => this.explain(Number(select.value)));
      parts.push(element("label", {}, "Compared with", select));
    }
    this.examples.replaceChildren(...parts);
  }

  /** @param {any} answer @param {Question} question */
  showExplanation(answer, question) {
    const { library = this.client.context.library, soundUrl = null, factor = "" } = question;
    const about = describeList(answer, factor);
    const waves = element("div");
    const small = (text) => (text ? [paragraph(text, "small")] : []);
    const hint = "Click a letter to hear a shared sound; the gray areas show where shared sounds occur.";
    this.explanation.replaceChildren(
      emphasized(describeSimilarity(answer)),
      ...small(about),
      waves,
      ...small(answer.shared_sounds.length && hint),
      ...answer.notes.map((note) => element("p", { className: "small note" }, icon(INFO), note)),
      heading("Sources of the similarity"),
      ...small(describePoints(answer)),
      ...drawParts(answer),
      ...small(describeDifferences(answer)),
      heading("In common"),
      ...describeCommon(answer).map((line) => paragraph(line)),
      ...answer.more.flatMap(({ title, lines }) => [heading(title), ...lines.map((line) => paragraph(line))]),
    );
    this.waves = new TwoWaves(waves, this.client.player);
    this.waves.show(wavesOf(answer, (id) => (id === null ? soundUrl : trackOf(library, id).url)));
  }
}
