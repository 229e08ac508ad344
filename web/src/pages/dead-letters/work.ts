/**
 * Many letters sent again or dropped, some at a time, at a rate if one is given.
 *
 * It ends with the last letter there was when it began: what fails again meanwhile is a
 * new letter. Stopped or cut off, nothing is lost or sent twice: run it again.
 */

import type { Done, DonePage, Filter, GroupRow } from "./letters";
import { merged } from "./letters";

export type Verb = "republish" | "drop";

export interface Task {
  verb: Verb;
  /** Letters that a filter takes, or these. */
  filter?: Filter;
  numbers?: readonly number[];
  /** For each second; null: as fast as it goes. */
  rate: number | null;
  reason?: string;
  dryRun?: boolean;
}

export interface Standing {
  total: number;
  /** Done now, done before, and not to be done. */
  fresh: number;
  before: number;
  failed: number;
  state: "running" | "stopped" | "done" | "failed";
  error: unknown;
  results: Done[];
}

export interface Asking {
  groups(filter: Filter): Promise<{ groups: GroupRow[]; end: number }>;
  act(verb: Verb, body: Record<string, unknown>): Promise<DonePage>;
}

export const MAX_ROWS = 1000;
// Results are kept to be shown; beyond that they are only counted.
const MAX_RESULTS = 5000;
// A question takes some time, so a rate is kept by few questions a second.
const QUESTIONS_S = 5;

export function begun(): Standing {
  return { total: 0, fresh: 0, before: 0, failed: 0, state: "running", error: null, results: [] };
}

export const seen = (one: Standing): number => one.fresh + one.before + one.failed;

/** How many letters one question is about. */
export function rowsOf(rate: number | null): number {
  if (rate === null) return MAX_ROWS;
  return Math.min(MAX_ROWS, Math.max(1, Math.floor(rate / QUESTIONS_S)));
}

/** All groups of a filter: a page tells of some letters only. */
export async function allGroups(
  page: (filter: Filter, start: number, end: number | null) => Promise<{ groups: GroupRow[]; next: number | null; end: number }>,
  filter: Filter,
): Promise<{ groups: GroupRow[]; end: number }> {
  const found: GroupRow[] = [];
  let start: number | null = 0;
  let end: number | null = null;
  while (start !== null) {
    const part = await page(filter, start, end);
    found.push(...part.groups);
    start = part.next;
    end = part.end;
  }
  return { groups: merged(found), end: end ?? 0 };
}

/** Carry a task out; `told` hears of every step, `signal` stops it between two. */
export async function carryOut(
  task: Task,
  asking: Asking,
  told: (standing: Standing) => void,
  signal: AbortSignal,
): Promise<Standing> {
  let standing = begun();
  const change = (more: Partial<Standing>): void => told((standing = { ...standing, ...more }));
  try {
    const pages = task.numbers ? byNumber(task) : byFilter(task, asking);
    const pace = new Pace(task.rate);
    let page: DonePage | undefined;
    for (;;) {
      await pace.wait(signal);
      if (signal.aborted) break;
      const step: IteratorResult<Step, void> = await pages.next(page);
      if (step.done) break;
      if (step.value.total !== undefined) {
        change({ total: step.value.total });
        page = undefined;
        continue;
      }
      page = await asking.act(task.verb, { ...step.value.body, ...saidOf(task) });
      pace.spend(page.results.filter((one) => one.fresh).length);
      change(counted(standing, page.results));
    }
    change({ state: signal.aborted ? "stopped" : "done" });
  } catch (error) {
    change({ state: "failed", error });
  }
  return standing;
}

interface Step {
  total?: number;
  body?: Record<string, unknown>;
}

async function* byNumber(task: Task): AsyncGenerator<Step, void, DonePage | undefined> {
  const numbers = [...new Set(task.numbers)];
  yield { total: numbers.length };
  const rows = rowsOf(task.rate);
  for (let at = 0; at < numbers.length; at += rows) {
    yield { body: { numbers: numbers.slice(at, at + rows) } };
  }
}

async function* byFilter(task: Task, asking: Asking): AsyncGenerator<Step, void, DonePage | undefined> {
  const filter = task.filter ?? {};
  const { groups, end } = await asking.groups(filter);
  // Raw input has nowhere to go.
  const meant = task.verb === "republish" ? groups.filter((one) => one.subscriber !== null) : groups;
  yield { total: meant.reduce((sum, one) => sum + one.count, 0) };
  let start: number | null = meant.length > 0 ? Math.min(...meant.map((one) => one.first)) : null;
  while (start !== null) {
    const page: DonePage | undefined = yield {
      body: { filter, start, end, limit: rowsOf(task.rate) },
    };
    start = page?.next ?? null;
  }
}

function saidOf(task: Task): Record<string, unknown> {
  return {
    ...(task.verb === "drop" ? { reason: task.reason ?? "" } : {}),
    ...(task.dryRun ? { dry_run: true } : {}),
  };
}

function counted(standing: Standing, results: readonly Done[]): Partial<Standing> {
  return {
    fresh: standing.fresh + results.filter((one) => one.fresh).length,
    before: standing.before + results.filter((one) => one.done && !one.fresh).length,
    failed: standing.failed + results.filter((one) => !one.done).length,
    results: standing.results.length < MAX_RESULTS ? [...standing.results, ...results] : standing.results,
  };
}

/** Waits so that not more than a rate is spent; even, and without catching up. */
class Pace {
  private due = 0;

  constructor(private readonly rate: number | null) {}

  spend(count: number): void {
    if (this.rate !== null) {
      this.due = Math.max(this.due, performance.now()) + (count / this.rate) * 1000;
    }
  }

  wait(signal: AbortSignal): Promise<void> {
    const left = this.due - performance.now();
    if (left <= 0 || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(end, left);
      function end(): void {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        resolve();
      }
      signal.addEventListener("abort", end);
    });
  }
}
