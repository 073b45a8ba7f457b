// The page Listen: an empty element, in which the client of this tab shows itself.

import { theClient } from "../client.js";
import { ListenView } from "./view.js";

/** @param {import("../component.js").Component} component */
export default function ({ data, parentElement }) {
  const { listen } = theClient();
  listen.view ??= new ListenView(listen);
  listen.view.show(/** @type {HTMLElement} */ (parentElement), data);
}
