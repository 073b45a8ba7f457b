// Buttons that save a chart, which plotly draws in several layers of SVG.

function chartFigure(chart) {
  const layers = [...chart.querySelectorAll("svg.main-svg")];
  const { width, height } = layers[0].getBoundingClientRect();
  const copies = layers.map((layer) => {
    const copy = layer.cloneNode(true);
    for (const [name, value] of Object.entries({ x: 0, y: 0, width, height })) copy.setAttribute(name, value);
    copy.removeAttribute("style"); // removes the background of the first layer
    keepLengths(layer, copy);
    return copy;
  });
  return figureOf(width, height, chart, ...copies);
}

export default function (component) {
  const { data, parentElement } = component;
  const buttons = ["svg", "png"].map((kind) => {
    const made = element("button", {
      type: "button", textContent: kind.toUpperCase(), ariaLabel: `Save “${data.name}” as ${kind.toUpperCase()}`,
    });
    made.addEventListener("click", () => saveFigure(chartFigure(document.querySelector(`.st-key-${data.chart}`)), data.name, kind));
    return made;
  });
  const bar = element("div", { className: "musicsim-save" }, `Save ${data.name} as `, ...buttons);
  parentElement.querySelector(".musicsim-save")?.remove();
  parentElement.append(bar);
}
