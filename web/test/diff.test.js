import assert from "node:assert/strict";
import { test } from "node:test";
import { random, source } from "./source.js";

const { diffLines, folded, countOf } = await source("lib/diff.ts");

const text = (line) => line.pieces.map((piece) => piece.text).join("");
const side = (lines, gone) =>
  lines
    .filter((line) => line.change !== gone)
    .map(text)
    .join("\n");

test("both texts can be read from what is told of them", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const next = random(seed);
    const word = () => "abc"[Math.floor(next() * 3)];
    const lines = (many) => Array.from({ length: many }, () => word() + word()).join("\n");
    const [before, after] = [lines(Math.floor(next() * 12)), lines(Math.floor(next() * 12))];
    const found = diffLines(before, after);

    assert.equal(side(found, "added"), before, `seed ${seed}`);
    assert.equal(side(found, "removed"), after, `seed ${seed}`);
  }
});

test("no shorter way is there", () => {
  for (let seed = 1; seed <= 100; seed++) {
    const next = random(seed);
    const lines = () => Array.from({ length: 8 }, () => "abc"[Math.floor(next() * 3)]);
    const [a, b] = [lines(), lines()];
    const { removed, added } = countOf(diffLines(a.join("\n"), b.join("\n")));

    assert.equal(removed + added, a.length + b.length - 2 * common(a, b), `seed ${seed}`);
  }
});

test("the word that changed is marked in its line", () => {
  const [old, fresh] = diffLines('  "amount": "4.50",', '  "amount": 4.50,');

  assert.deepEqual(
    old.pieces.filter((piece) => piece.change === "removed").map((piece) => piece.text),
    ['"', '"'],
  );
  assert.ok(fresh.pieces.every((piece) => piece.change === "same"));
});

test("long stretches that are the same are folded", () => {
  const lines = Array.from({ length: 30 }, (_, n) => `line ${n}`);
  const changed = lines.with(15, "another");
  const shown = folded(diffLines(lines.join("\n"), changed.join("\n")), 2);

  assert.equal(shown[0], 13);
  assert.equal(shown.at(-1), 12);
  assert.equal(shown.length, 2 + 2 + 2 + 2);
});

test("texts that have nothing in common are told whole, and soon", () => {
  const many = (letter) => Array.from({ length: 5000 }, (_, n) => `${letter}${n}`).join("\n");
  const { removed, added } = countOf(diffLines(many("a"), many("b")));

  assert.deepEqual([removed, added], [5000, 5000]);
});

/** Length of the longest common subsequence, the slow way. */
function common(a, b) {
  const table = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = 1; i <= a.length; i++)
    for (let j = 1; j <= b.length; j++)
      table[i][j] = a[i - 1] === b[j - 1] ? table[i - 1][j - 1] + 1 : Math.max(table[i - 1][j], table[i][j - 1]);
  return table[a.length][b.length];
}
