/** Names that gateways make of their clients', in the words of people. */

const CLIENT = "$mqtt/";
const SHARED = "$share/";
/** What an MQTT client is called as the producer of events. */
const PRODUCER = "mqtt/";

/** A subscriber: `$mqtt/ann` is an MQTT client, `$share/g/a/#` a group that shares a filter. */
export function subscriberName(name: string): string {
  if (name.startsWith(CLIENT)) return `mqtt client ${name.slice(CLIENT.length)}`;
  if (!name.startsWith(SHARED)) return name;
  const rest = name.slice(SHARED.length);
  const end = rest.indexOf("/");
  return end < 0 ? name : `shared group ${rest.slice(0, end)}: ${rest.slice(end + 1)}`;
}

export function producerName(name: string): string {
  return name.startsWith(PRODUCER) ? subscriberName(`$${name}`) : name;
}

/** The subscriber that a producer is, if it is one of these. */
export function asSubscriber(producer: string, subscribers: ReadonlySet<string>): string | null {
  if (subscribers.has(producer)) return producer;
  const client = `$${producer}`;
  return producer.startsWith(PRODUCER) && subscribers.has(client) ? client : null;
}
