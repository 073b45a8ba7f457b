// Streamlit gives upload boxes a name and the role "presentation", which hides the name from screen readers.

const WATCHING = Symbol.for("musicsim.upload_boxes");

function showNames() {
  for (const box of document.querySelectorAll("section[role=presentation][aria-label]")) box.removeAttribute("role");
}

if (!window[WATCHING]) {
  window[WATCHING] = new MutationObserver(showNames);
  window[WATCHING].observe(document.body, { childList: true, subtree: true });
  showNames();
}

