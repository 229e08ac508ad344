/** What the desk asks of the broker, and the one task that may be under way. */
import { get, post, Problem, v1, withQuery } from "../../lib/api";
import { Cell } from "../../lib/cell";
import type { AuditRow, Done, DonePage, Filter, GroupRow, LetterRow, LetterView } from "./letters";
import { payloadOf, sourceOf, type Readable } from "./payload";
import { allGroups, carryOut, begun, type Asking, type Standing, type Task } from "./work";

const LETTERS = v1("dead-letters");

export function groups(filter: Filter = {}, signal?: AbortSignal): Promise<{ groups: GroupRow[]; end: number }> {
  return allGroups(
    (which, start, end) => get(said(v1("dead-letters", "groups"), which, { start, end }), {}, signal),
    filter,
  );
}

export interface LetterPage {
  letters: LetterRow[];
  /** In front of which there are others. */
  next: number | null;
}

/** Open letters in front of a number (null: all), the newest first. */
export function letters(
  filter: Filter,
  end: number | null,
  limit: number,
  signal?: AbortSignal,
): Promise<LetterPage> {
  return get(said(LETTERS, filter, { end, limit, newest: true }), {}, signal);
}

/** Letters that are not open any more, the newest first. */
export function closedLetters(filter: Filter, end: number | null, limit: number, signal?: AbortSignal): Promise<LetterPage> {
  return get(said(LETTERS, filter, { end, limit, newest: true, status: "done" }), {}, signal);
}

export function letter(number: number, signal?: AbortSignal): Promise<LetterView> {
  return get(v1("dead-letters", number), {}, signal);
}

export function audit(
  before: number | null,
  limit: number,
  signal?: AbortSignal,
): Promise<{ entries: AuditRow[]; next: number | null }> {
  return get(v1("dead-letters", "audit"), { before, limit }, signal);
}

/** The payload to edit, exactly as it is stored. */
export async function payloadToEdit(view: LetterView): Promise<Readable> {
  const event = view.event!;
  const known = payloadOf(event);
  // Only long numbers are not what they were after they were parsed.
  if (event.encoding !== "json") return known;
  const answer = await fetch(v1("dead-letters", view.number), { credentials: "same-origin" });
  const text = answer.ok ? sourceOf(await answer.text(), ["event", "payload"]) : null;
  if (text === null) throw new Problem(answer.status, "No payload", "The payload could not be read as it is stored.");
  return { ...known, text };
}

export async function republishOne(number: number, dryRun: boolean): Promise<Done> {
  const body = { numbers: [number], ...(dryRun ? { dry_run: true } : {}) };
  const page = await post<DonePage>(v1("dead-letters", "republish"), body);
  return page.results[0]!;
}

export async function dropOne(number: number, reason: string): Promise<Done> {
  const page = await post<DonePage>(v1("dead-letters", "drop"), { numbers: [number], reason });
  return page.results[0]!;
}

/** Send an event with another payload, exactly these bytes. */
export function edit(
  number: number,
  payload: { text: string } | { base64: string },
  reason: string,
  dryRun: boolean,
): Promise<Done> {
  const body = { ...payload, reason, ...(dryRun ? { dry_run: true } : {}) };
  return post(v1("dead-letters", number, "edit"), body);
}

export const asking: Asking = {
  groups: (filter) => groups(filter),
  act: (verb, body) => post<DonePage>(v1("dead-letters", verb), body),
};

/** Tell what a task would do, without doing it. */
export function rehearse(task: Task, told: (one: Standing) => void, signal: AbortSignal): Promise<Standing> {
  return carryOut({ ...task, dryRun: true, rate: null }, asking, told, signal);
}

export interface Job {
  task: Task;
  /** What it is about, in words. */
  about: string;
  standing: Standing;
  began: number;
}

/** The task under way, or the last one until it is put away: it outlives the page. */
export const job = new Cell<Job | null>(null);
let stopper: AbortController | null = null;

export function start(task: Task, about: string): Promise<Standing> {
  const signal = (stopper = new AbortController()).signal;
  const began = Date.now();
  job.value = { task, about, standing: begun(), began };
  addEventListener("beforeunload", warn);
  const told = (standing: Standing): void => {
    job.value = { task, about, standing, began };
  };
  return carryOut(task, asking, told, signal).finally(() => removeEventListener("beforeunload", warn));
}

export function stop(): void {
  stopper?.abort();
}

/** Forget a task that has ended. */
export function putAway(): void {
  if (job.peek()?.standing.state !== "running") job.value = null;
}

function warn(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

/** An address with a filter: an empty kind of error is one to be said, too. */
function said(path: string, filter: Filter, more: Record<string, number | string | boolean | null>): string {
  const { error, ...rest } = filter;
  const address = withQuery(path, { ...rest, ...more });
  if (error === undefined) return address;
  return `${address}${address.includes("?") ? "&" : "?"}error=${encodeURIComponent(error)}`;
}
