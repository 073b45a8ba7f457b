// The tab remembers the key of its session (musicsim/ui/base/reloads.py), and after a reload tells the one of before.

const NAME = "musicsim.tab";
const IDLE = "[data-testid=stApp][data-test-script-state=notRunning]";
const LOOK_MS = 50;
const REST_LOOKS = 8;

/** Do it once the page has been at rest for a while: a state that is set while a page is left calls the old page back. */
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
      // a state and no trigger: a trigger is lost where the page runs at that moment
      const isReload = performance.getEntriesByType("navigation")[0]?.type === "reload";
      setStateValue("before", { tab: before, isReload });
    });
  } catch {
    // a browser that keeps nothing: a reload begins with nothing
  }
}
