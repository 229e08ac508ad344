/** Markdown to harmless HTML; a chunk of its own, loaded by Markdown.svelte. */
import DOMPurify from "dompurify";
import { marked } from "marked";

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("rel", "noopener noreferrer nofollow");
    const link = node as HTMLAnchorElement;
    if (link.origin !== location.origin) link.setAttribute("target", "_blank");
  }
  if (node.tagName === "INPUT") node.setAttribute("disabled", "");
});

// HTML in a text is shown as text: taken apart, its handlers would be complained of.
const SIGNS: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
marked.use({
  renderer: { html: ({ text }) => text.replace(/[&<>"]/g, (sign) => SIGNS[sign] ?? sign) },
});

export function render(text: string): string {
  const html = marked.parse(text, { async: false, gfm: true });
  return DOMPurify.sanitize(html, {
    USE_PROFILES: { html: true },
    // No pictures either: the page asks no other host for anything.
    FORBID_TAGS: ["style", "img", "picture", "video", "audio", "form", "button", "svg", "math"],
    FORBID_ATTR: ["style", "id", "name", "class"],
  });
}
