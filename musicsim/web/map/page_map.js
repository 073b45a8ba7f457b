// A map on a page of Streamlit; a click plays a song.

import { closeIfGone } from "../component.js";
import { playSongs } from "../songs/acts.js";
import { SongMap } from "./map.js";

/** @type {WeakMap<HTMLElement | ShadowRoot, SongMap>} the maps on the page */
const maps = new WeakMap();

/** @param {import("../component.js").Component} component */
export default function ({ data, parentElement }) {
  const { library } = data.map;
  const shown = maps.get(parentElement) ?? new SongMap(/** @type {HTMLElement} */ (parentElement), { onPick: (id) => playSongs([id], 0, { library }) });
  maps.set(parentElement, shown);
  shown.receive(data);
  return closeIfGone(parentElement, () => { shown.close(); maps.delete(parentElement); });
}
