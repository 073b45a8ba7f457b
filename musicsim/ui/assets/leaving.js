// Streamlit calls the function that a component returns when the component leaves the page, but also if new data
// arrives before the component has received the previous data. In the second case, the component must not close.

/** Return a function for Streamlit that closes a component if it has left the page. */
function closeIfGone(parentElement, close) {
  return () => parentElement.isConnected || close();
}
