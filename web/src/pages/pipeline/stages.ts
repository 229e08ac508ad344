/** The stages of `penstock up`, in the order an event passes them. */

export interface Stage {
  name: string;
  state: string;
  events: number | null;
  rate: number | null;
  lag: number | null;
  restarts: number | null;
  errors: number | null;
  note: string | null;
}

export interface Told {
  running: boolean;
  stages: Stage[];
  at_ms: number | null;
}

const ORDER = ["source", "ingest", "broker", "spark", "store", "cdc"];

export function inOrder(stages: readonly Stage[]): Stage[] {
  const place = (one: Stage): number => {
    const at = ORDER.indexOf(one.name);
    return at < 0 ? ORDER.length : at;
  };
  return [...stages].sort((a, b) => place(a) - place(b));
}

/** "subscriber tweets" is two words: what it is, and of what. */
export function titleOf(name: string): [string, string] {
  const [kind = name, ...rest] = name.split(" ");
  return [kind, rest.join(" ")];
}

export function kindOf(state: string): "good" | "warn" | "bad" | "plain" {
  if (["ready", "running", "done"].includes(state)) return "good";
  if (["failed", "dead", "away", "ended"].includes(state)) return "bad";
  return "warn";
}

const ABOUT: Record<string, string> = {
  source: "makes up tweets",
  ingest: "takes streams in",
  broker: "keeps all of it",
  spark: "parses, feels, counts",
  store: "documents",
  cdc: "changes as events",
  subscriber: "acknowledges",
};

export const aboutOf = (name: string): string => ABOUT[titleOf(name)[0]] ?? "";
