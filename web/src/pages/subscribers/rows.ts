/** Subscriptions with who serves them: what two answers of the API tell, put together. */
import type { SubscriptionRow, SubscriptionState } from "../../lib/types";
import { subscriberName } from "../../lib/who";

export interface Connection {
  number: number;
  gateway: string;
  peer: string;
  /** Subscriber or user; may be empty. */
  name: string;
  since_ms: number;
  bytes_in: number;
  bytes_out: number;
  subscriptions: { subscriber: string; topic: string; window: number | null; in_flight: number; lag: number }[];
  rate: number;
}

export interface Row extends SubscriptionRow {
  key: string;
  /** The subscriber, in the words of people. */
  who: string;
  /** A query of Spark that keeps its place itself. */
  spark: boolean;
  gateways: string[];
  connections: Connection[];
  /** Sum over its connections; null while nobody is connected. */
  window: number | null;
  /** Events settled a second; null until it was looked at twice. */
  rate: number | null;
}

/** Where a subscription stood when it was last looked at. */
export interface Mark {
  position: number;
  lag: number;
  at_ms: number;
  rate: number | null;
}

export const keyOf = (one: { subscriber: string; topic: string }): string => `${one.subscriber}\n${one.topic}`;

export const isSpark = (name: string): boolean => name.startsWith("spark:");

export function rowsOf(
  subscriptions: readonly SubscriptionRow[],
  connections: readonly Connection[],
  marks: ReadonlyMap<string, Mark>,
): Row[] {
  const served = new Map<string, { connection: Connection; window: number | null }[]>();
  for (const connection of connections) {
    for (const one of connection.subscriptions) {
      const list = served.get(keyOf(one)) ?? [];
      list.push({ connection, window: one.window });
      served.set(keyOf(one), list);
    }
  }
  return subscriptions.map((one) => {
    const mine = served.get(keyOf(one)) ?? [];
    const windows = mine.flatMap((each) => (each.window === null ? [] : [each.window]));
    return {
      ...one,
      key: keyOf(one),
      who: subscriberName(one.subscriber),
      spark: isSpark(one.subscriber),
      gateways: [...new Set(mine.map((each) => each.connection.gateway))],
      connections: mine.map((each) => each.connection),
      window: windows.length ? windows.reduce((sum, each) => sum + each, 0) : null,
      rate: marks.get(keyOf(one))?.rate ?? null,
    };
  });
}

/**
 * Rates from two looks: what went out of the topic less what is owed now.
 *
 * The lowest position stands still while one old event is not settled, so the rate is
 * of what was settled in all: how far the end of the topic moved, less growth of lag.
 */
export function marked(
  known: ReadonlyMap<string, Mark>,
  subscriptions: readonly SubscriptionRow[],
  ends: ReadonlyMap<string, number>,
  at_ms: number,
): Map<string, Mark> {
  return new Map(
    subscriptions.map((one) => {
      const key = keyOf(one);
      const end = ends.get(one.topic);
      const settled = end === undefined ? one.position : end - one.lag;
      const before = known.get(key);
      if (!before) return [key, { position: settled, lag: one.lag, at_ms, rate: null }];
      const seconds = (at_ms - before.at_ms) / 1000;
      const rate = seconds > 0 ? Math.max(0, settled - before.position) / seconds : before.rate;
      return [key, { position: settled, lag: one.lag, at_ms, rate }];
    }),
  );
}

export const STATES: Record<SubscriptionState, ["good" | "plain" | "bad" | "warn", string]> = {
  connected: ["good", "somebody receives its events"],
  away: ["warn", "nobody is connected; events wait for it"],
  unsubscribed: ["plain", "it keeps its place and asks for nothing"],
  suspended: ["bad", "an event failed with its last try; nothing goes out until it is resumed"],
};

/** The state in words: queries of Spark are never connected, they come and go. */
export function stateOf(row: Row): string {
  return row.spark && row.state !== "suspended" ? "query" : row.state;
}

export const MATTERS: Record<string, number> = { suspended: 0, connected: 1, away: 2, unsubscribed: 3 };

/** Which rows contain every word, in subscriber, topic, gateway or state. */
export function matching(rows: readonly Row[], search: string): Row[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [...rows];
  return rows.filter((row) => {
    const text = `${row.subscriber} ${row.who} ${row.topic} ${row.gateways.join(" ")} ${stateOf(row)}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
