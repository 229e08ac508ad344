import assert from "node:assert/strict";
import { test } from "node:test";
import { source } from "./source.js";

const { asSubscriber, producerName, subscriberName } = await source("lib/who.ts");

test("clients of MQTT and shared groups are called so", () => {
  assert.equal(subscriberName("$mqtt/ann"), "mqtt client ann");
  assert.equal(subscriberName("$mqtt/a/b"), "mqtt client a/b");
  assert.equal(subscriberName("$share/g/a/#"), "shared group g: a/#");
  assert.equal(producerName("mqtt/ann"), "mqtt client ann");
});

test("other names stay as they are", () => {
  for (const name of ["ann", "", "spark:counts", "$control-1", "$share/g", "mqtt/ann"]) {
    assert.equal(subscriberName(name), name);
  }
  assert.equal(producerName("shop"), "shop");
});

test("a client that publishes and subscribes is one", () => {
  const subscribers = new Set(["ann", "$mqtt/bob", "$shop"]);
  assert.equal(asSubscriber("ann", subscribers), "ann");
  assert.equal(asSubscriber("mqtt/bob", subscribers), "$mqtt/bob");
  assert.equal(asSubscriber("mqtt/cy", subscribers), null);
  assert.equal(asSubscriber("shop", subscribers), null);
});
