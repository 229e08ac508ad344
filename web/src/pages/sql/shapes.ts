/** Answers of the question box as text: names, cells, CSV; and what was asked before. */
import { spelling } from "../../lib/json";

export interface Column {
  name: string;
  type: string;
}
export interface Answer {
  columns: Column[];
  rows: unknown[][];
  /** Which limit left out the rest. */
  cut: "rows" | "bytes" | null;
  notes: string[];
  seconds: number;
}
export interface Topics {
  topics: string[];
  more: boolean;
  limits: { seconds: number; memory_bytes: number; rows: number; answer_bytes: number };
}

const KEY = "penstock-sql"; // in the storage of this browser
const KEPT = 20;
const NUMBER = /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|FLOAT|DECIMAL.*)$/;

/** A name as it stands in SQL: bare if it is a plain word. */
export function quoted(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

export const isNumber = (column: Column): boolean => NUMBER.test(column.type);

/** A type in the shorter of its words. */
export const shortType = (type: string): string =>
  type.replaceAll("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ");

/** A value as text; NULL is said by whoever shows it. */
export function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  return spelling(value) ?? JSON.stringify(value);
}

/** As RFC 4180 has it. */
export function csv(answer: Answer): string {
  const lines = [answer.columns.map((one) => one.name), ...answer.rows];
  return lines.map((line) => line.map(field).join(",") + "\r\n").join("");
}

function field(value: unknown): string {
  const text = cell(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Questions that were asked in this browser, the last one first. */
export function remembered(): string[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one === "string").slice(0, KEPT) : [];
  } catch {
    return [];
  }
}

export function remember(query: string): string[] {
  const kept = [query, ...remembered().filter((one) => one !== query)].slice(0, KEPT);
  try {
    localStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    // It is full, or nobody may: then it is not remembered.
  }
  return kept;
}

export function forget(): string[] {
  localStorage.removeItem(KEY);
  return [];
}
