/** Light, dark, or as the system says; remembered in this browser. */
import { Cell } from "./cell";

export type Theme = "system" | "light" | "dark";

const KEY = "penstock-theme"; // public/theme.js reads it before the first paint
const dark = matchMedia("(prefers-color-scheme: dark)");

const chosen = new Cell<Theme>(remembered());

/** What is shown: "light" or "dark". */
export const theme = new Cell<"light" | "dark">(shown(chosen.peek()));

dark.addEventListener("change", () => {
  theme.value = shown(chosen.peek());
});

export function choice(): Theme {
  return chosen.value;
}

export function choose(next: Theme): void {
  chosen.value = next;
  if (next === "system") {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem(KEY);
  } else {
    document.documentElement.dataset.theme = next;
    localStorage.setItem(KEY, next);
  }
  theme.value = shown(next);
}

/** The other one; back to the system's when that is the same. */
export function toggle(): void {
  const next = theme.peek() === "dark" ? "light" : "dark";
  choose(next === (dark.matches ? "dark" : "light") ? "system" : next);
}

function shown(next: Theme): "light" | "dark" {
  return next === "system" ? (dark.matches ? "dark" : "light") : next;
}

function remembered(): Theme {
  const said = localStorage.getItem(KEY);
  return said === "light" || said === "dark" ? said : "system";
}
