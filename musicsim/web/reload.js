// Streamlit starts a new session when a page is reloaded, and keeps its values under a key (see
// musicsim/ui/base/reloads.py). The tab stores the key, and asks for the values of the session before.

import { stored } from "./storage.js";

const NAME = "musicsim.tab";
let known = ""; // key of the session that this page has had

/**
 * Store the key of the session if it has the values of the session before; else return what asks for these, or null.
 * @param {{tab: string, restored: string}} data key of this session, and of the one whose values it has
 * @returns {{tab: string, isReload: boolean} | null}
 */
export function followReload({ tab, restored }) {
  const before = stored("sessionStorage", NAME);
  if (!before || before === tab || before === restored) {
    known = tab;
    stored("sessionStorage", NAME, tab);
    return null;
  }
  const [entry] = /** @type {PerformanceNavigationTiming[]} */ (performance.getEntriesByType("navigation"));
  // an open page gets a new session if the connection was lost for long
  return { tab: before, isReload: known !== "" || entry?.type === "reload" };
}
