// Buttons that save a chart, which plotly draws in several layers of SVG.

import { applyStyle, fetchStyle } from "../../web/component.js";
import { button, element } from "../../web/elements.js";
import { figureOf, keepLengths, saveFigure } from "../../web/map/figure.js";

const STYLE = await fetchStyle("save_chart.css", import.meta.url);

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
  applyStyle(parentElement, STYLE);
  const buttons = ["svg", "png"].map((kind) => {
    const save = () => saveFigure(chartFigure(document.querySelector(`.st-key-${data.chart}`)), data.name, kind);
    return button(`Save “${data.name}” as ${kind.toUpperCase()}`, save, {}, kind.toUpperCase());
  });
  const bar = element("div", { className: "musicsim-save" }, `Save ${data.name} as `, ...buttons);
  parentElement.querySelector(".musicsim-save")?.remove();
  parentElement.append(bar);
}
