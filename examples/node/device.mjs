// A device that speaks MQTT, and a page of its history over HTTP.
//
//   MQTT=mqtt://127.0.0.1:1883 URL=http://127.0.0.1:8420 TOKEN=... node device.mjs
import { on } from "node:events";
import mqtt from "mqtt";

const { MQTT = "mqtt://127.0.0.1:1883", URL = "http://127.0.0.1:8420", TOKEN } = process.env;
const topic = "home/kitchen/temp";

// A session that is kept: what comes while the display is away waits for it.
const session = { clientId: "display-1", clean: false, protocolVersion: 5, properties: { sessionExpiryInterval: 3600 } };
const display = await mqtt.connectAsync(MQTT, session);
await display.subscribeAsync("home/+/temp", { qos: 2 });
await display.endAsync();

const sensor = await mqtt.connectAsync(MQTT, { clientId: "sensor-7" });
for (const degrees of [20.5, 21, 21.5]) {
  // Resolved when the broker has it on disk, and exactly once.
  await sensor.publishAsync(topic, JSON.stringify({ degrees }), { qos: 2, retain: true });
}
await sensor.endAsync();
console.log("published 3 readings with QoS 2");

const again = mqtt.connect(MQTT, session);
let count = 0;
for await (const [from, payload] of on(again, "message")) {
  console.log(`${from}: ${JSON.parse(payload).degrees} degrees`);
  if (++count === 3) break;
}
await again.endAsync();

// The topic is a log: its history is there for whoever asks, long after delivery.
const reply = await fetch(`${URL}/v1/topics/${encodeURIComponent(topic)}/events?offset=0`, {
  headers: { Authorization: `Bearer ${TOKEN}` },
});
const page = await reply.json();
console.log(`HTTP: ${page.events.length} events in ${topic}, the last at offset ${page.events.at(-1).offset}`);
