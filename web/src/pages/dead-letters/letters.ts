/** Dead letters as the API tells them, and what the desk makes of them. */

export type Status = "open" | "republished" | "dropped" | "closed";

/** Which letters; what is left out does not matter. */
export interface Filter {
  subscriber?: string;
  topic?: string;
  gateway?: string;
  error?: string;
  reason?: string;
  pattern?: string;
}

export interface LetterRow {
  number: number;
  status: Status;
  at_ms: number;
  gateway: string;
  reason: string;
  kind: string | null;
  topic: string | null;
  offset: number | null;
  id: string | null;
  subscriber: string | null;
  tries: number;
  amended: boolean;
  /** Base64 of the beginning of raw input. */
  raw: string | null;
  raw_bytes: number;
}

export interface TryRow {
  tries: number;
  at_ms: number;
  duration_s: number | null;
  kind: string;
  message: string;
  traceback: string;
}

export interface EventOf {
  offset: number;
  id: string;
  timestamp: number;
  priority: number;
  key: string | null;
  headers: Record<string, string>;
  parent: string | null;
  producer: string | null;
  /** Without `encoding` it is base64. */
  payload: unknown;
  encoding?: "json" | "text" | "base64";
}

export interface AuditRow {
  entry: number;
  at_ms: number;
  by: string;
  action: "republished" | "edited" | "dropped";
  numbers: number[];
  subscriber: string | null;
  topic: string | null;
  reason: string;
  old: string | null;
  new: string | null;
  cut: boolean;
}

export interface LetterView extends LetterRow {
  pattern: string;
  errors: string[];
  failures: TryRow[];
  event: EventOf | null;
  event_from: "log" | "letter" | null;
  history: AuditRow[];
  history_cut: boolean;
}

export interface GroupRow {
  subscriber: string | null;
  topic: string | null;
  gateway: string;
  kind: string | null;
  pattern: string;
  count: number;
  first_ms: number;
  last_ms: number;
  first: number;
  example: number;
}

export interface Done {
  number: number;
  done: boolean;
  text: string;
  fresh: boolean;
}

export interface DonePage {
  results: Done[];
  next: number | null;
}

/** The filter that takes the letters of a group, and no others. */
export function filterOf(group: GroupRow): Filter {
  return {
    ...(group.subscriber === null ? {} : { subscriber: group.subscriber }),
    ...(group.topic === null ? {} : { topic: group.topic }),
    gateway: group.gateway,
    error: group.kind ?? "",
    pattern: group.pattern,
  };
}

/** A name for a group that stays while letters come and go. */
export function keyOf(group: GroupRow | LetterView): string {
  return JSON.stringify([group.subscriber, group.topic, group.gateway, group.kind, group.pattern]);
}

/** Groups of several pages, those that are alike as one; the largest first. */
export function merged(groups: readonly GroupRow[]): GroupRow[] {
  const found = new Map<string, GroupRow>();
  for (const group of groups) {
    const known = found.get(keyOf(group));
    found.set(keyOf(group), known ? joined(known, group) : group);
  }
  return [...found.values()].sort((a, b) => b.count - a.count || b.last_ms - a.last_ms);
}

function joined(known: GroupRow, group: GroupRow): GroupRow {
  return {
    ...known,
    count: known.count + group.count,
    first_ms: Math.min(known.first_ms, group.first_ms),
    last_ms: Math.max(known.last_ms, group.last_ms),
    example: group.example,
  };
}

/** Where a letter comes from, in a few words. */
export function placeOf(one: { subscriber: string | null; topic: string | null; gateway: string }): string {
  if (one.subscriber === null) return `raw input · ${one.gateway}`;
  return `${one.subscriber} ← ${one.topic ?? "?"}`;
}

/** What went wrong, as a heading. */
export function kindOf(one: { kind: string | null; subscriber: string | null }): string {
  if (one.kind) return one.kind;
  return one.subscriber === null ? "Raw input" : "Given up";
}

/** What was said, without the kind of error in front, which stands above it. */
export function saidOf(kind: string | null, text: string): string {
  return kind && text.startsWith(`${kind}: `) ? text.slice(kind.length + 2) : text;
}

/** Outcomes counted by what they say, the most frequent first. */
export function outcomes(results: readonly Done[]): { text: string; done: boolean; count: number }[] {
  const found = new Map<string, { text: string; done: boolean; count: number }>();
  for (const { text, done } of results) {
    const key = `${done}${text}`;
    const known = found.get(key);
    if (known) known.count++;
    else found.set(key, { text, done, count: 1 });
  }
  return [...found.values()].sort((a, b) => b.count - a.count);
}

const PAUSE_MS = 60_000;

/** The audit trail, the newest first: what one person did in one go is one row. */
export function goes(entries: readonly AuditRow[]): AuditRow[] {
  const found: AuditRow[] = [];
  const last = new Map<string, AuditRow>();
  for (const row of entries) {
    const key = JSON.stringify([row.by, row.action, row.subscriber, row.topic, row.reason]);
    const go = last.get(key);
    if (go && row.action !== "edited" && go.at_ms - row.at_ms <= PAUSE_MS) {
      go.numbers = [...row.numbers, ...go.numbers];
      go.at_ms = row.at_ms;
    } else {
      const fresh = { ...row };
      last.set(key, fresh);
      found.push(fresh);
    }
  }
  return found;
}

/** Numbers as people write them: 1–3, 7. */
export function ranges(numbers: readonly number[]): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length; ) {
    let end = i;
    while (sorted[end + 1] === sorted[end]! + 1) end++;
    parts.push(end > i ? `${sorted[i]}–${sorted[end]}` : `${sorted[i]}`);
    i = end + 1;
  }
  return parts.join(", ");
}
