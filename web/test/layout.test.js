import assert from "node:assert/strict";
import { test } from "node:test";
import { random, source } from "./source.js";

const { layout } = await source("lib/layout.ts");
const { pathOf, pointOn } = await source("lib/curves.ts");

function graph(seed, many, links) {
  const next = random(seed);
  const nodes = Array.from({ length: many }, (_, n) => ({ id: `n${n}`, width: 60 + Math.floor(next() * 100), height: 40 }));
  const edges = Array.from({ length: links }, () => ({
    from: `n${Math.floor(next() * many)}`,
    to: `n${Math.floor(next() * many)}`,
  }));
  return { nodes, edges };
}

const box = (node, size) => ({
  left: node.x - size.width / 2,
  right: node.x + size.width / 2,
  top: node.y - size.height / 2,
  bottom: node.y + size.height / 2,
});

for (const direction of ["down", "right"]) {
  test(`no two nodes lie over each other, whatever the graph: ${direction}`, () => {
    for (let seed = 1; seed <= 40; seed++) {
      const { nodes, edges } = graph(seed, 1 + (seed % 30), seed * 2);
      const drawn = layout(nodes, edges, { direction });
      const boxes = drawn.nodes.map((node, n) => box(node, nodes[n]));
      boxes.forEach((a, i) =>
        boxes.slice(i + 1).forEach((b) => {
          const apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
          assert.ok(apart, `seed ${seed}`);
        }),
      );
      for (const one of boxes) {
        assert.ok(one.left >= 0 && one.top >= 0, `seed ${seed}`);
        assert.ok(one.right <= drawn.width && one.bottom <= drawn.height, `seed ${seed}`);
      }
    }
  });
}

test("effects are behind their causes, but for edges that close a circle", () => {
  for (let seed = 1; seed <= 40; seed++) {
    const { nodes, edges } = graph(seed, 20, 30);
    const drawn = layout(nodes, edges);
    const layers = new Map(drawn.nodes.map((one) => [one.id, one.layer]));
    for (const { from, to, back } of drawn.edges) {
      if (from === to) continue;
      assert.equal(layers.get(from) < layers.get(to), !back, `seed ${seed}: ${from} to ${to}`);
    }
  }
});

test("a graph without circles has no edge that points back", () => {
  for (let seed = 1; seed <= 40; seed++) {
    const { nodes, edges } = graph(seed, 20, 40);
    const forward = edges
      .map(({ from, to }) => [Number(from.slice(1)), Number(to.slice(1))])
      .filter(([a, b]) => a !== b)
      .map(([a, b]) => ({ from: `n${Math.min(a, b)}`, to: `n${Math.max(a, b)}` }));
    assert.ok(layout(nodes, forward).edges.every((one) => !one.back), `seed ${seed}`);
  }
});

test("the same graph has the same picture", () => {
  const { nodes, edges } = graph(7, 25, 40);

  assert.deepEqual(layout(nodes, edges), layout(structuredClone(nodes), structuredClone(edges)));
});

test("two chains side by side do not cross", () => {
  const nodes = ["a", "b", "c", "d", "e", "f"].map((id) => ({ id, width: 10, height: 10 }));
  const edges = [
    { from: "a", to: "d" },
    { from: "b", to: "c" },
    { from: "c", to: "e" },
    { from: "d", to: "f" },
  ];
  const place = new Map(layout(nodes, edges).nodes.map((one) => [one.id, one]));

  const order = (left, right) => Math.sign(place.get(left).x - place.get(right).x);
  assert.equal(order("a", "b"), order("d", "c"));
  assert.equal(order("d", "c"), order("f", "e"));
  assert.equal(place.get("a").x, place.get("f").x, "a chain is a straight line");
});

test("edges with unknown ends are left out, loops and doubles are drawn", () => {
  const nodes = [{ id: "a", width: 10, height: 10 }];
  const drawn = layout(nodes, [
    { from: "a", to: "?" },
    { from: "a", to: "a" },
    { from: "a", to: "a" },
  ]);

  assert.equal(drawn.edges.length, 2);
  assert.equal(drawn.edges[0].points.length, 3);
  assert.deepEqual(layout([], []).nodes, []);
});

test("a label lies on the line that is drawn", () => {
  const points = [
    { x: 0, y: 0 },
    { x: 10, y: 20 },
    { x: 30, y: 40 },
  ];

  assert.deepEqual(pointOn(points, 0), points[0]);
  assert.deepEqual(pointOn(points, 0.5), points[1]);
  assert.deepEqual(pointOn(points, 1), points[2]);
  assert.deepEqual(pointOn(points, 0.25), { x: 5, y: 10 });
  assert.equal(pathOf(points.slice(0, 2)), "M0,0C0,10 10,10 10,20");
});

test("a large graph is laid out in a moment", () => {
  const { nodes, edges } = graph(3, 400, 800);
  const began = performance.now();
  layout(nodes, edges);

  assert.ok(performance.now() - began < 10_000, "bounded");
});
