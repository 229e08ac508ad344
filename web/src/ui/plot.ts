/** uPlot with our type, colours and axes; a chunk of its own, loaded by Chart. */
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Series } from "./Chart.svelte";

interface Wanted {
  data: uPlot.AlignedData;
  series: Series[];
  height: number;
  format: (value: number) => string;
  time: boolean;
  atLeast: number;
  onhover: (index: number | null) => void;
}

export function makePlot(element: HTMLElement, wanted: Wanted): uPlot {
  const color = (text: string) => resolved(element, text);
  const axis = {
    stroke: color("var(--faint)"),
    font: `11px ${getComputedStyle(element).fontFamily}`,
    grid: { stroke: color("var(--line)"), width: 1 },
    ticks: { show: false },
  };
  const bars = uPlot.paths.bars?.({ size: [0.8, 40] });
  return new uPlot(
    {
      width: Math.max(element.clientWidth, 40),
      height: wanted.height,
      legend: { show: false },
      padding: [6, 26, 0, 0],
      cursor: {
        y: false,
        drag: { x: false, y: false },
        points: { size: 6 },
      },
      hooks: {
        setCursor: [(plot) => wanted.onhover(plot.cursor.idx ?? null)],
      },
      scales: {
        x: { time: wanted.time, auto: false },
        y: {
          range: (_plot, min, max) => [
            Math.min(0, (min || 0) * 1.08),
            Math.max((max || 0) * 1.08, wanted.atLeast),
          ],
        },
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          size: 22,
          gap: 4,
          space: 72,
          ...(wanted.time ? { values: (_plot, ticks, _axis, _space, step) => ticks.map((tick) => clock(tick, step)) } : {}),
        },
        {
          ...axis,
          size: 48,
          gap: 4,
          space: 28,
          values: (_plot, ticks) => ticks.map((tick) => wanted.format(tick)),
        },
      ],
      series: [
        {},
        ...wanted.series.map((one) => ({
          label: one.label,
          stroke: color(one.color),
          width: 1.5,
          points: { show: false },
          ...(one.fill || one.bars ? { fill: fade(color(one.color), one.bars ? 0.55 : 0.1) } : {}),
          ...(one.dash ? { dash: one.dash } : {}),
          ...(one.bars && bars ? { paths: bars } : {}),
        })),
      ],
    },
    wanted.data,
    element,
  );
}

/** 10:24, or 10:24:30 where seconds tell ticks apart; the day where they are days. */
function clock(seconds: number, step: number): string {
  const at = new Date(seconds * 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  if (step >= 86_400) return `${at.getMonth() + 1}/${at.getDate()}`;
  const text = `${two(at.getHours())}:${two(at.getMinutes())}`;
  return step < 60 ? `${text}:${two(at.getSeconds())}` : text;
}

/** What a CSS colour comes to here and now: a canvas knows no variables. */
function resolved(element: HTMLElement, text: string): string {
  const probe = document.createElement("i");
  probe.style.color = text;
  element.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function fade(color: string, share: number): string {
  const parts = color.match(/[\d.]+/g);
  return parts && color.startsWith("rgb")
    ? `rgb(${parts[0]} ${parts[1]} ${parts[2]} / ${share})`
    : color;
}
