// A box that searches as the user types, and shows the matches as lines below it: a combobox with a listbox
// (WAI-ARIA 1.2). All strings come from file tags and are set as text, never as markup.

import { applyStyle, fetchStyle } from "../component.js";
import { noteBox } from "./boxes.js";
import { element, icon, iconButton } from "../elements.js";
import { actOfKey } from "./keys.js";

const STYLE = await fetchStyle("finder.css", import.meta.url);
const TYPED_MS = 30; // time between two letters of a fast typist
const GAP_PX = 4;
const TALLEST_PX = 380;
const ICONS = { search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16.2 16.2L20 20", clear: "M6 6l12 12M18 6L6 18" };
let boxes = 0;

/**
 * @typedef {{kind: string, value: string, title: string, sub: string}} Match
 * @typedef {object} Options
 * @property {string} label
 * @property {boolean} [isLabelled] the label is shown, not only said
 * @property {string} [placeholder]
 * @property {string} [help]
 * @property {Match[]} [chosen] lines that are shown below the box, if there can be several
 * @property {boolean} [showsAll] an empty box shows the matches of an empty text
 * @property {(text: string, signal: AbortSignal) => Promise<{matches: Match[], suggestions?: string[]}>} search
 * @property {(match: Match) => void} onPick
 * @property {(value: string) => void} [onDrop]
 */

export class Finder {
  /** @param {HTMLElement} root @param {Options} options */
  constructor(root, options) {
    applyStyle(root, STYLE);
    root.classList.add("musicsim-finder");
    root.dataset.testid = "finder";
    this.root = root;
    /** @type {any} */ (root).finder = this;
    this.options = options;
    this.suggestions = [];
    this.found = ""; // the text that the lines match
    this.problem = "";
    boxes += 1;
    this.id = `musicsim-finder-${boxes}`;
    this.matches = [];
    this.active = 0;
    this.isMoved = false; // true if the arrow keys moved the mark since the last letter
    this.isOpen = false;
    /** @type {AbortController | null} */
    this.searching = null;
    this.label = element("label");
    this.input = this.makeInput();
    this.clear = iconButton(ICONS.clear, "Clear", () => { this.type(""); this.input.focus(); }, { className: "clear" });
    this.box = element("div", "box", icon(ICONS.search), this.input, this.clear);
    this.list = this.makeList();
    this.sheet = element("div", "musicsim-finder-sheet", this.list);
    this.sheet.popover = "manual";
    this.chips = element("div", "chips");
    root.append(this.label, this.box, this.sheet, this.chips);
    noteBox(this.input);
    this.closing = new AbortController();
    const place = () => this.isOpen && this.place();
    const { signal } = this.closing;
    window.addEventListener("resize", place, { signal });
    document.addEventListener("scroll", place, { capture: true, passive: true, signal });
    this.describe(options);
    this.setChosen(options.chosen ?? []);
  }

  makeInput() {
    const input = element("input");
    Object.assign(input, { id: this.id, type: "text", autocomplete: "off", spellcheck: false });
    const aria = { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false" };
    for (const [name, value] of Object.entries(aria)) input.setAttribute(name, value);
    input.setAttribute("aria-controls", `${this.id}-list`);
    input.addEventListener("input", () => this.typed());
    input.addEventListener("keydown", (event) => this.key(event));
    input.addEventListener("focus", () => this.show());
    input.addEventListener("blur", () => this.hide());
    return input;
  }

  makeList() {
    const list = element("ul");
    list.id = `${this.id}-list`;
    list.setAttribute("role", "listbox");
    list.addEventListener("mousedown", (event) => event.preventDefault()); // keeps the focus in the box
    list.addEventListener("click", (event) => {
      const line = event.target.closest("[role=option]");
      if (line) this.pick(this.matches[Number(line.dataset.index)]);
    });
    list.addEventListener("mousemove", (event) => {
      const line = event.target.closest("[role=option]");
      if (line) this.activate(Number(line.dataset.index), false);
    });
    return list;
  }

  /** @param {Options} options */
  describe(options) {
    this.options = options;
    const { label, isLabelled = true, placeholder = "", help = "" } = options;
    this.label.textContent = label;
    this.label.htmlFor = this.id;
    this.label.hidden = !isLabelled;
    this.input.placeholder = placeholder;
    this.input.setAttribute("aria-label", label);
    this.input.title = help;
    this.list.setAttribute("aria-label", label);
    this.clear.hidden = !this.input.value;
  }

  focus() {
    this.input.focus();
  }

  /** True if the box has the focus; in a shadow root, the document only knows its host. */
  get isFocused() {
    return this.input.matches(":focus");
  }

  // ----------------------------------------------------------------------------------- typing

  typed() {
    this.isHasty = false;
    this.isMoved = false;
    this.clear.hidden = !this.input.value;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.ask(), TYPED_MS);
    if (!this.input.value.trim() && !this.options.showsAll) this.hide();
  }

  /** Search for the text in the box; an older answer is ignored. */
  async ask() {
    const text = this.input.value.trim();
    if (text === this.asked) return;
    this.asked = text;
    this.searching?.abort();
    if (!text && !this.options.showsAll) { this.take("", [], []); return; }
    const searching = new AbortController();
    this.searching = searching;
    try {
      const { matches, suggestions = [] } = await this.options.search(text, searching.signal);
      if (!searching.signal.aborted) this.take(text, matches, suggestions);
    } catch (error) {
      if (searching.signal.aborted) return;
      this.asked = undefined;
      this.problem = error instanceof Error ? error.message : String(error);
      this.take(text, [], []);
    }
  }

  /** Show matches; a line that the user marked with the arrow keys stays marked. */
  take(text, matches, suggestions) {
    const marked = this.isMoved ? this.matches[this.active] : null;
    Object.assign(this, { found: text, matches, suggestions });
    const place = matches.findIndex((m) => m.kind === marked?.kind && m.value === marked?.value);
    this.drawLines(Math.max(place, 0));
    this.problem = "";
    if (this.isHasty && this.isCurrent() && matches.length) this.pick(matches[this.active]);
    else if (this.isFocused) this.show();
    this.isHasty = false;
  }

  type(text) {
    this.input.value = text;
    clearTimeout(this.waiting);
    this.clear.hidden = !text;
    this.hide();
    this.ask();
  }

  key(event) {
    const { isOpen, active: marked } = this;
    const does = actOfKey(event.key, { isOpen, text: this.input.value, nLines: this.matches.length, marked });
    if (!does) return;
    event.preventDefault();
    if (event.key === "Escape") event.stopPropagation(); // keeps a surrounding popover open
    if (does.act === "mark") this.move(does.line);
    else if (does.act === "show") this.show();
    else if (does.act === "enter") this.enter();
    else if (does.act === "hide") this.hide();
    else if (does.act === "empty") this.type("");
  }

  /** Mark a line that the user chose. It stays marked if the lines are drawn again. */
  move(index) {
    this.isMoved = true;
    this.activate(index);
  }

  /** Choose the marked line; if matches are still pending, choose when they arrive. */
  enter() {
    if (!this.isCurrent()) {
      this.isHasty = true;
      clearTimeout(this.waiting);
      this.ask();
    } else if (this.isOpen && this.matches.length) {
      this.pick(this.matches[this.active]);
    }
  }

  /** True if the lines are matches for the text in the box. */
  isCurrent() {
    return this.found === this.input.value.trim();
  }

  pick(match) {
    this.input.value = "";
    clearTimeout(this.waiting);
    this.searching?.abort();
    this.clear.hidden = true;
    this.hide();
    Object.assign(this, { matches: [], isMoved: false, asked: undefined, found: "" });
    this.options.onPick(match);
  }

  /** Show chosen lines below the box, each with a button that drops it. @param {Match[]} chosen */
  setChosen(chosen) {
    const chips = chosen.map(({ value, title, sub }) => {
      const drop = iconButton(ICONS.clear, `Remove ${title}`, () => this.options.onDrop?.(value), { className: "drop" });
      const chip = element("span", "chip", element("span", "", title), drop);
      chip.title = sub ? `${title}\n${sub}` : title;
      return chip;
    });
    this.chips.replaceChildren(...chips);
  }

  // --------------------------------------------------------------------------------- the list

  drawLines(active) {
    const lines = this.matches.map((match, index) => {
      const line = element("li", "", element("div", "title", match.title));
      if (match.sub) line.append(element("div", "sub", match.sub));
      line.id = `${this.id}-${index}`;
      line.title = match.sub ? `${match.title}\n${match.sub}` : match.title;
      line.dataset.index = index;
      line.setAttribute("role", "option");
      return line;
    });
    if (!lines.length) {
      const words = this.suggestions.length ? `Nothing matches. Words to try: ${this.suggestions.join(", ")}.` : "Nothing matches.";
      const nothing = element("li", "nothing", this.problem || words);
      nothing.setAttribute("role", "status");
      lines.push(nothing);
    }
    this.list.replaceChildren(...lines);
    this.activate(active, false);
  }

  activate(index, isSeen = true) {
    this.active = index;
    const lines = [...this.list.querySelectorAll("[role=option]")];
    for (const [i, line] of lines.entries()) line.setAttribute("aria-selected", String(i === index));
    if (isSeen) lines[index]?.scrollIntoView({ block: "nearest" });
    if (lines[index] && this.isOpen) this.input.setAttribute("aria-activedescendant", lines[index].id);
    else this.input.removeAttribute("aria-activedescendant");
  }

  show() {
    if (!this.input.value.trim() && !this.options.showsAll) return;
    if (this.asked === undefined) this.ask();
    if (!this.found && !this.options.showsAll) return;
    if (!this.isOpen) this.sheet.showPopover();
    this.isOpen = true;
    this.input.setAttribute("aria-expanded", "true");
    this.place();
    this.activate(this.active, false);
  }

  hide() {
    if (this.isOpen) this.sheet.hidePopover();
    this.isOpen = false;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  /** Place the list below the box, or above it if there is more room. */
  place() {
    const box = this.box.getBoundingClientRect();
    const below = window.innerHeight - box.bottom - 2 * GAP_PX;
    const isBelow = below >= Math.min(TALLEST_PX / 2, box.top);
    const room = Math.min(TALLEST_PX, isBelow ? below : box.top - 2 * GAP_PX);
    this.list.style.maxHeight = `${room}px`;
    Object.assign(this.sheet.style, {
      left: `${box.left}px`,
      width: `${box.width}px`,
      top: isBelow ? `${box.bottom + GAP_PX}px` : "auto",
      bottom: isBelow ? "auto" : `${window.innerHeight - box.top + GAP_PX}px`,
    });
  }

  close() {
    clearTimeout(this.waiting);
    this.closing.abort();
    this.root.remove();
  }
}
