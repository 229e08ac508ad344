/**
 * JSON with numbers as they are spelt: an id of 19 digits must not lose its last three.
 *
 * A number that the browser cannot hold becomes `JSON.rawJSON`, which JSON.stringify
 * writes as it was. Older browsers round it, as they always did.
 */

interface Raw {
  rawJSON: string;
}
interface Modern {
  rawJSON?: (text: string) => Raw;
  isRawJSON?: (value: unknown) => value is Raw;
  parse(
    text: string,
    revive: (key: string, value: unknown, context?: { source?: string }) => unknown,
  ): unknown;
}

const modern = JSON as unknown as Modern;
const LONG = /\d{16}/;

export function parse(text: string): unknown {
  const raw = modern.rawJSON;
  if (!raw || !LONG.test(text)) return JSON.parse(text);
  return modern.parse(text, (_key, value, context) => {
    const source = context?.source;
    if (typeof value !== "number" || source === undefined) return value;
    return source.length < 16 || String(value) === source ? value : raw(source);
  });
}

/** The spelling of a number that the browser cannot hold; null for anything else. */
export function spelling(value: unknown): string | null {
  return modern.isRawJSON?.(value) ? value.rawJSON : null;
}
