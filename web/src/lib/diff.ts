/**
 * What changed between two texts, line by line and within changed lines.
 *
 * The shortest way from one to the other (Myers 1986), on what is left when common
 * beginnings and ends are taken away. Texts that differ too much are told as removed
 * and added whole: nobody reads such a difference, and time stays bounded.
 */

export type Change = "same" | "removed" | "added";

export interface Piece {
  change: Change;
  text: string;
}

export interface DiffLine {
  change: Change;
  /** Line numbers from 1, null on the side that has no such line. */
  before: number | null;
  after: number | null;
  /** The line, cut where a part of it changed. */
  pieces: Piece[];
}

const MAX_EDITS = 300;
const MAX_WORDS = 400;

export function diffLines(before: string, after: string): DiffLine[] {
  const lines: DiffLine[] = [];
  let a = 0;
  let b = 0;
  for (const { change, text } of compare(before.split("\n"), after.split("\n"))) {
    if (change !== "added") a++;
    if (change !== "removed") b++;
    lines.push({
      change,
      before: change === "added" ? null : a,
      after: change === "removed" ? null : b,
      pieces: [{ change, text }],
    });
  }
  markWords(lines);
  return lines;
}

/** How many lines were removed and added. */
export function countOf(lines: readonly DiffLine[]): { removed: number; added: number } {
  return {
    removed: lines.filter((one) => one.change === "removed").length,
    added: lines.filter((one) => one.change === "added").length,
  };
}

/** Lines to show, with the long unchanged stretches between as their number. */
export function folded(lines: readonly DiffLine[], around = 3): (DiffLine | number)[] {
  const near = new Uint8Array(lines.length);
  lines.forEach((line, index) => {
    if (line.change !== "same") near.fill(1, Math.max(0, index - around), index + around + 1);
  });
  const shown: (DiffLine | number)[] = [];
  for (let i = 0; i < lines.length; ) {
    let hidden = 0;
    while (i + hidden < lines.length && !near[i + hidden]) hidden++;
    if (hidden > 1) shown.push(hidden);
    else if (hidden === 1) shown.push(lines[i]!);
    i += hidden;
    if (i < lines.length) shown.push(lines[i++]!);
  }
  return shown;
}

/** A block of removed lines and as many added: pair them, and mark what differs. */
function markWords(lines: DiffLine[]): void {
  for (let i = 0; i < lines.length; ) {
    const removed = run(lines, i, "removed");
    const added = run(lines, i + removed, "added");
    if (removed > 0 && removed === added) {
      for (let k = 0; k < removed; k++) markPair(lines[i + k]!, lines[i + removed + k]!);
    }
    i += Math.max(1, removed + added);
  }
}

function run(lines: readonly DiffLine[], from: number, change: Change): number {
  let count = 0;
  while (lines[from + count]?.change === change) count++;
  return count;
}

function markPair(old: DiffLine, fresh: DiffLine): void {
  const a = wordsOf(old.pieces[0]!.text);
  const b = wordsOf(fresh.pieces[0]!.text);
  if (a.length > MAX_WORDS || b.length > MAX_WORDS) return;
  const pieces = joined(compare(a, b));
  const same = pieces.filter((one) => one.change === "same" && one.text.trim() !== "");
  if (same.length === 0) return;
  old.pieces = pieces.filter((one) => one.change !== "added");
  fresh.pieces = pieces.filter((one) => one.change !== "removed");
}

function wordsOf(text: string): string[] {
  return text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];
}

function joined(pieces: readonly Piece[]): Piece[] {
  const found: Piece[] = [];
  for (const piece of pieces) {
    const last = found[found.length - 1];
    if (last?.change === piece.change) last.text += piece.text;
    else found.push({ ...piece });
  }
  return found;
}

function compare(before: readonly string[], after: readonly string[]): Piece[] {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  const room = Math.min(before.length, after.length) - head;
  while (tail < room && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++;
  return [
    ...before.slice(0, head).map(as("same")),
    ...shortest(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...before.slice(before.length - tail).map(as("same")),
  ];
}

function shortest(before: readonly string[], after: readonly string[]): Piece[] {
  const trail = furthest(before, after);
  if (!trail) return [...before.map(as("removed")), ...after.map(as("added"))];
  const found: Piece[] = [];
  let x = before.length;
  let y = after.length;
  for (let d = trail.length - 1; d >= 0; d--) {
    const reached = trail[d]!;
    const k = x - y;
    const down = k === -d || (k !== d && at(reached, k - 1) < at(reached, k + 1));
    const fromX = d === 0 ? 0 : at(reached, down ? k + 1 : k - 1);
    const fromY = d === 0 ? 0 : fromX - (down ? k + 1 : k - 1);
    while (x > fromX && y > fromY && before[x - 1] === after[y - 1]) {
      found.push({ change: "same", text: before[--x]! });
      y--;
    }
    if (d > 0) {
      if (down) found.push({ change: "added", text: after[--y]! });
      else found.push({ change: "removed", text: before[--x]! });
    }
  }
  return found.reverse();
}

/** How far each diagonal came before edit d, for each d; null if there are too many. */
function furthest(before: readonly string[], after: readonly string[]): Map<number, number>[] | null {
  const trail: Map<number, number>[] = [];
  const reach = new Map<number, number>([[1, 0]]);
  const most = Math.min(before.length + after.length, MAX_EDITS);
  for (let d = 0; d <= most; d++) {
    trail.push(new Map(reach));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && at(reach, k - 1) < at(reach, k + 1));
      let x = down ? at(reach, k + 1) : at(reach, k - 1) + 1;
      while (x < before.length && x - k < after.length && before[x] === after[x - k]) x++;
      reach.set(k, x);
      if (x >= before.length && x - k >= after.length) return trail;
    }
  }
  return null;
}

const at = (map: Map<number, number>, key: number): number => map.get(key) ?? -1;
const as =
  (change: Change) =>
  (text: string): Piece => ({ change, text });
