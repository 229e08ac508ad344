/** Which part of a drawing is seen: dragged, zoomed by wheel, fingers or keys. */

export interface View {
  x: number;
  y: number;
  zoom: number;
}

interface Drawing {
  width: number;
  height: number;
  /** It goes on downwards, else to the right. */
  vertical: boolean;
}

/** Names can be read from there on. */
const READABLE = 0.62;
const SMALLEST = 0.15;
const LARGEST = 2.5;
/** Less is a click of an unsteady hand. */
const CLICK = 4;

export class Viewport {
  /** Of the window, in pixels. */
  width = $state(0);
  height = $state(0);
  dragging = $state(false);
  #moved = $state.raw<View | null>(null);
  #drawing: () => Drawing;
  #fingers = new Map<number, { x: number; y: number }>();
  #travelled = 0;

  constructor(drawing: () => Drawing) {
    this.#drawing = drawing;
  }

  get view(): View {
    return this.#moved ?? this.#fitted(READABLE);
  }

  /** Whether the last press was a drag, and no click. */
  get dragged(): boolean {
    return this.#travelled > CLICK;
  }

  zoom(factor: number, x = this.width / 2, y = this.height / 2): void {
    const { view } = this;
    const zoom = clamp(view.zoom * factor);
    const by = zoom / view.zoom;
    this.#moved = { x: x - (x - view.x) * by, y: y - (y - view.y) * by, zoom };
  }

  move(dx: number, dy: number): void {
    const { view } = this;
    this.#moved = { ...view, x: view.x + dx, y: view.y + dy };
  }

  showAll(): void {
    this.#moved = this.#fitted(0);
  }

  /** Have a point of the drawing seen, and some space around it. */
  reveal(x: number, y: number): void {
    const { view } = this;
    const dx = inside(x * view.zoom + view.x, this.width, Math.min(120, this.width / 4));
    const dy = inside(y * view.zoom + view.y, this.height, Math.min(60, this.height / 4));
    if (dx || dy) this.move(dx, dy);
  }

  wheel(event: WheelEvent): void {
    event.preventDefault();
    const box = boxOf(event);
    const step = event.deltaY * (event.deltaMode === 1 ? 16 : 1);
    // Fingers on a touchpad come as a wheel with Ctrl, in small steps.
    const factor = Math.exp(-step / (event.ctrlKey ? 120 : 400));
    this.zoom(factor, event.clientX - box.left, event.clientY - box.top);
  }

  press(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.#fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    this.#travelled = 0;
  }

  drag(event: PointerEvent): void {
    const last = this.#fingers.get(event.pointerId);
    if (!last) return;
    const here = { x: event.clientX, y: event.clientY };
    this.#travelled += Math.abs(here.x - last.x) + Math.abs(here.y - last.y);
    if (this.dragged && !this.dragging) {
      this.dragging = true;
      (event.currentTarget as Element).setPointerCapture(event.pointerId);
    }
    const other = [...this.#fingers].find(([id]) => id !== event.pointerId)?.[1];
    this.#fingers.set(event.pointerId, here);
    if (other) this.#pinch(last, here, other, boxOf(event));
    else if (this.dragging) this.move(here.x - last.x, here.y - last.y);
  }

  release(event: PointerEvent): void {
    this.#fingers.delete(event.pointerId);
    if (this.#fingers.size === 0) this.dragging = false;
  }

  #pinch(last: Spot, here: Spot, other: Spot, box: DOMRect): void {
    const before = Math.hypot(last.x - other.x, last.y - other.y);
    const after = Math.hypot(here.x - other.x, here.y - other.y);
    if (before === 0) return;
    this.zoom(after / before, (here.x + other.x) / 2 - box.left, (here.y + other.y) / 2 - box.top);
  }

  /** At least so large; from its beginning on, where that is more than there is room for. */
  #fitted(least: number): View {
    const { width, height, vertical } = this.#drawing();
    if (!this.width || !this.height) return { x: 0, y: 0, zoom: 1 };
    const zoom = clamp(Math.max(least, Math.min(this.width / width, this.height / height, 1.15)));
    const x = (this.width - width * zoom) / 2;
    const y = (this.height - height * zoom) / 2;
    return { x: vertical ? x : Math.max(0, x), y: vertical ? Math.max(0, y) : y, zoom };
  }
}

interface Spot {
  x: number;
  y: number;
}

const clamp = (zoom: number): number => Math.min(LARGEST, Math.max(SMALLEST, zoom));

const boxOf = (event: Event): DOMRect =>
  (event.currentTarget as Element).getBoundingClientRect();

/** How far something has to move to keep a distance from both ends. */
function inside(at: number, length: number, margin: number): number {
  if (at < margin) return margin - at;
  return at > length - margin ? length - margin - at : 0;
}
