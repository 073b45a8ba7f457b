// The tab stores the key of its session (see musicsim/ui/base/reloads.py), and sends this key after a reload.

import "./upload_boxes.js";

const NAME = "musicsim.tab";
const IDLE = "[data-testid=stApp][data-test-script-state=notRunning]";
const LOOK_MS = 50;
const REST_LOOKS = 8;

/** Act when the page has been idle for a while, so that the page does not start again while it is drawn. */
function whenAtRest(act, nLooks = 0) {
  if (nLooks === REST_LOOKS) act();
  else setTimeout(whenAtRest, LOOK_MS, act, document.querySelector(IDLE) ? nLooks + 1 : 0);
}

export default function ({ data, setStateValue }) {
  try {
    if (!sessionStorage.getItem(NAME)) sessionStorage.setItem(NAME, data.tab);
    whenAtRest(() => {
      const before = sessionStorage.getItem(NAME);
      if (before === data.tab) return;
      sessionStorage.setItem(NAME, data.tab);
      // use a state, because a trigger would be lost if the page is running at that moment
      const [entry] = /** @type {PerformanceNavigationTiming[]} */ (performance.getEntriesByType("navigation"));
      const isReload = entry?.type === "reload";
      setStateValue("before", { tab: before, isReload });
    });
  } catch {
    // without browser storage, the page starts empty after a reload
  }
}
