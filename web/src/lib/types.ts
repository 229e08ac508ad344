/** What the API answers. Times are milliseconds since 1970, rates are per second. */

export interface TopicFigures {
  name: string;
  events: number;
  bytes: number;
  in: number;
  out: number;
  lag: number;
  subscriptions: number;
  dead_letters: number;
  spark: number[];
}

export interface Overview {
  at_ms: number;
  uptime_s: number;
  version: string;
  rates: { in: number; out: number; in_bytes: number; out_bytes: number };
  totals: { in: number; out: number };
  lag: number;
  unsettled: number;
  dead_letters: number;
  disk: { used_bytes: number; free_bytes: number };
  sync: { p50_ms: number | null; p95_ms: number | null; commits_s: number };
  connections: Record<string, number>;
  topics_count: number;
  subscriptions_count: number;
  history: { step_s: number; in: number[]; out: number[]; lag: (number | null)[] };
  topics: TopicFigures[];
  more: boolean;
  /** In the stream: whether all topics are here, not only those that changed. */
  whole?: boolean;
}

export interface Flow {
  nodes: {
    id: string;
    kind: "topic" | "subscriber" | "producer";
    name: string;
    rate: number;
    lag?: number;
    state?: string;
  }[];
  edges: {
    from: string;
    to: string;
    kind: "publish" | "deliver" | "cause";
    rate: number;
    count: number;
    types?: Record<string, number>;
  }[];
}

export type SubscriptionState = "connected" | "away" | "unsubscribed" | "suspended";

export interface SubscriptionRow {
  number: number;
  subscriber: string;
  topic: string;
  state: SubscriptionState;
  temporary: boolean;
  position: number;
  lag: number;
  in_flight: number;
  owed: number;
  consumers: number;
}

export interface TopicView {
  name: string;
  number: number;
  start_offset: number;
  end_offset: number;
  events: number;
  bytes: number;
  durability: "sync" | "os";
  subscriptions: number;
  retention_age_s: number | null;
  retention_bytes: number | null;
  compact: boolean;
  segment_bytes: number;
  segment_age_s: number | null;
  levels: number[];
  readers: SubscriptionRow[];
  more_readers: boolean;
  schema_version: number | null;
  schema_type: string;
  documented: boolean;
  comments: number;
}

export interface Event {
  topic: string;
  offset: number;
  id: string;
  timestamp: number;
  priority: number;
  key: string | null;
  key_encoding?: "base64";
  headers: Record<string, string>;
  parent: string | null;
  producer: string | null;
  encoding: "json" | "text" | "base64";
  payload: unknown;
  bytes: number;
  cut?: boolean;
  /** Milliseconds, as not_before; absent: it does not, or at once. */
  expires?: number;
  not_before?: number;
}

export interface EventPage {
  events: Event[];
  next: number | null;
  previous: number | null;
  start_offset: number;
  end_offset: number;
  scanned: number;
  more: boolean;
}

export interface TryRow {
  tries: number;
  at_ms: number;
  duration_s: number | null;
  kind: string;
  message: string;
  traceback: string;
}

export interface Delivery {
  subscriber: string;
  temporary: boolean;
  state: "settled" | "in flight" | "waiting" | "not yet" | "dead letter" | "before";
  tries: number;
  due_ms: number | null;
  errors: TryRow[];
  letter: number | null;
}

export interface EventView {
  event: Event;
  deliveries: Delivery[];
  more_deliveries: boolean;
  letters_cut: boolean;
}

/** `key` and `payload` are base64 of their beginnings. */
export interface ChainEvent {
  topic: string;
  offset: number;
  id: string;
  timestamp: number;
  parent: string | null;
  producer: string | null;
  key: string | null;
  payload: string;
  payload_bytes: number;
  level: number;
  asked: boolean;
}

export interface ChainPage {
  events: ChainEvent[];
  cut: "depth" | "limit" | null;
  behind: number;
  next: number | null;
}

export interface SchemaVersion {
  version: number;
  type: string;
  at_ms: number;
  by: string;
  bytes: number;
}

export interface SchemaView extends SchemaVersion {
  topic: string;
  mode: string;
  schema: string;
  versions: SchemaVersion[];
}

export interface CheckView {
  topic: string;
  version: number | null;
  mode: string;
  problems: { path: string; reason: string }[];
  misfits: { index: number; path: string; reason: string }[];
}

export interface Documentation {
  topic: string;
  text: string;
  at_ms: number | null;
  by: string;
}

export interface CommentRow {
  number: number;
  at_ms: number;
  by: string;
  text: string;
}
