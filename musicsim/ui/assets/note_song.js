// Tells Python when the player plays another song than Python knows. Only one page has it, so other pages do not rerun.

const SETTLED_MS = 250; // songs that are skipped or cannot be played in this time are not reported

export default function ({ data, setTriggerValue }) {
  let waiting = 0;
  const note = () => {
    const song = window[Symbol.for("musicsim.player")]?.track?.song_id;
    clearTimeout(waiting);
    if (song && song !== data.known) waiting = setTimeout(() => setTriggerValue("song", song), SETTLED_MS);
  };
  note();
  document.addEventListener("musicsim-song", note);
  return () => {
    clearTimeout(waiting);
    document.removeEventListener("musicsim-song", note);
  };
}
