/**
 * What the broker tells once a second, by ONE EventSource for the whole page.
 *
 * It is open while a component reads from `live`, and closed while the tab is hidden:
 * browsers allow six connections to a host, over all tabs. Frames are merged here and
 * shown at most once a second. When the stream breaks, it is opened again, slower and
 * slower up to 10 s; `live.state` says so and the shell shows a banner.
 */
import { Cell } from "./cell";
import { session, whoami, withQuery } from "./api";
import type { Flow, Overview, TopicFigures } from "./types";

const HIDDEN_MS = 5_000;
const PATIENCE_MS = 6_000; // a frame a second is due; then the stream is taken for dead
const RETRY_MS = [500, 1_000, 2_000, 5_000, 10_000];
const KEPT_POINTS = 600;

export type LiveState = "connecting" | "open" | "lost";

export interface History {
  /** Seconds since 1970, one for each value. */
  at: number[];
  in: number[];
  out: number[];
  lag: (number | null)[];
}

let source: EventSource | null = null;
let wanted = 0;
let flowWanted = 0;
let failures = 0;
let retry: ReturnType<typeof setTimeout> | undefined;
let watchdog: ReturnType<typeof setTimeout> | undefined;
let hiding: ReturnType<typeof setTimeout> | undefined;

const overview = new Cell<Overview | null>(null, want);
const flow = new Cell<Flow | null>(null, () => {
  flowWanted += 1;
  const stop = want();
  if (flowWanted === 1) reopen();
  return () => {
    flowWanted -= 1;
    stop();
    if (flowWanted === 0 && wanted) reopen();
  };
});
const state = new Cell<LiveState>("connecting");
/** Counts openings after a loss: what was loaded before may be old. */
const epoch = new Cell(0);

const history: History = { at: [], in: [], out: [], lag: [] };

export const live = {
  /** The newest figures, all topics merged; null before the first frame. */
  get overview(): Overview | null {
    return overview.value;
  },
  /** The map; while somebody reads it the stream carries it as well. */
  get flow(): Flow | null {
    return flow.value;
  },
  get state(): LiveState {
    return state.value;
  },
  get epoch(): number {
    return epoch.value;
  },
  /** Rates and lag of up to ten minutes, as long as this page has been open. */
  get history(): History {
    void overview.value;
    return history;
  },
  /** Figures of one topic, if it is among the most active. */
  topic(name: string): TopicFigures | undefined {
    return overview.value?.topics.find((row) => row.name === name);
  },
  /** Try at once instead of waiting for the next try. */
  retry(): void {
    failures = 0;
    reopen();
  },
};

function want(): () => void {
  wanted += 1;
  if (wanted === 1) {
    document.addEventListener("visibilitychange", seen);
    open();
  }
  return () => {
    wanted -= 1;
    if (wanted === 0) {
      document.removeEventListener("visibilitychange", seen);
      close();
    }
  };
}

function seen(): void {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(close, HIDDEN_MS);
  else if (!source && wanted) open();
}

function open(): void {
  close();
  // Figures are for those who may read everything.
  if (document.hidden || !session.peek() || session.peek()?.scope === "topics") return;
  const query = { topics: 1, flow: flowWanted ? 1 : undefined };
  source = new EventSource(withQuery("/v1/live", query));
  source.addEventListener("overview", (frame) => {
    received();
    const told = JSON.parse(frame.data) as Overview;
    overview.value = merged(overview.peek(), told);
    remember(told);
  });
  source.addEventListener("flow", (frame) => {
    received();
    flow.value = JSON.parse(frame.data) as Flow;
  });
  source.onerror = lose;
  watch();
}

function close(): void {
  clearTimeout(retry);
  clearTimeout(watchdog);
  source?.close();
  source = null;
}

function reopen(): void {
  if (wanted) open();
}

function received(): void {
  if (state.peek() === "lost") epoch.value = epoch.peek() + 1;
  failures = 0;
  state.value = "open";
  watch();
}

function watch(): void {
  clearTimeout(watchdog);
  watchdog = setTimeout(lose, PATIENCE_MS);
}

function lose(): void {
  close();
  if (!wanted) return;
  state.value = "lost";
  const wait = RETRY_MS[Math.min(failures, RETRY_MS.length - 1)];
  failures += 1;
  retry = setTimeout(() => {
    // The stream does not say why it was refused: perhaps nobody is logged in.
    whoami().then(
      () => reopen(),
      () => lose(),
    );
  }, wait);
}

/** A frame holds the rows that changed; the others stay as they were. */
function merged(before: Overview | null, told: Overview): Overview {
  if (!before || told.whole) return told;
  const rows = new Map(before.topics.map((row) => [row.name, row]));
  for (const row of told.topics) rows.set(row.name, row);
  return { ...before, ...told, topics: [...rows.values()] };
}

/** Every frame has the last minute: what is new of it, also after a pause. */
function remember(told: Overview): void {
  const now = Math.floor(told.at_ms / 1000);
  const { in: ins, out, lag, step_s: step } = told.history;
  ins.forEach((value, index) => {
    const at = now - (ins.length - 1 - index) * step;
    if (at > (history.at.at(-1) ?? 0)) push(at, value, out[index], lag[index]);
  });
}

function push(at: number, ins: number, out = 0, lag: number | null = null): void {
  for (const [list, value] of [
    [history.at, at],
    [history.in, ins],
    [history.out, out],
    [history.lag, lag],
  ] as const) {
    (list as (number | null)[]).push(value);
    if (list.length > KEPT_POINTS) list.shift();
  }
}
