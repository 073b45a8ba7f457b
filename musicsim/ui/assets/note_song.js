// Tells Python when the player plays another song than Python knows, and gives the player commands that may be lost.
// Only one page has it, so other pages do not rerun.

import { closeIfGone, pagePlayer } from "./component.js";

const SETTLED_MS = 250; // songs that are skipped or cannot be played in this time are not reported

let stop = () => {}; // ends what the previous data started

export default function ({ data, parentElement, setTriggerValue }) {
  stop();
  let waiting = 0;
  const note = () => {
    const song = pagePlayer()?.track?.song_id;
    clearTimeout(waiting);
    if (song && song !== data.known) waiting = setTimeout(() => setTriggerValue("song", song), SETTLED_MS);
  };
  pagePlayer()?.receive(data.resent);
  note();
  document.addEventListener("musicsim-song", note);
  stop = () => {
    clearTimeout(waiting);
    document.removeEventListener("musicsim-song", note);
  };
  return closeIfGone(parentElement, stop);
}
