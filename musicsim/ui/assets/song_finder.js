// A box that searches as the user types. It sends the text to Python and shows the matches as lines below the box: a
// combobox with a listbox (WAI-ARIA 1.2). All strings come from file tags and are set as text, never as markup.

import { fetchStyle, mount } from "./component.js";
import { element, icon, iconButton } from "./elements.js";
import { actOfKey } from "./finder_keys.js";

const STYLE = await fetchStyle("song_finder.css", import.meta.url);
const TYPED_MS = 30; // time between two letters of a fast typist
const GAP_PX = 4;
const TALLEST_PX = 380;
const ICONS = { search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16.2 16.2L20 20", clear: "M6 6l12 12M18 6L6 18" };
let boxes = 0;

class Finder {
  constructor(root) {
    this.root = root;
    boxes += 1;
    this.id = `musicsim-finder-${boxes}`;
    this.matches = [];
    this.active = 0;
    this.isMoved = false; // true if the arrow keys moved the mark since the last letter
    this.isOpen = false;
    this.chosen = []; // chosen lines, if there can be several
    this.label = element("label");
    this.input = this.makeInput();
    this.clear = iconButton(ICONS.clear, "Clear", () => { this.type(""); this.input.focus(); }, { className: "clear" });
    this.box = element("div", "box", icon(ICONS.search), this.input, this.clear);
    this.list = this.makeList();
    this.sheet = element("div", "musicsim-finder-sheet", this.list);
    this.sheet.popover = "manual";
    this.chips = element("div", "chips");
    root.append(this.label, this.box, this.sheet, this.chips);
    this.closing = new AbortController();
    const place = () => this.isOpen && this.place();
    const options = { signal: this.closing.signal };
    window.addEventListener("resize", place, options);
    document.addEventListener("scroll", place, { capture: true, passive: true, ...options });
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

  receive(component) {
    this.component = component;
    const { data } = component;
    this.label.textContent = data.label;
    this.label.htmlFor = this.id;
    this.label.hidden = !data.is_labelled;
    this.input.placeholder = data.placeholder;
    this.input.setAttribute("aria-label", data.label);
    this.input.title = data.help;
    this.list.setAttribute("aria-label", data.label);
    this.clear.hidden = !this.input.value;
    this.chosen = data.chosen;
    this.drawChips();
    if (data.text !== this.asked && this.asked !== undefined) return; // these are matches for an earlier text
    const marked = this.isMoved ? this.matches[this.active] : null;
    this.matches = data.matches;
    const place = this.matches.findIndex((m) => m.kind === marked?.kind && m.value === marked?.value);
    this.drawLines(Math.max(place, 0));
    if (this.isHasty && this.isCurrent() && this.matches.length) this.pick(this.matches[this.active]);
    else if (document.activeElement === this.input) this.show();
    this.isHasty = false;
  }

  // ----------------------------------------------------------------------------------- typing

  typed() {
    this.isHasty = false;
    this.isMoved = false;
    this.clear.hidden = !this.input.value;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.ask(), TYPED_MS);
    if (!this.input.value.trim()) this.hide();
  }

  ask() {
    const text = this.input.value;
    if (text === this.asked) return;
    this.asked = text;
    this.component.setStateValue("text", text);
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
    return this.component.data.text === this.input.value;
  }

  pick(match) {
    const { setStateValue, setTriggerValue } = this.component;
    this.input.value = "";
    clearTimeout(this.waiting);
    this.clear.hidden = true;
    this.hide();
    this.matches = [];
    this.isMoved = false;
    this.asked = "";
    setTriggerValue("picked", { kind: match.kind, value: match.value });
    setStateValue("text", "");
  }

  drawChips() {
    const chips = this.chosen.map(({ value, title, sub }) => {
      const drop = iconButton(ICONS.clear, `Remove ${title}`, () => this.component.setTriggerValue("dropped", value), { className: "drop" });
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
      const nothing = element("li", "nothing", this.component.data.nothing);
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
    if (!this.component?.data.text.trim() || !this.input.value.trim()) return;
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

export default (component) => mount(component, "musicsim-finder", "finder", Finder, STYLE);
