// The tab remembers the key of its session (musicsim/ui/base/reloads.py), and after a reload tells the one of before.

const NAME = "musicsim.tab";
const IDLE = "[data-testid=stApp][data-test-script-state=notRunning]";

/** Do it once no run of the page is under way: a state that is set while a page is left calls the old page back. */
function whenIdle(act) {
  if (document.querySelector(IDLE)) act();
  else setTimeout(whenIdle, 50, act);
}

export default function ({ data, setStateValue }) {
  try {
    if (!sessionStorage.getItem(NAME)) sessionStorage.setItem(NAME, data.tab);
    whenIdle(() => {
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
