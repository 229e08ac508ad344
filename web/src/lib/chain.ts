/**
 * Where the events of a chain are drawn: causes above, effects below.
 *
 * Every event has one parent, so it is a forest: an event stands above the middle of
 * what it caused. Many alike that caused nothing stand as one pile, until it is opened.
 */
import type { ChainEvent } from "./types";

export const WIDTH = 196;
export const HEIGHT = 62;
export const GAP_X = 16;
export const GAP_Y = 36;
const PILE = 5;

export interface Spot {
  key: string;
  event: ChainEvent;
  /** More than 1: a pile of events of this topic, of which `event` is the first. */
  count: number;
  x: number;
  y: number;
  depth: number;
}
export interface Link {
  key: string;
  from: Spot;
  to: Spot;
}
export interface Drawing {
  spots: Spot[];
  links: Link[];
  width: number;
  height: number;
}

export function keyOf(event: ChainEvent): string {
  return `${event.topic}\n${event.offset}`;
}

export function draw(events: ChainEvent[], opened: Set<string>): Drawing {
  const children = childrenOf(events);
  const roots = children.get(null) ?? [];
  const top = Math.min(0, ...events.map((event) => event.level));
  const spots: Spot[] = [];
  const links: Link[] = [];
  let right = 0;

  // Iterative: a chain may be ten thousand events long.
  type Step = { event: ChainEvent; count: number; parent: Frame | null };
  type Frame = { spot: Spot; below: Spot[]; parent: Frame | null };
  const todo: (Step | Frame)[] = piles(roots, children, opened, "").map((one) => ({ ...one, parent: null })).reverse();
  const seen = new Set<string>();
  while (todo.length > 0) {
    const step = todo.pop() as Step | Frame;
    if ("spot" in step) {
      finish(step);
      continue;
    }
    const key = keyOf(step.event);
    if (seen.has(key)) continue;
    seen.add(key);
    const depth = step.event.level - top;
    const spot: Spot = { key, event: step.event, count: step.count, x: 0, y: depth * (HEIGHT + GAP_Y), depth };
    const frame: Frame = { spot, below: [], parent: step.parent };
    todo.push(frame);
    const below = step.count > 1 ? [] : (children.get(key) ?? []);
    for (const one of piles(below, children, opened, key).reverse()) todo.push({ ...one, parent: frame });
  }

  function finish({ spot, below, parent }: Frame): void {
    if (below.length === 0) {
      spot.x = right;
      right += WIDTH + GAP_X;
    } else {
      spot.x = ((below[0] as Spot).x + (below.at(-1) as Spot).x) / 2;
    }
    for (const one of below) links.push({ key: `${spot.key}\n${one.key}`, from: spot, to: one });
    spots.push(spot);
    parent?.below.push(spot);
  }

  const bottom = spots.reduce((most, spot) => Math.max(most, spot.y), 0);
  return { spots, links, width: Math.max(right - GAP_X, WIDTH), height: bottom + HEIGHT };
}

/** The events by the key of their parent, null for those whose parent is not here. */
export function childrenOf(events: ChainEvent[]): Map<string | null, ChainEvent[]> {
  const byId = new Map<string, ChainEvent[]>();
  for (const event of events) byId.set(event.id, [...(byId.get(event.id) ?? []), event]);
  const children = new Map<string | null, ChainEvent[]>();
  const sorted = [...events].sort(
    (one, two) => one.level - two.level || one.timestamp - two.timestamp || one.offset - two.offset,
  );
  for (const event of sorted) {
    const parents = event.parent === null ? [] : (byId.get(event.parent) ?? []);
    const parent = parents.find((one) => one.level === event.level - 1 && one !== event);
    const key = parent ? keyOf(parent) : null;
    children.set(key, [...(children.get(key) ?? []), event]);
  }
  return children;
}

function piles(
  siblings: ChainEvent[],
  children: Map<string | null, ChainEvent[]>,
  opened: Set<string>,
  parent: string,
): { event: ChainEvent; count: number }[] {
  const alike = new Map<string, ChainEvent[]>();
  for (const one of siblings) {
    const leaf = !children.has(keyOf(one)) && !one.asked;
    const name = leaf ? one.topic : keyOf(one);
    alike.set(name, [...(alike.get(name) ?? []), one]);
  }
  return [...alike.values()].flatMap((list) => {
    const first = list[0] as ChainEvent;
    if (list.length < PILE || opened.has(`${parent}\n${first.topic}`))
      return list.map((event) => ({ event, count: 1 }));
    return [{ event: first, count: list.length }];
  });
}
