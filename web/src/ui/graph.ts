/** What a graph is made of, and how large its nodes are. */

export interface GraphNode {
  id: string;
  label: string;
  /** A second, smaller line. It may change without a new layout. */
  detail?: string;
  /** Shape and colour. */
  kind?: "topic" | "subscriber" | "query" | "producer" | "event";
  /** Something is wrong, or to be looked at. */
  tone?: "bad" | "warn" | "quiet";
  /** The one that was asked for. */
  current?: boolean;
  href?: string;
  /** All of it, as a tip and for those who do not see it; else label, detail, kind. */
  title?: string;
  /** The earliest layer it may have. */
  layer?: number;
}

export interface GraphEdge {
  from: string;
  to: string;
  kind?: "plain" | "cause" | "quiet";
  label?: string;
  title?: string;
  /** From 0 to 1: how thick. */
  weight?: number;
}

export const NODE_HEIGHT = 42;
const LEAST = 92;
/** For whoever has a lag to tell of in its second line, and perhaps that it stands still. */
const WIDER = 150;
const WIDEST = 168;
const MOST = 208;
/** Of a name, on average; there is no measuring before it is drawn. */
const LETTER = 7.8;
const SIGN = 42;

export const isRound = (node: GraphNode): boolean =>
  node.kind === "subscriber" || node.kind === "query";

export function widthOf(node: GraphNode): number {
  const text = Math.ceil(Math.max(node.label.length, 6) * LETTER);
  const round = isRound(node);
  const least = !round ? LEAST : node.tone === "bad" ? WIDEST : WIDER;
  return Math.min(MOST, Math.max(least, text + SIGN + (round ? 8 : 0)));
}

/** The label, shortened in the middle if it is too long: its ends tell most. */
export function fits(node: GraphNode): string {
  const most = Math.max(4, Math.floor((widthOf(node) - SIGN) / LETTER));
  if (node.label.length <= most) return node.label;
  const tail = Math.floor(most / 3);
  return `${node.label.slice(0, most - tail - 1)}…${node.label.slice(-tail)}`;
}

export function nameOf(node: GraphNode): string {
  return node.title ?? [node.label, node.detail, node.kind].filter(Boolean).join(", ");
}
