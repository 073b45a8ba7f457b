// Tells Python when the player plays another song than Python knows. It is part of one page, so other pages do not run.

export default function ({ data, setTriggerValue }) {
  const note = () => {
    const song = window[Symbol.for("musicsim.player")]?.track?.song_id;
    if (song && song !== data.known) setTriggerValue("song", song);
  };
  note();
  document.addEventListener("musicsim-song", note);
  return () => document.removeEventListener("musicsim-song", note);
}
