import assert from "node:assert/strict";
import { test } from "node:test";
import { source } from "./source.js";

const { goes, merged, ranges } = await source("pages/dead-letters/letters.ts");
const { laidOut, packed, payloadOf, readable, sourceOf } = await source("pages/dead-letters/payload.ts");
const { traceLines } = await source("pages/dead-letters/traceback.ts");
const { allGroups, carryOut, rowsOf } = await source("pages/dead-letters/work.ts");

const group = (more) => ({
  subscriber: "s", topic: "t", gateway: "native", kind: "E", pattern: "p",
  count: 1, first_ms: 5, last_ms: 5, first: 0, example: 0, ...more,
});

test("groups of several pages are one", () => {
  const found = merged([group({ count: 2, first_ms: 1 }), group({ pattern: "q" }), group({ count: 3, last_ms: 9, example: 7 })]);

  assert.deepEqual(found.map((one) => [one.pattern, one.count]), [["p", 5], ["q", 1]]);
  assert.deepEqual([found[0].first_ms, found[0].last_ms, found[0].example], [1, 9, 7]);
});

test("pages of groups are asked for to their end, and never behind it", async () => {
  const asked = [];
  const pages = [{ groups: [group()], next: 10, end: 20 }, { groups: [group()], next: null, end: 20 }];
  const { groups, end } = await allGroups(async (_filter, start, until) => {
    asked.push([start, until]);
    return pages.shift();
  }, {});

  assert.deepEqual(asked, [[0, null], [10, 20]]);
  assert.deepEqual([groups.length, groups[0].count, end], [1, 2, 20]);
});

test("numbers are told as ranges", () => {
  assert.equal(ranges([3, 1, 2, 7, 9, 10, 7]), "1–3, 7, 9–10");
});

test("what one person did in one go is one row", () => {
  const entry = (entry_, at_ms, more = {}) => ({ entry: entry_, at_ms, by: "anna", action: "republished", numbers: [entry_], subscriber: "s", topic: "t", reason: "", old: null, new: null, cut: false, ...more });
  const rows = goes([entry(5, 90_000), entry(4, 60_000), entry(3, 50_000, { by: "bert" }), entry(2, 20_000), entry(1, 0, { action: "edited" }), entry(0, 0, { action: "edited" })]);

  assert.deepEqual(rows.map((row) => [row.by, row.numbers]), [["anna", [2, 4, 5]], ["bert", [3]], ["anna", [1]], ["anna", [0]]]);
});

test("laying out changes white space only", () => {
  const text = '{"a":[1,2.50,{"b\\"}":null}],"c":{},"d":[],"long":12345678901234567890,"t":" x  y "}';

  assert.equal(packed(laidOut(text)), text);
  assert.equal(laidOut(laidOut(text)), laidOut(text));
  assert.deepEqual(JSON.parse(laidOut(text)), JSON.parse(text));
  assert.equal(laidOut('{"a":[1]}'), '{\n  "a": [\n    1\n  ]\n}');
});

test("a value is found in its text as it is written", () => {
  const text = '{ "x" : {"event": 1}, "event":{"id":"}","payload" : {"n": 12345678901234567890, "t":["]"]} ,"z":0}}';

  assert.equal(sourceOf(text, ["event", "payload"]), '{"n": 12345678901234567890, "t":["]"]}');
  assert.equal(sourceOf(text, ["event", "missing"]), null);
  assert.equal(sourceOf('{"event":null}', ["event", "payload"]), null);
});

test("bytes are shown as JSON, as text, or as they are", () => {
  assert.equal(readable(btoa('{"a":1}')).kind, "json");
  assert.equal(readable(btoa("{broken")).kind, "text");
  assert.equal(readable(btoa("\xff\xfe")).kind, "binary");
  assert.equal(payloadOf({ payload: "plain", encoding: "text" }).text, "plain");
});

test("a traceback tells places from code, and one's own from libraries", () => {
  const lines = traceLines('Traceback (most recent call last):\n  File "/x/site-packages/a.py", line 3, in f\n    g()\n  File "/srv/b.py", line 4, in g\n    1/0\nZeroDivisionError: no\n');

  assert.deepEqual(lines.map((one) => one.kind), ["note", "place", "code", "place", "code", "error"]);
  assert.deepEqual(lines.map((one) => Boolean(one.foreign)), [false, true, true, false, false, false]);
  assert.deepEqual([lines[3].file, lines[3].line, lines[3].where], ["b.py", "4", "g"]);
});

/** A broker with so many open letters of one group. */
function broker(many) {
  const open = new Set(Array.from({ length: many }, (_, n) => n));
  const asked = [];
  return {
    open,
    asked,
    groups: async () => ({ groups: [group({ count: open.size, first: Math.min(...open) })], end: many }),
    act: async (verb, body) => {
      asked.push(body);
      const found = body.numbers ?? [...open].filter((n) => n >= body.start && n < body.end);
      const page = found.slice(0, body.limit ?? 1000);
      if (!body.dry_run) page.forEach((n) => open.delete(n));
      const rest = found.slice(page.length);
      return { results: page.map((number) => ({ number, done: true, text: verb, fresh: true })), next: rest[0] ?? null };
    },
  };
}

test("everything that is alike is sent, a page at a time", async () => {
  const one = broker(2500);
  const told = [];
  const ended = await carryOut({ verb: "republish", filter: {}, rate: null }, one, (now) => told.push(now.fresh), new AbortController().signal);

  assert.deepEqual([ended.state, ended.total, ended.fresh, one.open.size], ["done", 2500, 2500, 0]);
  assert.deepEqual(one.asked.map((body) => body.start), [0, 1000, 2000]);
  assert.ok(told.includes(1000), "progress is told");
});

test("a rate is kept, and a stop leaves the rest as it is", async () => {
  const one = broker(1000);
  const stopper = new AbortController();
  setTimeout(() => stopper.abort(), 600);
  const began = performance.now();
  const ended = await carryOut({ verb: "republish", filter: {}, rate: 100 }, one, () => {}, stopper.signal);
  const seconds = (performance.now() - began) / 1000;

  assert.equal(ended.state, "stopped");
  assert.equal(rowsOf(100), 20);
  assert.ok(ended.fresh <= 100 * seconds + 20, `${ended.fresh} in ${seconds} s`);
  assert.ok(ended.fresh >= 20);
  assert.equal(one.open.size, 1000 - ended.fresh);
});

test("a dry run asks with the same words and does nothing", async () => {
  const one = broker(10);
  const ended = await carryOut({ verb: "drop", filter: { topic: "t" }, rate: null, reason: "old", dryRun: true }, one, () => {}, new AbortController().signal);

  assert.equal(one.open.size, 10);
  assert.equal(ended.fresh, 10);
  assert.deepEqual(one.asked[0], { filter: { topic: "t" }, start: 0, end: 10, limit: 1000, reason: "old", dry_run: true });
});

test("what goes wrong ends it, with what was done until then", async () => {
  const one = broker(1500);
  const act = one.act;
  let calls = 0;
  one.act = async (...said) => {
    if (++calls > 1) throw new Error("gone");
    return act(...said);
  };
  const ended = await carryOut({ verb: "republish", filter: {}, rate: null }, one, () => {}, new AbortController().signal);

  assert.deepEqual([ended.state, ended.fresh, ended.error.message], ["failed", 1000, "gone"]);
});
