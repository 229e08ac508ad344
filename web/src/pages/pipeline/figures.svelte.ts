/** What the pipeline page knows of its topics, kept up to date by `look`. */
import { Problem } from "../../lib/api";
import { Follower, Presence, samples } from "./follow";
import {
  countTags,
  joinedWindows,
  moodOf,
  noteUsers,
  topTags,
  topUsers,
  windowsOf,
  type Engaged,
  type Mood,
  type Rank,
  type Tag,
  type Window,
} from "./series";

const WINDOWS = 360;
const MOODS = 400;
const SAMPLES = 24;
const SAMPLED = 12;
const LATEST = 40;
const USERS = 20_000;

const STATS = ["tweets_stats", "users_stats", "logger_stats"] as const;

type StatsTopic = (typeof STATS)[number];

export class Figures {
  windows = $state.raw<Record<StatsTopic, Window[]>>({ tweets_stats: [], users_stats: [], logger_stats: [] });
  moods = $state.raw<Mood[]>([]);
  problem = $state.raw<Problem | null>(null);
  /** Everything was asked for at least once. */
  asked = $state(false);
  /** Some of the topics are there. */
  any = $state(false);

  #changes = $state(0);
  #tags = new Map<string, number>();
  #users = new Map<string, Engaged>();
  #presence = new Presence([...STATS, "hashtag_stats", "users_engagements", "tweets"]);
  #stats = STATS.map((topic) => new Follower(topic, WINDOWS, this.#presence));
  #hashtags = new Follower("hashtag_stats", 1000, this.#presence);
  #engagements = new Follower("users_engagements", 1000, this.#presence);

  tags(most: number): Tag[] {
    void this.#changes;
    return topTags(this.#tags, most);
  }

  users(by: Rank, most: number): Engaged[] {
    void this.#changes;
    return topUsers(this.#users, by, most);
  }

  /** Look for the first time, and back; returns what ends that. */
  start(): () => void {
    const stopper = new AbortController();
    void this.look().then(() => this.#lookBack(stopper.signal));
    return () => stopper.abort();
  }

  async look(): Promise<void> {
    try {
      await this.#presence.look();
      const stats = await Promise.all(this.#stats.map((one) => one.look()));
      const windows = { ...this.windows };
      this.#stats.forEach((follower, index) => {
        const topic = follower.topic as StatsTopic;
        windows[topic] = joinedWindows(windows[topic], windowsOf(stats[index] ?? []), WINDOWS);
      });
      this.windows = windows;
      const tags = await this.#hashtags.look();
      countTags(this.#tags, tags ?? []);
      const users = await this.#engagements.look();
      noteUsers(this.#users, users ?? []);
      this.#forgetUsers();
      this.#changes += 1;
      const tweets = await new Follower("tweets", LATEST, this.#presence).look();
      this.#addMood(moodOf(tweets ?? []));
      this.any = [...stats, tags, users, tweets].some((one) => one !== null && one.length > 0);
      this.problem = null;
    } catch (error) {
      if (error instanceof Problem) this.problem = error;
      else throw error;
    } finally {
      this.asked = true;
    }
  }

  async #lookBack(signal: AbortSignal): Promise<void> {
    if (!this.#presence.has("tweets")) return;
    try {
      await samples("tweets", SAMPLES, SAMPLED, (events) => this.#addMood(moodOf(events)), signal);
    } catch {
      // There is no such topic, or nobody looks any more.
    }
  }

  /** A page that is open all day keeps those who matter. */
  #forgetUsers(): void {
    if (this.#users.size <= USERS) return;
    this.#users = new Map(topUsers(this.#users, "sum", USERS / 2).map((one) => [one.id, one]));
  }

  #addMood(mood: Mood | null): void {
    if (!mood || this.moods.some((one) => one.at_s === mood.at_s)) return;
    this.moods = [...this.moods, mood].sort((a, b) => a.at_s - b.at_s).slice(-MOODS);
  }
}
