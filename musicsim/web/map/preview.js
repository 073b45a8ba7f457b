// The song under the pointer, played from its typical part in a sound of its own. The player pauses by itself, because
// another sound has started; it goes on when the pointer has left the songs.

import { resolve } from "../addresses.js";
import { element } from "../elements.js";
import { fetchTracks } from "../player/engine.js";

const LENGTH_S = 30; // as long as the typical part of a song
const RETURN_MS = 600; // the pointer may go to another song in this time

export class Preview {
  /** @param {import("../player/engine.js").Engine} player */
  constructor(player) {
    this.player = player;
    /** @type {number | null} the song to hear */
    this.song = null;
    this.start = 0;
    this.isQueueWaiting = false;
    this.sound = element("audio", { preload: "auto" });
    this.sound.dataset.testid = "preview-audio";
    document.body.append(this.sound); // outside the map's shadow, so that the player notices it
    this.sound.addEventListener("loadedmetadata", () => { this.sound.currentTime = this.start; });
    this.sound.addEventListener("timeupdate", () => { if (this.sound.currentTime > this.start + LENGTH_S) this.stop(); });
    this.sound.addEventListener("ended", () => this.stop());
    // another sound has paused this one, such as the song that a click started
    this.sound.addEventListener("pause", () => { if (this.song !== null && !this.sound.ended) this.isQueueWaiting = false; });
  }

  /** @param {number} id @param {string} library */
  async play(id, library) {
    clearTimeout(this.returning);
    this.song = id;
    const [track] = await fetchTracks(library, [id]).catch(() => []);
    if (this.song !== id || !track) return;
    this.isQueueWaiting ||= this.player.state === "playing";
    this.start = track.typical_s ?? 0;
    this.sound.src = resolve(track.url);
    this.player.setVolumeOf(this.sound, track);
    this.sound.play().catch((/** @type {Error} */ error) => console.debug("preview:", error.name));
  }

  /** Stop the sound; the queue goes on soon, unless another song is heard before. */
  stop() {
    if (this.song === null) return;
    this.song = null;
    this.sound.pause();
    this.sound.removeAttribute("src");
    clearTimeout(this.returning);
    this.returning = setTimeout(() => {
      if (this.isQueueWaiting && this.player.state === "paused") this.player.start();
      this.isQueueWaiting = false;
    }, RETURN_MS);
  }
}
