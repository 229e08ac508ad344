import { mount } from "svelte";
import "./app.css";
import App from "./App.svelte";
import { login, Problem, session, whoami } from "./lib/api";
import { complain } from "./lib/toasts";

// The link that `penstock serve` prints carries a token behind #, which is never sent
// to a server by itself and must not stay in the address bar or in the history.
const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) history.replaceState(null, "", location.pathname + location.search);

mount(App, { target: document.getElementById("app") as HTMLElement });

async function enter(): Promise<void> {
  try {
    if (token) await login(token);
    else await whoami();
  } catch (error) {
    if (error instanceof Problem && error.offline) {
      setTimeout(() => void enter(), 1000);
      return;
    }
    complain(error);
    session.value = null;
  }
}
void enter();
