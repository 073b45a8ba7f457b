// Elements and drawings that several components have. Titles and names come from file tags: they are set as text, never
// as markup.

/** Return an element with its class or its properties, and with its children. */
export function element(tag, look = {}, ...children) {
  const properties = typeof look === "string" ? { className: look } : look;
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** Return a button with the name that screen readers say. */
export function button(label, act, look = {}, ...children) {
  const made = element("button", { type: "button", ariaLabel: label, ...look }, ...children);
  made.addEventListener("click", act);
  return made;
}

/** Return a button that shows a drawing, and its name as a tip. */
export function iconButton(path, label, act, look = {}) {
  return button(label, act, { title: label, ...look }, icon(path));
}

/** Return a line drawing on a grid of 24 x 24. */
export function icon(path) {
  const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  drawing.setAttribute("viewBox", "0 0 24 24");
  drawing.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(drawing.namespaceURI, "path");
  line.setAttribute("d", path);
  drawing.append(line);
  return drawing;
}

export function clock(seconds) {
  if (!Number.isFinite(seconds)) return "–:––";
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const rest = String(Math.floor(seconds) % 60).padStart(2, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

/** Empty a canvas and return its pen, which draws in CSS pixels; return null if the canvas is hidden. */
export function penOf(canvas) {
  const { clientWidth: width, clientHeight: height } = canvas;
  if (!width || !height) return null;
  const scale = window.devicePixelRatio || 1;
  Object.assign(canvas, { width: Math.round(width * scale), height: Math.round(height * scale) });
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  return pen;
}

/** Draw a waveform as bars, at most `tall` pixels high and below `top`; `look(share)` returns the color and opacity of
 * the bar at a share of the width. */
export function drawBars(pen, peaks, { top, tall }, look) {
  const n = Math.max(1, Math.floor(pen.canvas.clientWidth / 3));
  for (let i = 0; i < n; i += 1) {
    const [from, to] = [i, i + 1].map((at) => Math.floor((at * peaks.length) / n));
    const height = Math.max(2, tall * Math.min(1, Math.max(0, ...peaks.slice(from, Math.max(to, from + 1)))));
    [pen.fillStyle, pen.globalAlpha] = look((i + 0.5) / n);
    pen.fillRect(3 * i, top + (tall - height) / 2, 2, height);
  }
}
