// Streamlit gives upload boxes a name and the role "presentation", which hides the name from screen readers.

function showNames() {
  for (const box of document.querySelectorAll("section[role=presentation][aria-label]")) box.removeAttribute("role");
}

new MutationObserver(showNames).observe(document.body, { childList: true, subtree: true });
showNames();
