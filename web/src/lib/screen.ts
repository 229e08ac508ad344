/** Whether the screen is that of a telephone; as in app.css. */
import { MediaQuery } from "svelte/reactivity";

export const narrow = new MediaQuery("max-width: 640px");
