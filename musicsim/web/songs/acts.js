// What lists and buttons on all pages do with songs of a library, by the client of this tab.

import { theClient } from "../client.js";

const notify = (/** @type {Error} */ error) => theClient().player.view?.notify(error.message, "error");

/** Replace the queue and play. @param {number[]} ids @param {number} start @param {{library: string, titles?: {title: string}[]}} of */
export function playSongs(ids, start, of) {
  theClient().player.playSongs(ids, start, of);
}

/** Append songs to the queue. @param {number[]} ids @param {string} library */
export function enqueueSongs(ids, library) {
  theClient().player.enqueueSongs(ids, library).catch(notify);
}

/** Start the queue of Listen from songs of the open library: the first one plays, the others follow. @param {number[]} ids @param {string} library */
export function startSongs(ids, library) {
  const client = theClient();
  if (ids.length === 1 || library !== client.context.library) {
    client.startSong(ids[0], library);
    return;
  }
  client.listen.startSeveral(ids);
  if (!client.listen.isShown) client.go("listen");
}

/** Call a function whenever another song plays. @param {() => void} act @param {AbortSignal} signal */
export function onSong(act, signal) {
  theClient(); // comes first, because a new client says that it has restored its song before others can ask for it
  document.addEventListener("musicsim-song", act, { signal });
}

/** Return the id of the song that plays, if it is from a library and its name may be shown. @param {string} library */
export function playingSong(library) {
  const { track, library: playing } = theClient().player;
  return track?.song_id && playing === library && !track.is_blind ? track.song_id : null;
}
