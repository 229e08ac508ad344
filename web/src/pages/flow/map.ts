/**
 * The map that the Flow page draws: producers, topics and subscribers, merged and sized.
 *
 * Who both receives and publishes is one node: an event comes in, another goes out.
 */
import type { Flow } from "../../lib/types";
import { href } from "../../lib/router";
import { asSubscriber, producerName, subscriberName } from "../../lib/who";

export type Kind = "topic" | "subscriber" | "producer";
export type EdgeKind = Flow["edges"][number]["kind"];

export interface MapNode {
  id: string;
  kind: Kind;
  name: string;
  /** The name, in the words of people. */
  label: string;
  rate: number;
  lag: number | null;
  state: string;
  /** It also publishes. */
  both: boolean;
  spark: boolean;
  href: string;
}

export interface MapEdge {
  from: string;
  to: string;
  kind: EdgeKind;
  rate: number;
  count: number;
  types: [name: string, count: number][];
}

export interface FlowMap {
  nodes: MapNode[];
  edges: MapEdge[];
}

export interface Wanted {
  /** A part of a name; what it is connected with is shown as well. */
  search: string;
  causes: boolean;
  idle: boolean;
}

export function mapOf(flow: Flow): FlowMap {
  const names = new Set(flow.nodes.filter((one) => one.kind === "subscriber").map((one) => one.name));
  const renamed = new Map<string, string>();
  const found = new Map<string, MapNode>();
  for (const node of flow.nodes) {
    const subscriber = node.kind === "producer" ? asSubscriber(node.name, names) : null;
    if (subscriber !== null) {
      renamed.set(node.id, subscriberId(flow, subscriber));
      continue;
    }
    found.set(node.id, {
      id: node.id,
      kind: node.kind,
      name: node.name,
      label: labelOf(node.kind, node.name),
      rate: node.rate,
      lag: node.lag ?? null,
      state: node.state ?? "",
      both: false,
      spark: isSpark(node.name) && node.kind !== "topic",
      href: addressOf(node.kind, node.name),
    });
  }
  for (const id of renamed.values()) {
    const node = found.get(id);
    if (node) node.both = true;
  }
  const edges = flow.edges.flatMap((edge): MapEdge[] => {
    const from = renamed.get(edge.from) ?? edge.from;
    const to = renamed.get(edge.to) ?? edge.to;
    if (!found.has(from) || !found.has(to)) return [];
    const types = Object.entries(edge.types ?? {}).sort((a, b) => b[1] - a[1]);
    return [{ from, to, kind: edge.kind, rate: edge.rate, count: edge.count, types }];
  });
  return { nodes: sorted([...found.values()]), edges: edges.sort(byEnds) };
}

/** What is left of a map when some of it is not wanted. */
export function narrowed(map: FlowMap, wanted: Wanted): FlowMap {
  let edges = wanted.causes ? map.edges : map.edges.filter((one) => one.kind !== "cause");
  if (!wanted.idle) edges = edges.filter((one) => one.rate > 0);
  let nodes = map.nodes;
  const search = wanted.search.trim().toLowerCase();
  if (search) {
    const hits = new Set(nodes.filter((one) => one.label.toLowerCase().includes(search)).map((one) => one.id));
    edges = edges.filter((one) => hits.has(one.from) || hits.has(one.to));
    const near = new Set([...hits, ...edges.flatMap((one) => [one.from, one.to])]);
    nodes = nodes.filter((one) => near.has(one.id));
  }
  if (!wanted.idle) {
    const busy = new Set(edges.flatMap((one) => [one.from, one.to]));
    nodes = nodes.filter((one) => busy.has(one.id) || one.rate > 0);
  }
  return { nodes, edges };
}

/** The same for two maps that differ only in figures: the drawing need not move. */
export function shapeOf(map: FlowMap): string {
  return (
    map.nodes.map((one) => one.id).join("\n") +
    "\n\n" +
    map.edges.map((one) => `${one.from}\t${one.to}\t${one.kind}`).join("\n")
  );
}

export function isSpark(name: string): boolean {
  return name.startsWith("spark:");
}

function labelOf(kind: Kind, name: string): string {
  if (kind === "topic") return name;
  return kind === "subscriber" ? subscriberName(name) : producerName(name);
}

function subscriberId(flow: Flow, name: string): string {
  return flow.nodes.find((one) => one.kind === "subscriber" && one.name === name)?.id ?? "";
}

function addressOf(kind: Kind, name: string): string {
  return kind === "topic" ? href.topic(name) : href.subscribers(name);
}

const ORDER: Record<Kind, number> = { producer: 0, topic: 1, subscriber: 2 };

function sorted(nodes: MapNode[]): MapNode[] {
  return nodes.sort((a, b) => ORDER[a.kind] - ORDER[b.kind] || compare(a.name, b.name));
}

function byEnds(a: MapEdge, b: MapEdge): number {
  return compare(a.from, b.from) || compare(a.to, b.to) || compare(a.kind, b.kind);
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
