/** Modules of the dashboard as they are, in Node: `const { layout } = await source("lib/layout.ts")`. */
import { fileURLToPath } from "node:url";
import { runnerImport } from "vite";

export async function source(path) {
  const file = fileURLToPath(new URL(`../src/${path}`, import.meta.url));
  const { module } = await runnerImport(file, { configFile: false, logLevel: "error" });
  return module;
}

/** Numbers that look random and are the same in every run (mulberry32). */
export function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
