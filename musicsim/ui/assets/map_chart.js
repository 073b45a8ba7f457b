// The map. One plot lives through all reruns: plotly changes what is drawn and leaves the zoom alone. What is
// looked at, the song that is clicked and an outline that is drawn go back to Python.

const SETTLED_MS = 250; // after the last turn of the wheel or the end of a move
const PATIENCE_MS = 5000;
const PLOTLY = Symbol.for("musicsim.plotly");
const EXPAND = {
  width: 24, height: 24, path: "M4 9V4h5v2H6v3zM15 4h5v5h-2V6h-3zM4 15h2v3h3v2H4zM18 15h2v5h-5v-2h3z",
};

/** Where the app is served: the player knows it under any base path, and is on every page. */
async function appBase() {
  for (const start = Date.now(); Date.now() - start < PATIENCE_MS; ) {
    const player = window[Symbol.for("musicsim.player")];
    if (player) return player.base;
    await new Promise((done) => setTimeout(done, 20));
  }
  return document.baseURI;
}

function fetchPlotly(address) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => reject(new Error(address));
    document.head.append(script);
  });
}

/** Plotly, once a tab. */
function plotly(script) {
  window[PLOTLY] ??= appBase().then((base) => fetchPlotly(new URL(script, base).href));
  window[PLOTLY].catch(() => delete window[PLOTLY]); // the next map tries again
  return window[PLOTLY];
}

class Chart {
  constructor(root) {
    this.root = root;
    this.plot = document.createElement("div");
    this.plot.style.height = "100%";
    this.words = document.createElement("div");
    this.words.className = "words";
    root.append(this.plot, this.words);
    this.drawn = { figure: null, name: null };
    this.isHeld = false;
    this.closing = new AbortController();
    const options = { signal: this.closing.signal };
    root.addEventListener("pointerdown", () => { this.isHeld = true; }, options);
    for (const name of ["pointerup", "pointercancel"]) {
      window.addEventListener(name, () => this.release(), options);
    }
    this.resizing = new ResizeObserver(() => this.fit());
    this.resizing.observe(root);
  }

  receive(component) {
    this.component = component;
    const { height, alt } = component.data;
    this.root.style.height = `${height}px`;
    this.root.setAttribute("role", "figure");
    this.root.setAttribute("aria-label", alt);
    if (!this.isHeld) this.draw();
  }

  /** A plot that is drawn while the mouse moves it would let go. */
  release() {
    if (!this.isHeld) return;
    this.isHeld = false;
    setTimeout(() => this.draw(), 0);
  }

  /** Draw what came last, one after the other. */
  draw() {
    this.drawing = (this.drawing ?? Promise.resolve()).then(() => this.drawNow()).catch((error) => {
      console.error("map", error);
      this.words.textContent = "The map cannot be drawn: reload the page.";
    });
  }

  async drawNow() {
    const { data } = this.component;
    if (this.isClosed || this.isHeld || data.figure === this.drawn.figure) return;
    this.plotly = await plotly(data.script);
    if (this.isClosed) return;
    const { data: traces, layout } = JSON.parse(data.figure);
    delete layout.height; // the element's own
    Object.assign(layout, this.look(layout));
    const isOther = data.name !== this.drawn.name;
    this.drawn = { figure: data.figure, name: data.name };
    if (isOther) await this.begin(traces, layout, data);
    else await this.plotly.react(this.plot, traces, layout); // a config, though the same, would begin it anew
    this.words.textContent = "";
  }

  /** Another map is another plot: "reset" goes back to where a plot began. */
  async begin(traces, layout, data) {
    this.plotly.purge(this.plot);
    await this.plotly.newPlot(this.plot, traces, layout, this.config(data));
    this.plot.on("plotly_click", ({ points }) => {
      const point = points.find(({ customdata }) => customdata !== undefined);
      if (point) this.component.setTriggerValue("picked", Number(point.customdata));
    });
    this.plot.on("plotly_selected", (event) => this.encircled(event?.lassoPoints));
    this.plot.on("plotly_relayout", () => {
      clearTimeout(this.settling);
      this.settling = setTimeout(() => this.tell(), SETTLED_MS);
    });
  }

  look(layout) {
    const style = getComputedStyle(this.root);
    const of = (name) => style.getPropertyValue(name).trim();
    const font = { family: of("--st-font"), color: of("--st-text-color"), size: 12 };
    return {
      autosize: true,
      font,
      clickmode: "event",
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      hoverlabel: { bgcolor: of("--st-background-color"), bordercolor: of("--st-border-color"), font, align: "left" },
      legend: { ...layout.legend, font },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: "#8a8f90", activecolor: of("--st-primary-color") },
      newselection: { line: { color: of("--st-text-color"), width: 1.5, dash: "dot" } },
    };
  }

  config({ has_lasso: hasLasso }) {
    return {
      scrollZoom: true,
      displaylogo: false,
      showSendToCloud: false, // titles stay here
      doubleClick: "reset",
      modeBarButtonsToRemove: ["select2d", "toImage", "autoScale2d", ...(hasLasso ? [] : ["lasso2d"])],
      modeBarButtonsToAdd: document.fullscreenEnabled
        ? [{ name: "Fullscreen", title: "Fullscreen", icon: EXPAND, click: () => this.expand() }]
        : [],
    };
  }

  encircled(outline) {
    if (!outline) return;
    this.component.setTriggerValue("outline", { x: Array.from(outline.x), y: Array.from(outline.y) });
    // what is inside gets rings; plotly would pale all other points
    this.plotly.update(this.plot, { selectedpoints: null }, { selections: [] });
  }

  /** Say what is looked at, where that decides which songs are drawn. */
  tell() {
    const { data, setStateValue } = this.component;
    if (this.isClosed || !data.is_sampled) return;
    const { xaxis, yaxis } = this.plot.layout;
    const [left, right, bottom, top] = [...xaxis.range, ...yaxis.range];
    const window = { left, right, bottom, top, name: data.name };
    const said = JSON.stringify(window);
    if (said === this.said) return;
    this.said = said;
    setStateValue("window", window);
  }

  expand() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.root.requestFullscreen();
  }

  fit() {
    if (this.drawn.figure && this.plot.clientWidth) this.plotly.Plots.resize(this.plot);
  }

  close() {
    this.isClosed = true;
    clearTimeout(this.settling);
    this.closing.abort();
    this.resizing.disconnect();
    this.plotly?.purge(this.plot);
    this.root.remove();
  }
}

export default function (component) {
  const { parentElement } = component;
  let root = parentElement.querySelector(".musicsim-map");
  if (!root) {
    root = document.createElement("div");
    root.className = "musicsim-map";
    root.dataset.testid = "map";
    root.chart = new Chart(root);
    parentElement.append(root);
  }
  root.chart.receive(component);
  return () => root.chart.close();
}
