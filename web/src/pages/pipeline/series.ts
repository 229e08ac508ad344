/** What the topics of the pipeline tell, as series to draw and rows to rank. */
import { spelling } from "../../lib/json";
import type { Event } from "../../lib/types";

/** A window of 5 seconds; of `logger_stats` the count is of crashes. */
export interface Window {
  at_s: number;
  p75: number | null;
  p85: number | null;
  p95: number | null;
  count: number;
}

export interface Mood {
  at_s: number;
  afinn: number | null;
  vader: number | null;
  tweets: number;
}

export interface Tag {
  tag: string;
  count: number;
}

export interface Engaged {
  id: string;
  name: string;
  count: number;
  sum: number;
  average: number;
  last: number;
}

type Json = Record<string, unknown>;

export function windowsOf(events: readonly Event[]): Window[] {
  return events.flatMap((event) => {
    const said = objectOf(event.payload);
    const end = numberOf(said?.window_end_ms);
    if (!said || end === null) return [];
    return [
      {
        at_s: end / 1000,
        p75: numberOf(said.p75),
        p85: numberOf(said.p85),
        p95: numberOf(said.p95),
        count: numberOf(said.processed) ?? numberOf(said.crashes) ?? 0,
      },
    ];
  });
}

/** Windows in order, each once, the newest `most` of them. */
export function joinedWindows(known: readonly Window[], more: readonly Window[], most: number): Window[] {
  const found = new Map([...known, ...more].map((one) => [one.at_s, one]));
  return [...found.values()].sort((a, b) => a.at_s - b.at_s).slice(-most);
}

/** The mean feeling of some tweets: one point of the curve. */
export function moodOf(events: readonly Event[]): Mood | null {
  const tweets = events.map(afterOf).filter((one) => one !== null);
  if (tweets.length === 0) return null;
  const last = events[events.length - 1]!;
  return {
    at_s: last.timestamp / 1000,
    afinn: meanOf(tweets.map((one) => numberOf(one.sentiments_score))),
    vader: meanOf(tweets.map((one) => numberOf(one.vader_score))),
    tweets: tweets.length,
  };
}

/** The last count of each tag: counts only grow, and the topic is in order. */
export function countTags(known: Map<string, number>, events: readonly Event[]): void {
  for (const event of events) {
    const said = objectOf(event.payload);
    const count = numberOf(said?.count);
    if (said && typeof said.tag === "string" && count !== null) known.set(said.tag, count);
  }
}

export function topTags(known: ReadonlyMap<string, number>, most: number): Tag[] {
  return [...known]
    .map(([tag, count]) => ({ tag, count }))
    .sort((a, b) => b.count - a.count || (a.tag < b.tag ? -1 : 1))
    .slice(0, most);
}

/** The last document of each user. */
export function noteUsers(known: Map<string, Engaged>, events: readonly Event[]): void {
  for (const event of events) {
    const said = afterOf(event);
    const id = said && (said.id_str ?? event.key);
    if (!said || typeof id !== "string") continue;
    known.set(id, {
      id,
      name: typeof said.screen_name === "string" ? said.screen_name : id,
      count: numberOf(said.count) ?? 0,
      sum: numberOf(said.sum) ?? 0,
      average: numberOf(said.avg) ?? 0,
      last: numberOf(said.last_score) ?? 0,
    });
  }
}

export type Rank = "sum" | "average" | "count";

export function topUsers(known: ReadonlyMap<string, Engaged>, by: Rank, most: number): Engaged[] {
  return [...known.values()]
    .sort((a, b) => b[by] - a[by] || (a.id < b.id ? -1 : 1))
    .slice(0, most);
}

/** A change of the store: the document as it is now. */
function afterOf(event: Event): Json | null {
  return objectOf(objectOf(event.payload)?.after);
}

function objectOf(value: unknown): Json | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : null;
}

function numberOf(said: unknown): number | null {
  // Numbers of many digits come as they are spelt; here they are only drawn.
  const value = spelling(said) === null ? said : Number(spelling(said));
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function meanOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((one) => one !== null);
  return known.length ? known.reduce((sum, one) => sum + one, 0) / known.length : null;
}
