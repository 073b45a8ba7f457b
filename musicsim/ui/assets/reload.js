// The tab remembers the key of its session (musicsim/ui/base/reloads.py), and sends the previous key after a reload.

const NAME = "musicsim.tab";
const IDLE = "[data-testid=stApp][data-test-script-state=notRunning]";
const LOOK_MS = 50;
const REST_LOOKS = 8;

/** Act once the page has been idle for a while: a state that is set during a switch of pages returns to the old page. */
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
      // a state, not a trigger: a trigger is lost if the page is running at that moment
      const isReload = performance.getEntriesByType("navigation")[0]?.type === "reload";
      setStateValue("before", { tab: before, isReload });
    });
  } catch {
    // a browser without storage: a reload starts empty
  }
}
