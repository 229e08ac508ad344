/**
 * A value that components react to, kept in a plain module.
 *
 * Reading `cell.value` inside a template, `$derived` or `$effect` subscribes;
 * anywhere else it is a plain read. `start` runs while somebody is subscribed.
 */
import { createSubscriber } from "svelte/reactivity";

export class Cell<T> {
  #value: T;
  #changed: (() => void) | null = null;
  #subscribe: () => void;

  constructor(value: T, start?: () => (() => void) | void) {
    this.#value = value;
    this.#subscribe = createSubscriber((changed) => {
      this.#changed = changed;
      const stop = start?.();
      return () => {
        this.#changed = null;
        stop?.();
      };
    });
  }

  get value(): T {
    this.#subscribe();
    return this.#value;
  }

  set value(next: T) {
    if (Object.is(next, this.#value)) return;
    this.#value = next;
    this.#changed?.();
  }

  /** The value, without subscribing. */
  peek(): T {
    return this.#value;
  }
}
