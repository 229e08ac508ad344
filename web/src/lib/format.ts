/** Numbers, sizes and times for people; the exact value belongs in a title. */
import { Cell } from "./cell";

const THIN = "\u202f"; // narrow no-break space
const NONE = "–";

/** 950, 9 870, 12.3 k, 4.56 M */
export function count(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (size < 10_000) return grouped(Math.round(value));
  return scaled(value, 1000, ["k", "M", "G", "T", "P"]);
}

/** A rate a second: small ones keep a decimal. */
export function rate(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  if (value === 0) return "0";
  if (value < 0.1) return "<0.1";
  if (value < 10) return value.toFixed(1).replace(/\.0$/, "");
  return count(value);
}

/** 512 B, 1.2 KiB, 3.4 GiB */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  if (Math.abs(value) < 1024) return `${Math.round(value)}${THIN}B`;
  return scaled(value, 1024, ["KiB", "MiB", "GiB", "TiB", "PiB"]);
}

/** The number itself, with groups of three. */
export function exact(value: number | null | undefined, unit = ""): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "unknown";
  const text = Number.isInteger(value) ? grouped(value) : String(+value.toPrecision(6));
  return unit ? `${text} ${unit}` : text;
}

/** 0.4 ms, 12 ms, 1.2 s, 3 min, 5 h, 2 d */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds))
    return NONE;
  const size = Math.abs(seconds);
  if (size === 0) return `0${THIN}s`;
  if (size < 0.9995) return `${short(seconds * 1000)}${THIN}ms`;
  if (size < 60) return `${short(seconds)}${THIN}s`;
  if (size < 3600) return twofold(seconds, 60, "min", "s");
  if (size < 86_400) return twofold(seconds / 60, 60, "h", "min");
  return twofold(seconds / 3600, 24, "d", "h");
}

export function milliseconds(value: number | null | undefined): string {
  return value === null || value === undefined ? NONE : duration(value / 1000);
}

export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return NONE;
  return `${short(share * 100)}${THIN}%`;
}

/** 2026-11-16 09:51:02.123, in the reader's time zone. */
export function time(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "unknown";
  const at = new Date(ms);
  if (Number.isNaN(at.getTime())) return String(ms);
  return `${day(at)} ${clockTime(ms)}`;
}

/** 09:51:02.123 */
export function clockTime(ms: number): string {
  const at = new Date(ms);
  const thousandths = String(at.getMilliseconds()).padStart(3, "0");
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${thousandths}`;
}

/** now, 12 s ago, 3 min ago, 2 h ago, 16 Nov; "in …" for what is to come. */
export function ago(ms: number | null | undefined, now: number): string {
  if (ms === null || ms === undefined) return NONE;
  const seconds = (now - ms) / 1000;
  const size = Math.abs(seconds);
  if (size < 2) return "now";
  let text: string;
  if (size < 60) text = `${Math.floor(size)}${THIN}s`;
  else if (size < 3600) text = `${Math.floor(size / 60)}${THIN}min`;
  else if (size < 86_400) text = `${Math.floor(size / 3600)}${THIN}h`;
  else if (size < 30 * 86_400) text = `${Math.floor(size / 86_400)}${THIN}d`;
  else return day(new Date(ms));
  return seconds < 0 ? `in ${text}` : `${text} ago`;
}

/** "1 event", "5 events" */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** One line of JSON or text, for lists. */
export function preview(payload: unknown, encoding = "json", most = 240): string {
  const text = encoding === "json" ? JSON.stringify(payload) : String(payload ?? "");
  const line = (text ?? "").slice(0, most * 2).replace(/\s+/g, " ");
  return line.length > most ? line.slice(0, most) + "…" : line;
}

/** The time now, which moves every second while somebody looks at it. */
export const now = new Cell(Date.now(), () => {
  const tick = () => {
    if (!document.hidden) now.value = Date.now();
  };
  tick();
  const timer = setInterval(tick, 1000);
  document.addEventListener("visibilitychange", tick);
  return () => {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", tick);
  };
});

function scaled(value: number, base: number, units: string[]): string {
  let step = -1;
  let left = value;
  while (Math.abs(left) >= base * 0.9995 && step < units.length - 1) {
    left /= base;
    step += 1;
  }
  return `${short(left)}${THIN}${units[step]}`;
}

/** Three significant digits. */
function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 100) return grouped(Math.round(value));
  return value.toFixed(size >= 10 ? 1 : 2).replace(/\.?0+$/, "");
}

function twofold(value: number, base: number, big: string, small: string): string {
  const whole = Math.floor(Math.abs(value) / base);
  const rest = Math.floor(Math.abs(value) % base);
  return rest && whole < 10
    ? `${whole}${THIN}${big} ${rest}${THIN}${small}`
    : `${whole}${THIN}${big}`;
}

function grouped(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, THIN);
}

function day(at: Date): string {
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
