// The tab remembers the key of its session (musicsim/ui/base/reloads.py), and after a reload tells the one of before;
// until Python has heard of it the tab keeps to that one, as it may be loaded again meanwhile.

const NAME = "musicsim.tab";
let told = null;

export default function ({ data, setTriggerValue }) {
  try {
    const before = sessionStorage.getItem(NAME);
    if (before === data.tab) return;
    if (before && told !== data.tab) {
      told = data.tab;
      setTriggerValue("before", before);
    } else {
      sessionStorage.setItem(NAME, data.tab);
    }
  } catch {
    // a browser that keeps nothing: a reload begins with nothing
  }
}
