// The form for all options of a search. The server says which options there are, so they have no second list here.

import { ask } from "../addresses.js";
import { element } from "../elements.js";
import { Finder } from "../find/finder.js";
import { matching } from "../find/names.js";

/**
 * Draw the form. `onChange(name, value)` gets each new value; null for none.
 * @param {HTMLElement} parent
 * @param {any[]} options
 * @param {Record<string, any>} values
 * @param {{library: string, onChange: (name: string, value: any) => void}} how
 */
export function drawFilters(parent, options, values, { library, onChange }) {
  const shown = options.filter(({ label, kind, name }) => label && kind !== "songs" && name !== "part");
  const field = (/** @type {any} */ option) => drawOption(option, values[option.name], library, (/** @type {any} */ value) => onChange(option.name, value));
  const others = element("details", "others", element("summary", "", "Order and number"), ...shown.filter(({ is_filter: is }) => !is).map(field));
  parent.replaceChildren(...shown.filter(({ is_filter: is }) => is).map(field), others);
}

/** @param {any} option @param {any} value @param {string} library @param {(value: any) => void} set @returns {HTMLElement} */
function drawOption(option, value, library, set) {
  const { kind, label, help } = option;
  if (kind === "names") return drawNames(option, value ?? [], library, set);
  const draw = { text: drawText, range: drawRange, choice: drawChoice, switch: drawSwitch, number: drawNumber }[/** @type {string} */ (kind)];
  const made = element(kind === "range" ? "fieldset" : "label", `field ${kind}`, element(kind === "range" ? "legend" : "span", "", label));
  made.title = help;
  made.append(...(draw?.(option, value, set) ?? []));
  return made;
}

function drawText(_, value, set) {
  const input = element("input", { type: "text", value: value ?? "", maxLength: 200, placeholder: "slow piano 1960s" });
  input.addEventListener("change", () => set(input.value.trim()));
  return [input];
}

function drawNumber({ min, max, default: usual }, value, set) {
  const input = element("input", { type: "number", value: String(value ?? usual), min: String(min ?? ""), max: String(max ?? ""), step: "1" });
  input.addEventListener("change", () => {
    if (!input.reportValidity() || input.value === "") return;
    const number = Number(input.value);
    set(number === usual ? null : number);
  });
  return [input];
}

function drawRange({ bounds, label }, value, set) {
  const [low, high] = bounds ?? ["", ""];
  const inputs = [["from", low], ["to", high]].map(([word, bound], i) => {
    const input = element("input", { type: "number", placeholder: String(bound), value: String(value?.[i] ?? ""), step: "any", ariaLabel: `${label}, ${word}` });
    input.addEventListener("change", () => {
      const ends = inputs.map((one) => (one.value === "" ? null : Number(one.value)));
      const isWrong = ends[0] !== null && ends[1] !== null && ends[0] > ends[1];
      inputs[1].setCustomValidity(isWrong ? "The second number must not be smaller than the first." : "");
      if (inputs[1].reportValidity()) set(ends[0] === null && ends[1] === null ? null : ends);
    });
    return input;
  });
  return [inputs[0], element("span", "", "to"), inputs[1]];
}

function drawChoice({ choices }, value, set) {
  return [select(choices.map((/** @type {string} */ name) => [name, name || "everything"]), value ?? "", (chosen) => set(chosen || null))];
}

function drawSwitch(_, value, set) {
  const choices = [["", "library setting"], ["true", "on"], ["false", "off"]];
  return [select(choices, value === undefined || value === null ? "" : String(value), (chosen) => set(chosen === "" ? null : chosen === "true"))];
}

/** @param {string[][]} choices @param {string} value @param {(value: string) => void} set */
export function select(choices, value, set, look = {}) {
  const made = element("select", look, ...choices.map(([name, words]) => element("option", { value: name }, words)));
  made.value = value;
  made.addEventListener("change", () => set(made.value));
  return made;
}

/** A box that finds names, with the chosen ones below it. */
function drawNames({ name, label, choices, help }, value, library, set) {
  const root = element("div", "field names");
  const lineOf = (/** @type {string} */ one) => ({ kind: "name", value: one, title: one, sub: "" });
  let chosen = value;
  const choose = (/** @type {string[]} */ names) => {
    chosen = names;
    finder.setChosen(names.map(lineOf));
    set(names.length ? names : null);
  };
  const search = async (/** @type {string} */ text, /** @type {AbortSignal} */ signal) => {
    const found = choices ? matching(choices, text) : await ask(`api/options/${name}`, { text, library }, { signal });
    return { matches: found.filter((/** @type {string} */ one) => !chosen.includes(one)).map(lineOf), suggestions: [] };
  };
  const finder = new Finder(root, {
    label, help, isLabelled: true, placeholder: label, search, chosen: value.map(lineOf),
    onPick: ({ value: one }) => choose([...chosen, one]),
    onDrop: (/** @type {string} */ one) => choose(chosen.filter((/** @type {string} */ other) => other !== one)),
    showsAll: Boolean(choices),
  });
  return root;
}
