/** What the API tells of processes and settings. */

export interface ProcessRow {
  name: string;
  pid: number | null;
  /** Share of one core. */
  cpu: number | null;
  memory_bytes: number | null;
  threads: number | null;
  uptime_s: number | null;
  restarts: number | null;
  state: string;
}

export interface Processes {
  processes: ProcessRow[];
  versions: Record<string, string | null>;
  machine: { cores: number; memory_bytes: number };
}

export interface Setting {
  key: string;
  value: unknown;
  default: unknown;
  origin: string;
  help: string;
}

export function textOf(value: unknown): string {
  if (value === null || value === undefined) return "none";
  if (typeof value === "string") return value === "" ? "empty" : value;
  if (Array.isArray(value)) return value.length ? value.map(textOf).join(", ") : "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export const KEPT = 60;

/** CPU and memory of each process as this page has seen them, the newest last. */
export function remember(
  known: ReadonlyMap<string, { cpu: number[]; memory: number[] }>,
  rows: readonly ProcessRow[],
): Map<string, { cpu: number[]; memory: number[] }> {
  return new Map(
    rows.map((row) => {
      const before = known.get(row.name) ?? { cpu: [], memory: [] };
      return [
        row.name,
        {
          cpu: [...before.cpu, row.cpu ?? 0].slice(-KEPT),
          memory: [...before.memory, row.memory_bytes ?? 0].slice(-KEPT),
        },
      ];
    }),
  );
}
