/** Short notes in the corner: what was done, or why not. */
import { Problem } from "./api";
import { Cell } from "./cell";

export interface Note {
  number: number;
  text: string;
  kind: "good" | "bad" | "plain";
  hint: string;
  link: { href: string; text: string } | null;
}

const SHOWN_MS = 5_000;
const SHOWN_BAD_MS = 12_000;

export const notes = new Cell<Note[]>([]);
let last = 0;

export function toast(
  text: string,
  more: { kind?: Note["kind"]; hint?: string; link?: Note["link"] } = {},
): void {
  last += 1;
  const note: Note = {
    number: last,
    text,
    kind: more.kind ?? "good",
    hint: more.hint ?? "",
    link: more.link ?? null,
  };
  notes.value = [...notes.peek().slice(-3), note];
  setTimeout(
    () => dismiss(note.number),
    note.kind === "bad" ? SHOWN_BAD_MS : SHOWN_MS,
  );
}

/** Say why something was not done. */
export function complain(error: unknown): void {
  const hint = error instanceof Problem ? error.hint : "";
  const text = error instanceof Error ? error.message : String(error);
  toast(text, { kind: "bad", hint });
}

export function dismiss(number: number): void {
  notes.value = notes.peek().filter((one) => one.number !== number);
}
