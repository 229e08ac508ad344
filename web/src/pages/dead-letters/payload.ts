/** Payloads to look at and to edit: bytes that came as base64, as text where they are. */

export interface Readable {
  /** What an editor shows. */
  text: string;
  kind: "json" | "text" | "binary";
  /** The JSON value, for kind "json". */
  value?: unknown;
}

const MAX_TREE = 256 << 10;
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"?|[{}[\],:]|[^\s{}[\],:"]+/g;
const TOKEN = /\s*("[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+)/y;

export function bytesOf(base64: string): Uint8Array {
  const plain = atob(base64.replace(/-/g, "+").replace(/_/g, "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

/** Bytes as JSON if they are, as text if they are, else as base64. */
export function readable(base64: string): Readable {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytesOf(base64));
  } catch {
    return { text: base64, kind: "binary" };
  }
  return readableText(text);
}

export function readableText(text: string): Readable {
  if (text.length <= MAX_TREE && /^\s*[[{"\-0-9tfn]/.test(text)) {
    try {
      return { text, kind: "json", value: JSON.parse(text) as unknown };
    } catch {
      // It only looks like JSON.
    }
  }
  return { text, kind: "text" };
}

/** The payload of an event of the API, whichever way it is told. */
export function payloadOf(event: { payload: unknown; encoding?: string }): Readable {
  if (event.encoding === "json") {
    return { text: JSON.stringify(event.payload), kind: "json", value: event.payload };
  }
  if (event.encoding === "text") return readableText(String(event.payload));
  return readable(String(event.payload));
}

/**
 * JSON with a line for each value, so that a difference is one of lines.
 *
 * Only white space is changed: numbers and escapes stay as they were written.
 */
export function laidOut(text: string): string {
  let out = "";
  let depth = 0;
  const line = (): string => "\n" + "  ".repeat(depth);
  const tokens = text.match(TOKENS) ?? [];
  for (const [index, token] of tokens.entries()) {
    const last = tokens[index - 1];
    const empty = (last === "{" && token === "}") || (last === "[" && token === "]");
    if (token === "}" || token === "]") {
      depth = Math.max(0, depth - 1);
      out += empty ? token : line() + token;
    } else if (token === ",") out += token;
    else if (token === ":") out += ": ";
    else {
      if (last === "{" || last === "[" || last === ",") out += line();
      out += token;
      if (token === "{" || token === "[") depth++;
    }
  }
  return out;
}

/** Why a text is no JSON, or null if it is. */
export function problemOf(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** JSON without the white space that `laidOut` gave it. */
export function packed(text: string): string {
  return (text.match(TOKENS) ?? []).join("");
}

/**
 * A value within a JSON text, as it is written there; null if there is none.
 *
 * Parsed and written again, an integer beyond 2^53 would be another one.
 */
export function sourceOf(text: string, path: readonly string[]): string | null {
  let at = 0;
  const next = (): string => {
    TOKEN.lastIndex = at;
    const found = TOKEN.exec(text);
    at = TOKEN.lastIndex;
    return found?.[1] ?? "";
  };
  const skip = (): void => {
    let depth = 0;
    do {
      const token = next();
      if (token === "") return;
      if (token === "{" || token === "[") depth++;
      if (token === "}" || token === "]") depth--;
    } while (depth > 0);
  };
  for (const name of path) {
    if (next() !== "{") return null;
    for (;;) {
      const key = next();
      if (!key.startsWith('"') || next() !== ":") return null;
      if (JSON.parse(key) === name) break;
      skip();
      if (next() !== ",") return null;
    }
  }
  const from = at;
  skip();
  return text.slice(from, at).trim();
}
