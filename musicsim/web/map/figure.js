// Save charts as files: SVG as it is, PNG drawn from the SVG. Strings from file tags become text nodes, never markup.

const SAVE_SPACE = "http://www.w3.org/2000/svg";
const PNG_SCALE = 2;

export function svgElement(name, attributes, ...children) {
  const made = document.createElementNS(SAVE_SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Return a figure with the page's background and the given parts. */
export function figureOf(width, height, near, ...children) {
  const color = (one) => getComputedStyle(one).backgroundColor;
  let behind = near;
  while (behind && color(behind) === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
  const figure = svgElement("svg", { xmlns: SAVE_SPACE, width, height, viewBox: `0 0 ${width} ${height}` },
    svgElement("rect", { width: "100%", height: "100%", fill: behind ? color(behind) : "white" }), ...children);
  figure.setAttribute("font-family", getComputedStyle(near).fontFamily);
  return figure;
}

/** Give text its width on the page, because a file does not contain the page's font. */
export function keepLengths(from, copy) {
  const lines = (root) => [...root.querySelectorAll("text, tspan")];
  const copies = lines(copy);
  lines(from).forEach((text, i) => {
    const length = text.querySelector("tspan") ? 0 : text.getComputedTextLength();
    if (!length) return;
    copies[i].setAttribute("textLength", length);
    copies[i].setAttribute("lengthAdjust", "spacingAndGlyphs");
  });
}

export async function saveFigure(figure, name, kind) {
  const svg = new Blob([new XMLSerializer().serializeToString(figure)], { type: "image/svg+xml" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(kind === "svg" ? svg : await pngOf(svg, figure));
  link.download = `${name}.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function pngOf(svg, figure) {
  const image = new Image();
  const address = URL.createObjectURL(svg);
  try {
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = PNG_SCALE * Number(figure.getAttribute("width"));
    canvas.height = PNG_SCALE * Number(figure.getAttribute("height"));
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done) => canvas.toBlob(done, "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}
