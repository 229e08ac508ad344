/** Tracebacks, cut into what a reader looks for: places, lines of code, the error. */

export interface TraceLine {
  kind: "place" | "code" | "error" | "note";
  text: string;
  /** Of a place: the file without its folders, the line, the function. */
  file?: string;
  line?: string;
  where?: string;
  /** It is of a library, most likely not what one looks for. */
  foreign?: boolean;
}

const PLACE = /^\s*File "([^"]+)", line (\d+)(?:, in (.+))?$/;
const FOREIGN = /\/site-packages\/|\/lib\/python\d|<frozen |\/penstock\/embedded\//;

export function traceLines(traceback: string): TraceLine[] {
  let foreign = false;
  return traceback
    .replace(/\n+$/, "")
    .split("\n")
    .map((text): TraceLine => {
      const place = PLACE.exec(text);
      if (place) {
        const [, path = "", line = "", where = ""] = place;
        foreign = FOREIGN.test(path);
        return { kind: "place", text, file: path.split("/").pop() ?? path, line, where, foreign };
      }
      if (/^\s/.test(text)) return { kind: "code", text, foreign };
      const note = /^Traceback |^During handling|^The above exception|^$/.test(text);
      return { kind: note ? "note" : "error", text };
    });
}
