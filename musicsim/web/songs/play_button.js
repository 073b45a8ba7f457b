// A button on a page of Streamlit that plays or queues songs, or starts Listen from one, without a run of the script.

import { theClient } from "../client.js";
import { applyStyle, fetchStyle } from "../component.js";
import { button, element, icon } from "../elements.js";
import { enqueueSongs, playSongs, startSongs } from "./acts.js";

const STYLE = await fetchStyle("play_button.css", import.meta.url);
const ICONS = { play: "M8 5l11 7-11 7z", enqueue: "M12 5v14M5 12h14", similar: "M3 9c3-4 6-4 9 0s6 4 9 0M3 16c3-4 6-4 9 0s6 4 9 0" };

/** @param {import("../component.js").Component} component */
export default function ({ data, parentElement }) {
  applyStyle(parentElement, STYLE);
  const { label, help, act: kind, look, disabled } = data;
  const old = parentElement.querySelector("button");
  const properties = { className: look, title: help, disabled };
  const made = button(label || help, () => act(data), properties, icon(ICONS[kind]), ...(label ? [element("span", "", label)] : []));
  const isFocused = old?.matches(":focus");
  if (old) old.replaceWith(made);
  else parentElement.append(made);
  if (isFocused) made.focus();
}

/** @param {{act: string, library: string, songs: number[], tracks: any[], start: number}} wanted */
function act({ act: kind, library, songs, tracks, start }) {
  if (kind === "similar") startSongs(songs, library);
  else if (kind === "enqueue") enqueueSongs(songs, library);
  else if (tracks.length) theClient().player.play(tracks, start, { library });
  else playSongs(songs, start, { library });
}
