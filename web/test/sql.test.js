import assert from "node:assert/strict";
import { test } from "node:test";
import { source } from "./source.js";

const { cell, csv, isNumber, quoted } = await source("pages/sql/shapes.ts");

const answer = (names, ...rows) => ({ columns: names.map((name) => ({ name, type: "VARCHAR" })), rows });

test("names that are not plain words stand in quotes", () => {
  assert.deepEqual(["orders", "orders.eu", 'a"b', "7up", "$own"].map(quoted), [
    "orders", '"orders.eu"', '"a""b"', '"7up"', '"$own"',
  ]);
});

test("values are text as they are, and JSON where they have parts", () => {
  assert.deepEqual([null, "", "a", 1.5, true, [1, null], { a: "b" }].map(cell), [
    "", "", "a", "1.5", "true", "[1,null]", '{"a":"b"}',
  ]);
});

test("CSV has quotes where they are needed, and none elsewhere", () => {
  assert.equal(csv(answer(["x", "y,z"], ['say "hi"', "two\nlines"], [null, 3])),
    'x,"y,z"\r\n"say ""hi""","two\nlines"\r\n,3\r\n');
});

test("columns of numbers are told by their type", () => {
  const found = ["BIGINT", "UINTEGER", "HUGEINT", "DECIMAL(9,2)", "DOUBLE", "INTEGER[]", "VARCHAR", "INTERVAL"];

  assert.deepEqual(found.map((type) => isNumber({ name: "x", type })), [true, true, true, true, true, false, false, false]);
});
