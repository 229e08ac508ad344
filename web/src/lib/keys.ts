/**
 * Keys: single ones ("j"), sequences ("g o") and with Ctrl or Cmd ("mod+k").
 *
 * A component says `$effect(() => bind({ "j": [next, "Next row"] }))`; what was bound
 * last wins, and is unbound with the component. Keys are left alone while somebody
 * types, except Escape and those with "mod". `?` shows what is bound.
 */
import { Cell } from "./cell";

export type Bindings = Record<string, [act: () => void, help: string]>;

const SEQUENCE_MS = 1200;

/** What is bound now, the newest last. */
export const bound = new Cell<Bindings[]>([]);

let begun = "";
let begunAt = 0;

export function bind(bindings: Bindings): () => void {
  bound.value = [...bound.peek(), bindings];
  return () => {
    bound.value = bound.peek().filter((one) => one !== bindings);
  };
}

export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

export function listen(): () => void {
  addEventListener("keydown", pressed);
  return () => removeEventListener("keydown", pressed);
}

function pressed(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.altKey || event.isComposing) return;
  const mod = event.ctrlKey || event.metaKey;
  const name = mod ? `mod+${event.key.toLowerCase()}` : event.key;
  if (isTyping(event.target) && !mod && name !== "Escape") return;
  // A dialog has the keyboard for itself; it closes itself with Escape.
  if (document.querySelector("dialog[open], [aria-modal=true]") && !mod) return;
  const sequence = begun && Date.now() - begunAt < SEQUENCE_MS ? `${begun} ${name}` : "";
  begun = "";
  const newest = [...bound.peek()].reverse();
  // A sequence that was begun comes first: "g f" goes on although a page has "f".
  const found =
    newest.find((one) => one[sequence])?.[sequence] ?? newest.find((one) => one[name])?.[name];
  if (found) {
    event.preventDefault();
    found[0]();
    return;
  }
  const starts = bound
    .peek()
    .some((one) => Object.keys(one).some((keys) => keys.startsWith(`${name} `)));
  if (starts) {
    begun = name;
    begunAt = Date.now();
  }
}
