/**
 * Topics of the pipeline read by asking now and then, not by streams of their own:
 * browsers allow six connections to a host, over all tabs, and figures come every few
 * seconds only.
 */
import { get, Problem, v1 } from "../../lib/api";
import type { Event, EventPage } from "../../lib/types";

const MOST = 1000;
/** Events of one look; the rest comes with the next one, or is jumped over. */
const BEHIND = 5 * MOST;

/** The first of the topics that are read here, by name; what is behind it may be more. */
const FIRST = "hashtag_stat";

/**
 * Which topics there are: to ask for events of one that is not would be an error of
 * this page, and one on the console of the browser.
 */
export class Presence {
  #known = new Set<string>();

  constructor(readonly wanted: readonly string[]) {}

  has(topic: string): boolean {
    return this.#known.has(topic);
  }

  /** Look again, unless all of them were seen. */
  async look(): Promise<void> {
    if (this.wanted.every((one) => this.#known.has(one))) return;
    const page = await get<{ topics: { name: string }[] }>(v1("topics"), { after: FIRST, limit: MOST });
    this.#known = new Set(page.topics.map((one) => one.name));
  }

  /** One of them is gone. */
  forget(): void {
    this.#known.clear();
  }
}

export class Follower {
  #next: number | null = null;

  constructor(
    readonly topic: string,
    /** How far to look back at first. */
    readonly tail: number,
    readonly presence: Presence,
  ) {}

  /** What came since the last call; at first the tail. Null: there is no such topic. */
  async look(): Promise<Event[] | null> {
    if (!this.presence.has(this.topic)) return null;
    try {
      const page = await this.#page();
      const last = page.events.at(-1);
      this.#next = last ? last.offset + 1 : Math.max(this.#next ?? 0, page.start_offset);
      return page.events;
    } catch (error) {
      if (error instanceof Problem && error.status === 404) {
        this.#next = null;
        this.presence.forget();
        return null;
      }
      throw error;
    }
  }

  async #page(): Promise<EventPage> {
    const path = v1("topics", this.topic, "events");
    const tail = Math.min(this.tail, MOST);
    if (this.#next === null) return get<EventPage>(path, { tail, limit: tail });
    const page = await get<EventPage>(path, { offset: this.#next, limit: MOST });
    // Whoever was away for long sees the newest, not everything.
    if (page.end_offset - this.#next > BEHIND) return get<EventPage>(path, { tail, limit: tail });
    return page;
  }
}

/** Some events at each of so many places of a topic, the oldest first. */
export async function samples(
  topic: string,
  places: number,
  each: number,
  told: (events: Event[]) => void,
  signal: AbortSignal,
): Promise<void> {
  const path = v1("topics", topic, "events");
  const { start_offset: start, end_offset: end } = await get<EventPage>(path, { tail: 1, limit: 1 }, signal);
  const step = Math.max(each, Math.floor((end - start) / places));
  for (let offset = start; offset < end && !signal.aborted; offset += step) {
    const page = await get<EventPage>(path, { offset, limit: each }, signal);
    if (page.events.length > 0) told(page.events);
  }
}
