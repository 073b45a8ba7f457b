// What all components share: styles, and how they open and close. Streamlit receives only an address of each
// component's script (see musicsim/ui/base/scripts.py); the scripts import each other.

/**
 * What Streamlit gives a component in every run.
 * @typedef {object} Component
 * @property {any} data
 * @property {HTMLElement | ShadowRoot} parentElement
 * @property {(name: string, value: unknown) => void} setStateValue
 * @property {(name: string, value: unknown) => void} setTriggerValue
 */

/** Return the player of this tab, once it is on the page. @returns {import("./player/engine.js").Engine | undefined} */
export const pagePlayer = () => window[Symbol.for("musicsim.player")];

async function fetchText(name, near) {
  const answer = await fetch(new URL(name, near));
  if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
  return answer.text();
}

/** Fetch a style next to a script. */
export async function fetchStyle(name, near) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(await fetchText(name, near));
  return sheet;
}

/** Fetch a template next to a script. */
export async function fetchTemplate(name, near) {
  const template = document.createElement("template");
  template.innerHTML = await fetchText(name, near);
  return template;
}

/** Apply a style to a component, once. */
export function applyStyle(parentElement, sheet) {
  const { adoptedStyleSheets: applied } = parentElement.getRootNode();
  if (applied && !applied.includes(sheet)) applied.push(sheet);
}

/** Return a function for Streamlit that closes a component if it has left the page. Streamlit also calls it if new data
 * arrives before the component has received the previous data. The component must not close then. */
export function closeIfGone(parentElement, close) {
  return () => parentElement.isConnected || close();
}

/** Mount a component: make its view once, and give the view the data of every run. */
export function mount(component, className, testid, View, sheet) {
  const { parentElement } = component;
  applyStyle(parentElement, sheet);
  let root = parentElement.querySelector(`.${className}`);
  if (!root) {
    root = document.createElement("div");
    root.className = className;
    root.dataset.testid = testid;
    root.view = new View(root);
    parentElement.append(root);
  }
  root.view.receive(component);
  return closeIfGone(parentElement, () => root.view.close());
}
