// A list of songs on a page of Streamlit. The client of this tab plays, queues and compares songs; the page's script
// hears only of the other actions.

import { closeIfGone } from "../component.js";
import { enqueueSongs, onSong, playSongs, playingSong, startSongs } from "./acts.js";
import { drawList } from "./list.js";

/** @typedef {{data: any, send: (action: object) => void, closing: AbortController}} Shown */
/** @type {WeakMap<HTMLElement | ShadowRoot, Shown>} the lists on the page */
const lists = new WeakMap();

/** @param {import("../component.js").Component} component */
export default function ({ data, parentElement, setTriggerValue }) {
  const closing = lists.get(parentElement)?.closing ?? follow(parentElement);
  lists.set(parentElement, { data, send: (action) => setTriggerValue("action", action), closing });
  drawList(parentElement, { ...data, queue: false }, (kind, index, to) => act(parentElement, kind, index, to));
  mark(parentElement);
  return closeIfGone(parentElement, () => { closing.abort(); lists.delete(parentElement); });
}

/** Mark the song that plays whenever it changes. */
function follow(parent) {
  const closing = new AbortController();
  onSong(() => mark(parent), closing.signal);
  return closing;
}

function mark(parent) {
  const playing = playingSong(lists.get(parent)?.data.library);
  for (const row of parent.querySelectorAll("[data-song-id]")) {
    if (Number(row.dataset.songId) === playing) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  }
}

function act(parent, kind, index, to) {
  const { data, send } = /** @type {Shown} */ (lists.get(parent));
  const { rows, library, plays, first } = data;
  const id = rows[index].song_id;
  if (kind === "play" && plays.length) playSongs(plays, first + index, { library });
  else if (kind === "play") playSongs(rows.map((row) => row.song_id), index, { library, titles: rows });
  else if (kind === "enqueue") enqueueSongs([id], library);
  else if (kind === "similar") startSongs([id], library);
  else send({ kind, index, to, song_id: id });
}
