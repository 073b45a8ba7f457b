// Where sounds come from: a file that is chosen or dropped anywhere on the page, and the microphone.

import { button, clock, element } from "../elements.js";
import { Recorder } from "./sounds.js";

const TYPES = "audio/*,video/*,.flac,.opus,.ape,.wv,.mpc,.tta,.aiff,.dsf,.mod,.xm,.it,.s3m,.mid";

/** @param {HTMLElement} panel @param {(file: Blob, name: string) => void} send @param {(error: unknown) => void} fail */
export function fillSounds(panel, send, fail) {
  const input = element("input", { type: "file", accept: TYPES });
  input.addEventListener("change", () => {
    const [file] = input.files;
    if (!file) return;
    panel.hidePopover();
    send(file, file.name);
  });
  /** @type {Recorder | null} */
  let recorder = null;
  let timer = 0;
  const words = element("span", "small", "");
  words.setAttribute("role", "timer");
  const record = button("Record", async () => {
    try {
      if (!recorder) {
        recorder = await Recorder.begin();
        Object.assign(record, { textContent: "Stop and search", ariaLabel: "Stop and search" });
        timer = window.setInterval(() => { words.textContent = clock(recorder?.seconds ?? 0); }, 200);
        return;
      }
      clearInterval(timer);
      const sound = await recorder.stop();
      panel.hidePopover();
      send(sound, "your recording");
    } catch (error) {
      panel.hidePopover();
      fail(error);
    }
  }, { className: "text" }, "Record");
  panel.addEventListener("toggle", (/** @type {any} */ { newState }) => {
    if (newState === "open" || !recorder) return;
    clearInterval(timer);
    recorder.stop().catch(() => {}); // releases the microphone
    recorder = null;
  });
  panel.replaceChildren(element("label", "file", "A file, which you can also drop anywhere on this page", input), element("div", "line", record, words));
}

/** Takes a file that is dropped anywhere while an element is on the page. */
export class DropZone {
  /** @param {HTMLElement} host @param {(file: File) => void} take */
  constructor(host, take) {
    this.shown = element("div", { textContent: "Drop a sound file to hear similar songs" });
    this.shown.style.cssText = "position: fixed; inset: 0; z-index: 1000000; display: grid; place-items: center;"
      + " pointer-events: none; background: color-mix(in srgb, Canvas 82%, transparent); color: CanvasText;"
      + " font: 600 1.6rem sans-serif; border: 4px dashed #00796b;";
    const on = (/** @type {string} */ name, /** @type {(event: any) => void} */ act) => document.addEventListener(name, (event) => host.isConnected && act(event), { capture: true });
    const hasFiles = (/** @type {DragEvent} */ event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
    on("dragover", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      document.body.append(this.shown);
    });
    on("dragleave", (event) => event.relatedTarget === null && this.shown.remove());
    on("drop", (event) => {
      this.shown.remove();
      if (!hasFiles(event)) return;
      event.preventDefault();
      event.stopPropagation();
      take(event.dataTransfer.files[0]);
    });
  }
}
