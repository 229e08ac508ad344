import { existsSync, renameSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vite";

const broker = process.env.PENSTOCK_URL ?? "http://127.0.0.1:8420";
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Into the package in one step: a broker that runs never sees half of a build. */
function place(): Plugin {
  const [made, wanted, old] = [here("dist"), here("../src/penstock/http/static"), here("dist.old")];
  let failed = false;
  return {
    name: "place",
    apply: "build",
    buildEnd(error) {
      failed = error !== undefined;
    },
    closeBundle() {
      if (failed) return;
      rmSync(old, { recursive: true, force: true });
      if (existsSync(wanted)) renameSync(wanted, old);
      renameSync(made, wanted);
      rmSync(old, { recursive: true, force: true });
    },
  };
}

export default defineConfig({
  plugins: [svelte(), place()],
  build: {
    outDir: "dist",
    emptyOutDir: true,
    // What knows light-dark() and what we write: no older syntax is made.
    target: ["chrome123", "firefox125", "safari17.5"],
    modulePreload: { polyfill: false },
    // Nothing as a data: address, which the page's policy does not allow.
    assetsInlineLimit: 0,
    rolldownOptions: { checks: { pluginTimings: false, bundlerTimings: false } },
  },
  server: { proxy: { "/v1": broker, "/openapi.json": broker } },
});
