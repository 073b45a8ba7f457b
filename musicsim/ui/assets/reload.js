// The tab remembers the key of its session (musicsim/ui/base/reloads.py), and after a reload tells the one of before.

const NAME = "musicsim.tab";

export default function ({ data, setStateValue }) {
  try {
    const before = sessionStorage.getItem(NAME);
    if (before === data.tab) return;
    sessionStorage.setItem(NAME, data.tab);
    // a state and no trigger: a trigger is lost where the page runs at that moment
    if (before) setStateValue("before", before);
  } catch {
    // a browser that keeps nothing: a reload begins with nothing
  }
}
