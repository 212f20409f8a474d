// A chart of uPlot as a component: in the colors of the page, as sharp as the screen, made anew when its plan changes.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { numberText } from "../../model/cells.ts";
import { SURFACES, css, mix, type Rgb, type Theme } from "../../model/palette.ts";
import type { CellClass } from "../../model/tables.ts";
import { logMarks, namedMarks } from "../../model/charts.ts";
import { duration, type Clock } from "../../model/clock.ts";
import { ticks, type Tick } from "../../model/ruler.ts";
import { px } from "../../units/screen.ts";
import { nanos, type Nanos } from "../../units/time.ts";
import { useSize } from "../canvas.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";

/** The definition of a chart, without the parts that all of them have in common. */
export interface Plan {
  readonly data: uPlot.AlignedData;
  readonly scales: uPlot.Scales;
  readonly series: readonly uPlot.Series[];
  readonly axes: uPlot.Axis[];
  readonly drag: { readonly x: boolean; readonly y: boolean };
  /** Draws on top: marks, the selection. */
  readonly over?: (plot: uPlot) => void;
  /** The values below the crosshair, in words; empty: nothing. */
  readonly below?: (plot: uPlot) => string;
  /** A rectangle was drawn; `null` where it says nothing of a direction. */
  readonly brushed?: (x: readonly [number, number] | null, y: readonly [number, number] | null) => void;
  /** A click, in CSS pixels from the corner of the plot; also the Enter key, at the crosshair. */
  readonly clicked?: (plot: uPlot, left: number, top: number) => void;
}

interface PlotOptions {
  readonly page: Page;
  /** The title of the chart, and all that it says, for screen readers. */
  readonly title: string;
  readonly summary: string;
  /** Depends on the theme alone; another function makes another chart. */
  readonly plan: (theme: Theme) => Plan;
  /** The marks on top: when they change, the chart stays and is drawn again. */
  readonly marks: readonly unknown[];
}

/** A rectangle that is narrower is a click. */
const BRUSH_MIN_PX = 4;
/** A drag that goes less far across is along the other axis alone. */
const ACROSS_PX = 40;

export function Plot({ page, title, summary, plan, marks }: PlotOptions): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const made = useRef<uPlot | null>(null);
  const [said, say] = useState("");
  // Only the steps of keys are read aloud: a pointer goes over too much.
  const [aloud, readAloud] = useState("");
  const [theme] = usePick(page.store, (state) => [state.theme] as const);
  const shown = useMemo(() => plan(theme), [plan, theme]);
  useEffect(() => {
    const { current } = box;
    if (current === null) {
      return undefined;
    }
    const size = { width: Math.max(50, current.clientWidth), height: Math.max(50, current.clientHeight) };
    const plot = new uPlot(optionsOf(shown, size, say), shown.data, current);
    made.current = plot;
    return () => {
      plot.destroy();
      made.current = null;
    };
  }, [shown]);
  useEffect(() => {
    const asked = requestAnimationFrame(() => made.current?.redraw(false, false));
    return () => cancelAnimationFrame(asked);
  }, marks);
  useSize(box, ({ width, height }) => {
    const { current } = made;
    if (current !== null && width > 0 && height > 0 && (current.width !== width || current.height !== height)) {
      current.setSize({ width, height });
    }
  });
  return (
    <figure class="chart">
      <figcaption>
        <strong>{title}</strong>{" "}
        <span class="faint" title={said === "" ? summary : said}>
          {said === "" ? summary : said}
        </span>
      </figcaption>
      <div class="plot" ref={box} role="img" aria-label={`${title}: ${summary}`} tabIndex={0} onKeyDown={(event) => press(event, made.current, shown, readAloud)} />
      <p class="unseen" role="status">
        {aloud}
      </p>
    </figure>
  );
}

/** Arrows move the crosshair, Enter has the effect of a click. */
function press(event: KeyboardEvent, plot: uPlot | null, plan: Plan, readAloud: (text: string) => void): void {
  if (plot === null || !["ArrowLeft", "ArrowRight", "Enter", "Home", "End"].includes(event.key)) {
    return;
  }
  event.preventDefault();
  event.stopPropagation();
  const [x, y] = [plot.data[0], plot.data[1]];
  const before = plot.cursor.idx ?? -1;
  const steps: Readonly<Record<string, number>> = { ArrowLeft: before - 1, ArrowRight: before + 1, Home: 0, End: x.length - 1 };
  const at = Math.min(x.length - 1, Math.max(0, steps[event.key] ?? before));
  const [value, high] = [x[at], y?.[at]];
  if (value === undefined) {
    return;
  }
  const [left, top] = [plot.valToPos(value, "x"), high === null || high === undefined ? 0 : plot.valToPos(high, "y")];
  if (event.key === "Enter") {
    plan.clicked?.(plot, left, top);
  } else {
    plot.setCursor({ left, top });
    readAloud(plan.below?.(plot) ?? "");
  }
}

function optionsOf(plan: Plan, size: { readonly width: number; readonly height: number }, say: (text: string) => void): uPlot.Options {
  return {
    ...size,
    series: [{}, ...plan.series],
    scales: plan.scales,
    axes: plan.axes,
    legend: { show: false },
    cursor: { drag: { ...plan.drag, setScale: false, uni: ACROSS_PX }, points: { show: false } },
    hooks: {
      draw: [(plot) => plan.over?.(plot)],
      setCursor: [(plot) => say((plot.cursor.left ?? -1) < 0 ? "" : (plan.below?.(plot) ?? ""))],
      setSelect: [(plot) => brush(plot, plan)],
      ready: [(plot) => listen(plot, plan)],
    },
  };
}

function listen(plot: uPlot, plan: Plan): void {
  let down: { readonly x: number; readonly y: number } | null = null;
  plot.over.addEventListener("pointerdown", (event) => (down = { x: event.clientX, y: event.clientY }));
  plot.over.addEventListener("click", (event) => {
    const isStill = down !== null && Math.hypot(event.clientX - down.x, event.clientY - down.y) < BRUSH_MIN_PX;
    if (isStill) {
      const corner = plot.over.getBoundingClientRect();
      plan.clicked?.(plot, event.clientX - corner.left, event.clientY - corner.top);
    }
  });
}

function brush(plot: uPlot, plan: Plan): void {
  const { left, top, width, height } = plot.select;
  const [isX, isY] = [plan.drag.x && width >= BRUSH_MIN_PX, plan.drag.y && height >= BRUSH_MIN_PX];
  if (!isX && !isY) {
    return;
  }
  // A brush along one axis covers all of the other one.
  const [wide, high] = [plot.over.clientWidth, plot.over.clientHeight];
  const x = isX && width < wide ? ([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")] as const) : null;
  const y = isY && height < high ? ([plot.posToVal(top + height, "y"), plot.posToVal(top, "y")] as const) : null;
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  if (x !== null || y !== null) {
    plan.brushed?.(x, y);
  }
}

/** An axis that looks like the rest of the page. */
export function axis(theme: Theme, scale: "x" | "y", write: (value: number) => string, size?: number): uPlot.Axis {
  const { faint, line } = SURFACES[theme];
  return {
    scale,
    stroke: css(faint),
    font: "11px system-ui, sans-serif",
    grid: { stroke: css(line), width: 1 },
    ticks: { stroke: css(line), width: 1, size: 4 },
    gap: 4,
    size: size ?? (scale === "x" ? 26 : 62),
    ...(scale === "x" ? { space: 90 } : {}),
    values: (_, splits) => splits.map((value: number | null) => (value === null ? "" : write(value))),
  };
}

/** Lines of more marks than that are no lines any more, but a gray band. */
const LINES_MAX = 36;

/** Of many marks those that are powers of ten. */
function fewer(marks: readonly number[]): (number | null)[] {
  return marks.length <= LINES_MAX ? [...marks] : [...namedMarks(marks)];
}

/** Names of marks need so many CSS pixels, along an axis and across. */
const NAME_PX = { x: 56, y: 13 } as const;

/** Without names that would touch the one before. */
function spaced(plot: uPlot, scale: "x" | "y", marks: readonly (number | null)[]): (number | null)[] {
  let last = -Infinity;
  return marks.map((mark) => {
    const place = mark === null ? null : plot.valToPos(mark, scale);
    const isFree = place !== null && Math.abs(place - last) >= NAME_PX[scale];
    last = isFree && place !== null ? place : last;
    return isFree ? mark : null;
  });
}

/** A logarithmic axis. */
export function logAxis(scale: "x" | "y", theme: Theme, write: (value: number) => string, size?: number): uPlot.Axis {
  const plain = axis(theme, scale, write, size);
  return {
    ...plain,
    grid: { ...plain.grid, filter: (_, splits) => fewer(splits) },
    splits: (_plot, _axis, low, high) => logMarks(low, high),
    filter: (plot, splits) => spaced(plot, scale, namedMarks(splits)),
  };
}

/** An axis of times, counted from `origin`, with the marks that the timeline would have. */
export function timeAxis(theme: Theme, origin: Nanos, clock: Clock): uPlot.Axis {
  const marksOf = (plot: uPlot, low: number, high: number): readonly Tick[] => {
    const view = { begin: nanos(origin + BigInt(Math.round(low))), span: nanos(Math.max(1, Math.round(high - low))) };
    return ticks(view, px(Math.max(1, plot.width)), px(110), clock).filter((tick) => tick.label !== "");
  };
  return {
    ...axis(theme, "x", String),
    splits: (plot, _axis, low, high) => marksOf(plot, low, high).map((tick) => Number(tick.time - origin)),
    values: (plot, splits) => {
      const marks = marksOf(plot, plot.scales["x"]?.min ?? 0, plot.scales["x"]?.max ?? 1);
      return splits.map((value) => marks.find((tick) => Number(tick.time - origin) === value)?.label ?? "");
    },
  };
}

/** A duration that stands at an axis: whole units where it is one. */
export function shortDuration(nanoseconds: number): string {
  return duration(nanos(Math.max(0, Math.round(nanoseconds))), 3).replace(/\.0+(?= )/, "");
}

/** A number of some class that stands at an axis. */
export function shortNumber(of: CellClass): (value: number) => string {
  return (value) => (of === "duration" ? shortDuration(value) : of === "ratio" ? `${Math.round(value * 100)} %` : numberText(value, of));
}

/** A band across the chart, from one value of an axis to another. */
export function band(plot: uPlot, axis: "x" | "y", from: number, to: number, colour: Rgb): void {
  const { left, top, width, height } = plot.bbox;
  const [one, other] = [plot.valToPos(from, axis, true), plot.valToPos(to, axis, true)];
  const [low, high] = [Math.min(one, other), Math.max(one, other)];
  const box = axis === "x" ? { begin: Math.max(left, low), end: Math.min(left + width, high) } : { begin: Math.max(top, low), end: Math.min(top + height, high) };
  if (box.end < box.begin) {
    return;
  }
  const length = Math.max(box.end - box.begin, uPlot.pxRatio);
  plot.ctx.save();
  plot.ctx.globalAlpha = 0.22;
  plot.ctx.fillStyle = css(colour);
  plot.ctx.fillRect(axis === "x" ? box.begin : left, axis === "x" ? top : box.begin, axis === "x" ? length : width, axis === "x" ? height : length);
  plot.ctx.restore();
}

/** The color of the first line: one that is seen on the page's ground. */
export function mainColour(theme: Theme): Rgb {
  return SURFACES[theme].accent;
}

/** A paler one, for areas. */
export function area(colour: Rgb, theme: Theme): string {
  return css(mix(colour, SURFACES[theme].background, 0.65));
}
