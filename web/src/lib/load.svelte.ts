/**
 * Something loaded from the API that is shown while it is loaded again.
 *
 *     const topic = load(() => get<TopicView>(v1("topics", name)));
 *
 * Runs again when what the function reads (before its first await) changes; an answer
 * that comes too late is dropped. `value` stays while a new one is on its way, so
 * nothing flickers; `fresh: true` empties it when the key changes.
 */
import { untrack } from "svelte";
import { Problem } from "./api";

export interface Loaded<T> {
  readonly value: T | undefined;
  readonly problem: Problem | null;
  readonly loading: boolean;
  /** Ask again. */
  reload(): Promise<void>;
  /** Show this until the next answer, for instance what was just written. */
  set(value: T): void;
}

export function load<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  options: { key?: () => unknown } = {},
): Loaded<T> {
  let value = $state.raw<T | undefined>(undefined);
  let problem = $state.raw<Problem | null>(null);
  let loading = $state(true);
  let running: AbortController | null = null;

  async function run(): Promise<void> {
    running?.abort();
    const mine = (running = new AbortController());
    loading = true;
    try {
      const answer = await ask(mine.signal);
      if (mine !== running) return;
      value = answer;
      problem = null;
    } catch (error) {
      if (mine !== running) return;
      if (error instanceof DOMException && error.name === "AbortError") return;
      problem =
        error instanceof Problem
          ? error
          : new Problem(0, "Unexpected answer", String(error));
    } finally {
      if (mine === running) loading = false;
    }
  }

  $effect(() => {
    options.key?.();
    untrack(() => {
      if (options.key) value = undefined;
    });
    void run();
    return () => running?.abort();
  });

  return {
    get value() {
      return value;
    },
    get problem() {
      return problem;
    },
    get loading() {
      return loading;
    },
    reload: () => untrack(run),
    set(next: T) {
      value = next;
      problem = null;
    },
  };
}
