/**
 * Which page is shown: paths under /ui, no hashes.
 *
 * `PAGES` is the only list of pages; each is loaded when it is first shown. Links are
 * plain `<a href={href.topic("orders")}>`: the shell catches the clicks.
 */
import type { Component } from "svelte";
import { Cell } from "./cell";

export interface Page {
  name: string;
  title: string;
  /** Key behind `g`; without one the page is not in the menu. */
  key?: string;
  /** Segments behind /ui; ":name" stands for any one. */
  path: string[];
  load: () => Promise<{ default: Component }>;
  /** Once it is loaded. */
  component?: Component;
}

export const PAGES: Page[] = [
  {
    name: "overview",
    title: "Overview",
    key: "o",
    path: [],
    load: () => import("../pages/Overview.svelte"),
  },
  {
    name: "topic",
    title: "Topic",
    path: ["topics", ":topic"],
    load: () => import("../pages/Topic.svelte"),
  },
  {
    name: "event",
    title: "Event",
    path: ["events", ":topic", ":offset"],
    load: () => import("../pages/Event.svelte"),
  },
  {
    name: "subscribers",
    title: "Subscribers",
    key: "s",
    path: ["subscribers"],
    load: () => import("../pages/Subscribers.svelte"),
  },
  {
    name: "dead-letters",
    title: "Dead letters",
    key: "d",
    path: ["dead-letters"],
    load: () => import("../pages/DeadLetters.svelte"),
  },
  {
    name: "flow",
    title: "Flow",
    key: "f",
    path: ["flow"],
    load: () => import("../pages/Flow.svelte"),
  },
  {
    name: "sql",
    title: "SQL",
    key: "q",
    path: ["sql"],
    load: () => import("../pages/Sql.svelte"),
  },
  {
    name: "pipeline",
    title: "Pipeline",
    key: "p",
    path: ["pipeline"],
    load: () => import("../pages/Pipeline.svelte"),
  },
  {
    name: "processes",
    title: "Processes",
    key: "c",
    path: ["processes"],
    load: () => import("../pages/Processes.svelte"),
  },
];

export interface Route {
  page: Page | null;
  params: Record<string, string>;
  query: URLSearchParams;
}

/**
 * Where we are; read `route.value` in a component to follow it. It changes when the
 * page is loaded, so no page ever sees the address of another.
 */
export const route = new Cell<Route>(parse(location.pathname, location.search));

/** Title of a page that could not be loaded. */
export const broken = new Cell("");

/** Addresses of pages. */
export const href = {
  page: (name: string) =>
    "/ui/" + (PAGES.find((page) => page.name === name)?.path.join("/") ?? ""),
  overview: () => "/ui/",
  topic: (topic: string, tab = "") =>
    `/ui/topics/${encodeURIComponent(topic)}${tab ? `?tab=${tab}` : ""}`,
  event: (topic: string, offset: number) =>
    `/ui/events/${encodeURIComponent(topic)}/${offset}`,
  subscribers: (subscriber = "") =>
    "/ui/subscribers" +
    (subscriber ? `?subscriber=${encodeURIComponent(subscriber)}` : ""),
  letter: (number: number) => `/ui/dead-letters?letter=${number}`,
};

export function go(address: string, how: { replace?: boolean } = {}): void {
  if (how.replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  follow();
}

/** Change parts of the query in place; null removes one. */
export function setQuery(
  changes: Record<string, string | number | null>,
  how: { push?: boolean } = {},
): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") query.delete(name);
    else query.set(name, String(value));
  }
  const text = query.toString();
  go(location.pathname + (text ? `?${text}` : ""), { replace: !how.push });
}

/** Follow the address bar and links; returns what undoes it. */
export function start(): () => void {
  const clicked = (event: MouseEvent) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element).closest?.("a[href]");
    if (!(link instanceof HTMLAnchorElement) || link.target || link.download) return;
    if (link.origin !== location.origin || !link.pathname.startsWith("/ui")) return;
    event.preventDefault();
    go(link.pathname + link.search);
  };
  addEventListener("popstate", follow);
  document.addEventListener("click", clicked);
  follow();
  return () => {
    removeEventListener("popstate", follow);
    document.removeEventListener("click", clicked);
  };
}

let latest = 0;

function follow(): void {
  latest += 1;
  const mine = latest;
  const next = parse(location.pathname, location.search);
  const page = next.page;
  if (!page || page.component) {
    broken.value = "";
    route.value = next;
    return;
  }
  page.load().then(
    (loaded) => {
      page.component = loaded.default;
      if (mine === latest) follow();
    },
    () => {
      if (mine === latest) broken.value = page.title;
    },
  );
}

export function parse(pathname: string, search: string): Route {
  const query = new URLSearchParams(search);
  const segments = pathname
    .replace(/^\/(ui)?/, "")
    .split("/")
    .filter((one) => one !== "");
  for (const page of PAGES) {
    const params = match(page.path, segments);
    if (params) return { page, params, query };
  }
  return { page: null, params: {}, query };
}

function match(path: string[], segments: string[]): Record<string, string> | null {
  if (path.length !== segments.length) return null;
  const params: Record<string, string> = {};
  for (const [index, part] of path.entries()) {
    const said = segments[index] as string;
    if (part.startsWith(":")) {
      try {
        params[part.slice(1)] = decodeURIComponent(said);
      } catch {
        return null;
      }
    } else if (part !== said) return null;
  }
  return params;
}
