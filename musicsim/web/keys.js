// Which keys belong to the element that has the focus.

/** Return true if the space bar already has a function on this element, such as a button or a list. */
export const hasOwnSpace = (target) =>
  target.closest("button, a[href], summary, input, [role]:not([role=slider], [role=document], [role=region], [role=main], [role=application])") !== null;

/** Return true if an element takes text. */
export function isTyping(element) {
  const keyless = ["button", "checkbox", "radio", "range", "submit", "reset"];
  if (element instanceof HTMLInputElement) return !keyless.includes(element.type);
  return element.isContentEditable || Boolean(element.closest("textarea, select, [role=textbox], [role=combobox]"));
}
