/**
 * The broker's HTTP API: one function per method, refusals as `Problem`.
 *
 * The session is a cookie that scripts cannot read; what changes something sends the
 * session's CSRF token beside it. A refusal with 401 ends the session here, and the
 * shell shows the login page.
 */
import { Cell } from "./cell";
import { parse } from "./json";

export interface Session {
  scope: "admin" | "use" | "read" | "topics" | "open";
  name?: string;
  csrf?: string;
  expires_ms?: number;
}

export type Query = Record<string, string | number | boolean | null | undefined>;

/** What the broker refused, in its words. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    readonly detail: string,
    /** Name of the error class, for instance "UnknownTopic". */
    readonly error: string = "",
    readonly hint: string = "",
    readonly field: string = "",
  ) {
    super(detail || title);
    this.name = "Problem";
  }

  /** Nobody answered at all. */
  get offline(): boolean {
    return this.status === 0;
  }
}

/** Who is logged in; null: nobody; undefined: not asked yet. */
export const session = new Cell<Session | null | undefined>(undefined);

/** `/v1/…` with every segment encoded: names may hold slashes and spaces. */
export function v1(...segments: (string | number)[]): string {
  return "/v1/" + segments.map((one) => encodeURIComponent(one)).join("/");
}

/** An address with a query; what is null, undefined or "" is left out. */
export function withQuery(path: string, query?: Query): string {
  const said = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== null && value !== undefined && value !== "")
      said.set(name, String(value));
  }
  const text = said.toString();
  return text ? `${path}?${text}` : path;
}

export function get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
  return call<T>("GET", withQuery(path, query), undefined, signal);
}

export function post<T>(path: string, body: unknown = {}): Promise<T> {
  return call<T>("POST", path, body);
}

export function put<T>(path: string, body: unknown): Promise<T> {
  return call<T>("PUT", path, body);
}

export function del<T>(path: string, query?: Query): Promise<T> {
  return call<T>("DELETE", withQuery(path, query));
}

/** Ask who is logged in; raises Problem only if nobody answers. */
export async function whoami(): Promise<Session | null> {
  try {
    session.value = await get<Session>("/v1/session");
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 401) throw error;
    session.value = null;
  }
  return session.peek() ?? null;
}

export async function login(token: string): Promise<void> {
  session.value = await post<Session>("/v1/session", { token });
}

export async function logout(): Promise<void> {
  await del("/v1/session");
  session.value = null;
}

/** Whether this session may change things: administer, that is. */
export function mayWrite(): boolean {
  const scope = session.value?.scope;
  return scope === "admin" || scope === "open";
}

/** Whether it may try to publish: a token for some topics does not say for which. */
export function mayPublish(): boolean {
  return mayWrite() || session.value?.scope === "topics" || session.value?.scope === "use";
}

async function call<T>(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
  again = true,
): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const csrf = session.peek()?.csrf;
  if (method !== "GET" && csrf) headers["X-CSRF-Token"] = csrf;
  let answer: Response;
  try {
    answer = await fetch(path, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      signal: signal ?? null,
      credentials: "same-origin",
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(
      0,
      "No answer",
      "The broker did not answer.",
      "",
      "Is it running? This page tries again by itself.",
    );
  }
  if (answer.ok) {
    const text = await answer.text();
    return (text ? parse(text) : null) as T;
  }
  const problem = await problemOf(answer);
  if (answer.status === 401 && path !== "/v1/session") session.value = null;
  // Another tab may have logged in anew: its session has another CSRF token.
  if (problem.error === "Forged" && again) {
    await whoami();
    return call<T>(method, path, body, signal, false);
  }
  throw problem;
}

async function problemOf(answer: Response): Promise<Problem> {
  try {
    const said = (await answer.json()) as Record<string, unknown>;
    const text = (name: string) =>
      typeof said[name] === "string" ? (said[name] as string) : "";
    return new Problem(
      answer.status,
      text("title") || answer.statusText,
      text("detail"),
      text("error"),
      text("hint"),
      text("field"),
    );
  } catch {
    const said = answer.statusText || "Refused";
    return new Problem(answer.status, said, `The broker said ${answer.status} ${said}.`);
  }
}
