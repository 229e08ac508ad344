/** Lines of a layered drawing: straight at their ends, round between, labels on them. */

export interface Point {
  x: number;
  y: number;
}

/** The points of an edge as the path of an SVG: straight at its ends, round between. */
export function pathOf(points: readonly Point[], direction: "down" | "right" = "down"): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let path = `M${round(first.x)},${round(first.y)}`;
  let last = first;
  for (const point of rest) {
    const [a, b] =
      direction === "down"
        ? [
            { x: last.x, y: (last.y + point.y) / 2 },
            { x: point.x, y: (last.y + point.y) / 2 },
          ]
        : [
            { x: (last.x + point.x) / 2, y: last.y },
            { x: (last.x + point.x) / 2, y: point.y },
          ];
    path += `C${round(a.x)},${round(a.y)} ${round(b.x)},${round(b.y)} ${round(point.x)},${round(point.y)}`;
    last = point;
  }
  return path;
}

/** A point of the drawn line, for a label: 0 is its beginning, 1 its end. */
export function pointOn(
  points: readonly Point[],
  share: number,
  direction: "down" | "right" = "down",
): Point {
  const pieces = points.length - 1;
  if (pieces < 1) return points[0] ?? { x: 0, y: 0 };
  const place = Math.min(Math.max(share, 0), 1) * pieces;
  const index = Math.min(Math.floor(place), pieces - 1);
  const a = points[index]!;
  const b = points[index + 1]!;
  // Of a Bézier curve whose handles are half-way: one axis goes straight, one in an S.
  const t = place - index;
  const straight = 1.5 * t * (1 - t) + t ** 3;
  const bent = 3 * t * t - 2 * t ** 3;
  const [u, v] = direction === "down" ? [bent, straight] : [straight, bent];
  return { x: a.x + (b.x - a.x) * u, y: a.y + (b.y - a.y) * v };
}

const round = (value: number): number => Math.round(value * 10) / 10;
