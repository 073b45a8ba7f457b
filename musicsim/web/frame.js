// The frame of every page: it shows the player, tells the client of this tab which library and model are open, and asks
// for the work of the session before a reload where the page shows it.

import { theClient } from "./client.js";
import { closeIfGone } from "./component.js";
import { showPlayer } from "./player/view.js";
import { followReload } from "./reload.js";

/** @param {import("./component.js").Component} component */
export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  const client = theClient();
  showPlayer(client.player, parentElement);
  const before = followReload(data.session);
  client.receive(data, (/** @type {object} */ request) => setTriggerValue("go", { ...request, before }));
  // Asking makes the page run again, which could undo a click on a link to another page; Listen has nothing to restore.
  // It is a state, because a trigger would be lost if the page runs at that moment.
  if (before && data.restores) setStateValue("before", before);
  return closeIfGone(parentElement, () => client.player.detach(parentElement));
}
