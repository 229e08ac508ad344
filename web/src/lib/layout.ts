/**
 * A layered drawing of a directed graph: the same graph always gets the same picture.
 *
 *     const drawn = layout(nodes, edges, { direction: "right" });
 *
 * Four steps, each small (after Sugiyama, Tagawa and Toda):
 *
 * 1. Edges that close a circle are turned around, so that all point forward.
 * 2. Every node gets a layer: one behind the last of its causes, and as near to its
 *    effects as that allows. Longer edges get a bend in each layer they pass.
 * 3. Layers are ordered by the middle of their neighbours, to and fro; the order with
 *    the fewest crossings is kept.
 * 4. Nodes move towards their neighbours as far as the order and the gaps let them.
 *
 * Nothing is random and nothing depends on the order of object keys: `nodes` and
 * `edges` are taken in the order in which they come. Lines are drawn by curves.ts.
 */

import type { Point } from "./curves";

export interface LayoutNode {
  id: string;
  width: number;
  height: number;
  /** The earliest layer it may have. Ignored where circles forbid it. */
  layer?: number;
}

export interface LayoutEdge {
  from: string;
  to: string;
}

export interface LayoutOptions {
  /** Where effects are: below their causes ("down"), or to the right of them. */
  direction?: "down" | "right";
  /** Between layers. */
  layerGap?: number;
  /** Between neighbours of a layer. */
  nodeGap?: number;
  /** Free space around everything. */
  margin?: number;
}

export interface PlacedNode {
  id: string;
  /** The middle of the node. */
  x: number;
  y: number;
  layer: number;
}

export interface PlacedEdge {
  from: string;
  to: string;
  /** From border to border, with a bend in each layer between. */
  points: Point[];
  /** It points against the direction of the drawing. */
  back: boolean;
}

export interface Layout {
  nodes: PlacedNode[];
  /** One for each edge given, in the same order; those with unknown ends are left out. */
  edges: PlacedEdge[];
  width: number;
  height: number;
}

/** A node or a bend, along the layers (`main`) and across them (`cross`). */
interface Item {
  node: LayoutNode | null;
  size: number;
  depth: number;
  layer: number;
  cross: number;
  before: Item[];
  after: Item[];
}

const SWEEPS = 12;
const PULLS = 10;
const BEND_SIZE = 8;

export function layout(
  nodes: readonly LayoutNode[],
  edges: readonly LayoutEdge[],
  options: LayoutOptions = {},
): Layout {
  const { direction = "down", layerGap = 64, nodeGap = 24, margin = 16 } = options;
  const down = direction === "down";
  const known = new Map<string, Item>();
  for (const node of nodes) {
    if (!known.has(node.id)) known.set(node.id, itemOf(node, down));
  }
  const links = edges.flatMap((edge) => {
    const from = known.get(edge.from);
    const to = known.get(edge.to);
    return from && to ? [{ edge, from, to, back: false, path: [] as Item[] }] : [];
  });
  const items = [...known.values()];

  turnCircles(items, links);
  giveLayers(items, links);
  const layers = layersOf(items);
  for (const link of links) link.path = withBends(link, layers);
  order(layers);
  spread(layers, nodeGap);

  const mains = placesOfLayers(layers, layerGap, margin);
  const shift = margin - Math.min(0, ...layers.flat().map((one) => one.cross - one.size / 2));
  const at = (main: number, cross: number): Point =>
    down ? { x: cross + shift, y: main } : { x: main, y: cross + shift };
  const middle = (one: Item): Point => at(mains[one.layer] ?? 0, one.cross);
  const ends = layers.flat();
  const long = margin + Math.max(0, ...ends.map((one) => (mains[one.layer] ?? 0) + one.depth / 2));
  const wide = margin + Math.max(0, ...ends.map((one) => one.cross + shift + one.size / 2));
  return {
    nodes: items.map((one) => ({ id: one.node!.id, layer: one.layer, ...middle(one) })),
    edges: links.map(({ edge, path, back, from, to }) => {
      const points = path.map((one) => middle(one));
      trimEnds(points, path, down);
      if (back) points.reverse();
      const loop = from === to ? loopOf(middle(from), from, down) : null;
      return { from: edge.from, to: edge.to, points: loop ?? points, back };
    }),
    width: down ? wide : long,
    height: down ? long : wide,
  };
}

// 1 and 2: layers

interface Link {
  from: Item;
  to: Item;
  back: boolean;
  path: Item[];
}

function turnCircles(items: readonly Item[], links: readonly Link[]): void {
  const out = new Map<Item, Link[]>();
  for (const link of links) push(out, link.from, link);
  const open = new Set<Item>();
  const done = new Set<Item>();
  // Sources first: what nothing causes is never turned into an effect.
  const caused = new Set(links.filter((one) => one.from !== one.to).map((one) => one.to));
  const roots = [...items.filter((one) => !caused.has(one)), ...items];
  for (const root of roots) {
    if (done.has(root)) continue;
    const stack: { item: Item; next: number }[] = [{ item: root, next: 0 }];
    open.add(root);
    while (stack.length > 0) {
      const top = stack[stack.length - 1]!;
      const link = out.get(top.item)?.[top.next++];
      if (!link) {
        open.delete(top.item);
        done.add(top.item);
        stack.pop();
      } else if (open.has(link.to)) {
        link.back = true;
      } else if (!done.has(link.to)) {
        open.add(link.to);
        stack.push({ item: link.to, next: 0 });
      }
    }
  }
}

const start = (link: Link): Item => (link.back ? link.to : link.from);
const end = (link: Link): Item => (link.back ? link.from : link.to);

function giveLayers(items: readonly Item[], links: readonly Link[]): void {
  const real = links.filter((one) => one.from !== one.to);
  const left = new Map<Item, number>(items.map((one) => [one, 0]));
  const out = new Map<Item, Item[]>();
  for (const link of real) {
    push(out, start(link), end(link));
    left.set(end(link), left.get(end(link))! + 1);
  }
  const sorted = items.filter((one) => left.get(one) === 0);
  for (const item of sorted) {
    item.layer = Math.max(item.layer, item.node?.layer ?? 0);
    for (const next of out.get(item) ?? []) {
      next.layer = Math.max(next.layer, item.layer + 1);
      left.set(next, left.get(next)! - 1);
      if (left.get(next) === 0) sorted.push(next);
    }
  }
  // Nearer to the effects, so that a late cause has no long edge.
  for (const item of sorted.reverse()) {
    const nexts = out.get(item) ?? [];
    const fixed = item.node?.layer !== undefined;
    if (nexts.length > 0 && !fixed) item.layer = Math.min(...nexts.map((one) => one.layer)) - 1;
  }
  const first = items.length ? Math.min(...items.map((one) => one.layer)) : 0;
  for (const item of items) item.layer -= first;
}

function layersOf(items: readonly Item[]): Item[][] {
  const layers: Item[][] = [];
  for (const item of items) (layers[item.layer] ??= []).push(item);
  return Array.from(layers, (one) => one ?? []);
}

function withBends(link: Link, layers: Item[][]): Item[] {
  const path = [start(link)];
  for (let layer = start(link).layer + 1; layer < end(link).layer; layer++) {
    const bend = { node: null, size: BEND_SIZE, depth: 0, layer, cross: 0, before: [], after: [] };
    layers[layer]!.push(bend);
    path.push(bend);
  }
  path.push(end(link));
  if (link.from !== link.to) {
    for (let i = 1; i < path.length; i++) {
      path[i - 1]!.after.push(path[i]!);
      path[i]!.before.push(path[i - 1]!);
    }
  }
  return path;
}

// 3: order within layers

function order(layers: Item[][]): void {
  number(layers);
  let best = layers.map((one) => [...one]);
  let fewest = crossings(layers);
  let idle = 0;
  for (let sweep = 0; sweep < SWEEPS && fewest > 0 && idle < 4; sweep++) {
    const forth = sweep % 2 === 0;
    const turns = forth ? layers.keys() : [...layers.keys()].reverse();
    for (const at of turns) {
      const layer = layers[at]!;
      const wish = new Map(
        layer.map((one) => [one, meanOf(forth ? one.before : one.after) ?? one.cross]),
      );
      layer.sort((a, b) => wish.get(a)! - wish.get(b)! || a.cross - b.cross);
      layer.forEach((one, index) => (one.cross = index));
    }
    const now = crossings(layers);
    idle = now < fewest ? 0 : idle + 1;
    if (now < fewest) {
      fewest = now;
      best = layers.map((one) => [...one]);
    }
  }
  best.forEach((one, index) => (layers[index] = one));
  number(layers);
}

function number(layers: readonly Item[][]): void {
  for (const layer of layers) layer.forEach((one, index) => (one.cross = index));
}

/** Pairs of edges between two layers whose ends are the other way round. */
function crossings(layers: readonly Item[][]): number {
  let count = 0;
  layers.forEach((layer, at) => {
    const ends = layer.flatMap((one) => one.after.map((next) => next.cross).sort((a, b) => a - b));
    // How many ends are at each place or in front of it, as a Fenwick tree.
    const tree = new Uint32Array((layers[at + 1]?.length ?? 0) + 1);
    ends.forEach((end, seen) => {
      let before = 0;
      for (let i = end + 1; i > 0; i -= i & -i) before += tree[i]!;
      count += seen - before;
      for (let i = end + 1; i < tree.length; i += i & -i) tree[i]!++;
    });
  });
  return count;
}

// 4: places

function spread(layers: readonly Item[][], gap: number): void {
  for (const layer of layers) {
    let at = 0;
    for (const one of layer) {
      one.cross = at + one.size / 2;
      at += one.size + gap;
    }
    for (const one of layer) one.cross -= (at - gap) / 2;
  }
  for (let pull = 0; pull < PULLS; pull++) {
    const forth = pull % 2 === 0;
    const turns = forth ? layers : [...layers].reverse();
    for (const layer of turns) {
      const wishes = layer.map((one) => {
        const near = forth ? one.before : one.after;
        const far = forth ? one.after : one.before;
        return meanOf(near) ?? meanOf(far) ?? one.cross;
      });
      pack(layer, wishes, gap);
    }
  }
}

/** As near to the wishes as order and gaps allow: neighbours that collide share a mean. */
function pack(layer: readonly Item[], wishes: readonly number[], gap: number): void {
  const offsets: number[] = [];
  let at = 0;
  for (const [index, one] of layer.entries()) {
    if (index > 0) at += (layer[index - 1]!.size + one.size) / 2 + gap;
    offsets.push(at);
  }
  const blocks: { sum: number; weight: number; count: number }[] = [];
  for (const [index, one] of layer.entries()) {
    // Bends weigh more: straight long edges are easier to follow.
    const weight = one.node === null ? 4 : 1;
    let block = { sum: (wishes[index]! - offsets[index]!) * weight, weight, count: 1 };
    let last = blocks[blocks.length - 1];
    while (last && last.sum / last.weight > block.sum / block.weight) {
      blocks.pop();
      block = {
        sum: last.sum + block.sum,
        weight: last.weight + block.weight,
        count: last.count + block.count,
      };
      last = blocks[blocks.length - 1];
    }
    blocks.push(block);
  }
  let index = 0;
  for (const block of blocks) {
    for (let i = 0; i < block.count; i++, index++) {
      layer[index]!.cross = block.sum / block.weight + offsets[index]!;
    }
  }
}

function placesOfLayers(layers: readonly Item[][], gap: number, margin: number): number[] {
  let at = margin;
  return layers.map((layer) => {
    const depth = Math.max(0, ...layer.map((one) => one.depth));
    const middle = at + depth / 2;
    at += depth + gap;
    return middle;
  });
}

// Small things

function itemOf(node: LayoutNode, down: boolean): Item {
  const [size, depth] = down ? [node.width, node.height] : [node.height, node.width];
  return { node, size, depth, layer: 0, cross: 0, before: [], after: [] };
}

function trimEnds(points: Point[], path: readonly Item[], down: boolean): void {
  const axis = down ? "y" : "x";
  const first = points[0];
  const last = points[points.length - 1];
  if (first && last && points.length > 1) {
    first[axis] += path[0]!.depth / 2;
    last[axis] -= path[path.length - 1]!.depth / 2;
  }
}

function loopOf(at: Point, item: Item, down: boolean): Point[] {
  const side = item.size / 2;
  const far = item.depth / 2 + 18;
  return down
    ? [
        { x: at.x + side * 0.5, y: at.y + item.depth / 2 },
        { x: at.x + side + 14, y: at.y + far },
        { x: at.x + side, y: at.y },
      ]
    : [
        { x: at.x + item.depth * 0.3, y: at.y - side },
        { x: at.x + far, y: at.y - side - 14 },
        { x: at.x + item.depth / 2, y: at.y },
      ];
}

function meanOf(items: readonly Item[]): number | null {
  if (items.length === 0) return null;
  return items.reduce((sum, one) => sum + one.cross, 0) / items.length;
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}
