// The charts of Statistics and Latency: distributions of durations, durations over time, quantities over time.

import type { JSX } from "preact";
import { useCallback, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { cellText, exactDuration, grouped, numberText } from "../../model/cells.ts";
import type { Bins, Course, Percentile, Point } from "../../model/charts.ts";
import { timeText, type Clock } from "../../model/clock.ts";
import type { Range } from "../../model/lens.ts";
import { HUES, SURFACES, css, type Rgb, type Theme } from "../../model/palette.ts";
import type { Row, Span } from "../../model/tables.ts";
import { nanos } from "../../units/time.ts";
import type { Page } from "../page.ts";
import { Plot, area, axis, band, logAxis, mainColour, shortDuration, shortNumber, timeAxis, type Plan } from "./plot.tsx";

/** The latest props of a component, for callbacks that outlive its drawing. */
interface Latest<T> {
  readonly current: T;
}

function useLatest<T>(value: T): Latest<T> {
  const latest = useRef(value);
  latest.current = value;
  return latest;
}

interface DensityOptions {
  readonly page: Page;
  readonly bins: readonly Bins[];
  readonly percentiles: readonly Percentile[];
  readonly range: Range | null;
  readonly choose: (range: Range) => void;
}

/** Bins without anything lie below the shown part of a logarithmic axis. */
const BELOW = 0.1;
const COUNT_MIN = 0.7;

/** The distribution of durations, both axes logarithmic, with percentiles. */
export function Density({ page, bins, percentiles, range, choose }: DensityOptions): JSX.Element {
  const brushed = useLatest(range);
  const plan = useCallback((theme: Theme) => densityPlan(theme, bins, percentiles, brushed, choose), [bins, percentiles, choose]);
  const total = bins.length === 1 ? `${grouped(bins[0]?.total ?? 0)} in all` : bins.map((one) => `${one.title} ${grouped(one.total)}`).join(", ");
  const marks = percentiles.map(({ title, low, high }) => `${title} ${percentileText(low, high)}`).join(", ");
  return (
    <div class="with-lines">
      <Plot page={page} title={bins.length === 1 ? (bins[0]?.title ?? "") : "How long it takes"} summary={`${total}${marks === "" ? "" : `; ${marks}`}`} plan={plan} marks={[range]} />
      {bins.length < 2 ? null : (
        <div class="tools lines">
          {bins.map((one, index) => (
            <span key={one.title}>
              <Swatch colour={colourAt(page.store.state.theme, index)} /> {one.title}
            </span>
          ))}
        </div>
      )}
    </div>
  );
}

function percentileText(low: number, high: number): string {
  const [from, to] = [shortDuration(low), shortDuration(high)];
  return from === to ? from : `${from} to ${to}`;
}

function densityPlan(theme: Theme, all: readonly Bins[], percentiles: readonly Percentile[], brushed: Latest<Range | null>, choose: (range: Range) => void): Plan {
  // Several distributions have bins of their own: where one has no edge, it goes on.
  const edges = [...new Set(all.flatMap(({ low, high }) => [...low, ...high]))].map((edge) => Math.max(edge, 0.5)).sort((one, other) => one - other);
  const data = all.map((bins) => edges.map((edge) => countAt(bins, edge)));
  const colours = all.map((_, index) => colourAt(theme, index));
  const most = Math.max(1, ...data.flat());
  const ends = [edges[0] ?? 1, edges.at(-1) ?? 10] as const;
  return {
    data: [edges, ...data.map((line) => line.map((count) => (count === 0 ? BELOW : count)))],
    scales: { x: { time: false, distr: 3, range: () => [ends[0], Math.max(ends[1], ends[0] * 2)] }, y: { distr: 3, range: () => [COUNT_MIN, most * 2] } },
    series: all.map((bins, index) => ({ label: bins.title, stroke: css(colours[index] ?? SURFACES[theme].accent), ...(all.length > 1 ? {} : { fill: area(colours[index] ?? SURFACES[theme].accent, theme), fillTo: () => COUNT_MIN }), width: 1.5, points: { show: false }, paths: uPlot.paths.stepped?.({ align: 1 }) ?? null }) as uPlot.Series),
    axes: [logAxis("x", theme, shortDuration), logAxis("y", theme, (value) => numberText(BigInt(Math.round(value)), "number"), 54)],
    drag: { x: true, y: false },
    over: (plot) => {
      const { current: range } = brushed;
      if (range !== null) {
        band(plot, "x", Math.max(range.low, ends[0]), range.high, SURFACES[theme].accent);
      }
      percentiles.forEach((one) => percentileMark(plot, theme, one));
    },
    below: (plot) => {
      const value = plot.posToVal(plot.cursor.left ?? 0, "x");
      return all.map((bins) => binText(bins, value, all.length > 1)).filter((text) => text !== "").join("; ");
    },
    brushed: (x) => (x === null ? undefined : choose({ low: Math.floor(x[0]), high: Math.ceil(x[1]) })),
    clicked: (plot, left) => {
      const value = plot.posToVal(left, "x");
      const at = all[0]?.high.findIndex((high) => value < high) ?? -1;
      const [low, high] = [all[0]?.low[at], all[0]?.high[at]];
      if (low !== undefined && high !== undefined) {
        choose({ low, high: high - 1 });
      }
    },
  };
}

function indexAt({ low, high }: Bins, value: number): number {
  return low.findIndex((begin, index) => Math.max(begin, 0.5) <= value && value < (high[index] ?? begin));
}

function countAt(bins: Bins, value: number): number {
  return bins.count[indexAt(bins, value)] ?? 0;
}

function binText(bins: Bins, value: number, isNamed: boolean): string {
  const at = indexAt(bins, value);
  const [low, high, count] = [bins.low[at], bins.high[at], bins.count[at]];
  return low === undefined || high === undefined || count === undefined ? "" : `${isNamed ? `${bins.title}: ` : ""}${grouped(count)} from ${exactDuration(BigInt(low))} to ${exactDuration(BigInt(Math.max(low, high - 1)))}`;
}

function percentileMark(plot: uPlot, theme: Theme, { title, low, high }: Percentile): void {
  const { ctx, bbox } = plot;
  const { pxRatio } = uPlot;
  const right = bbox.left + bbox.width;
  const place = Math.round(plot.valToPos(Math.sqrt(Math.max(low, 0.5) * Math.max(high, 0.5)), "x", true));
  // The longest one ends the last bin.
  const x = Math.min(right, Math.max(bbox.left, place)) + 0.5;
  ctx.save();
  ctx.strokeStyle = css(SURFACES[theme].ink);
  ctx.fillStyle = css(SURFACES[theme].ink);
  ctx.lineWidth = pxRatio;
  ctx.setLineDash([3 * pxRatio, 3 * pxRatio]);
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.font = `${11 * pxRatio}px system-ui, sans-serif`;
  ctx.textAlign = x > right - bbox.width * 0.15 ? "right" : "left";
  const row = { "50 %": 0, "90 %": 1, "99 %": 2 }[title] ?? 3;
  // A border in the background's color keeps a name readable over the drawing below it.
  ctx.setLineDash([]);
  ctx.lineWidth = 3 * pxRatio;
  ctx.lineJoin = "round";
  ctx.strokeStyle = css(SURFACES[theme].background);
  ctx.strokeText(title, x + (ctx.textAlign === "left" ? 3 : -3) * pxRatio, bbox.top + (11 + row * 12) * pxRatio);
  ctx.fillText(title, x + (ctx.textAlign === "left" ? 3 : -3) * pxRatio, bbox.top + (11 + row * 12) * pxRatio);
  ctx.restore();
}

interface ScatterOptions {
  readonly page: Page;
  readonly title: string;
  readonly summary: string;
  readonly points: readonly Point[];
  /** The time that the chart covers: its axis goes from there to there. */
  readonly span: Span;
  readonly clock: Clock;
  readonly range: Range | null;
  readonly selection: Span | null;
  readonly current: Row | null;
  readonly choose: (row: Row) => void;
  readonly brush: (time: Span | null, range: Range | null) => void;
}

/** A point that is not farther away is meant. */
const NEAR_PX = 14;

/** Durations over time. */
export function Scatter({ page, title, summary, points, span, clock, range, selection, current, choose, brush }: ScatterOptions): JSX.Element {
  const marks = useLatest({ range, selection, current });
  const plan = useCallback((theme: Theme) => scatterPlan(theme, { points, span, clock, marks, choose, brush }), [points, span.begin, span.end, clock, choose, brush]);
  return <Plot page={page} title={title} summary={summary} plan={plan} marks={[range, selection?.begin, selection?.end, current]} />;
}

interface ScatterPlan extends Pick<ScatterOptions, "points" | "span" | "clock" | "choose" | "brush"> {
  readonly marks: Latest<Pick<ScatterOptions, "range" | "selection" | "current">>;
}

function scatterPlan(theme: Theme, { points, span, clock, marks, choose, brush }: ScatterPlan): Plan {
  const colour = mainColour(theme);
  const origin = span.begin;
  const values = points.map((point) => Math.max(point.y, 0.5));
  const [low, high] = [values.reduce((one, other) => Math.min(one, other), Infinity), values.reduce((one, other) => Math.max(one, other), 0.5)];
  const timeOf = (x: number): ReturnType<typeof nanos> => nanos(origin + BigInt(Math.round(x)));
  const near = (plot: uPlot, left: number, top: number): Point | null => nearest(plot, points, left, top);
  return {
    data: [points.map((point) => point.x), values],
    scales: { x: { time: false, range: () => [0, Math.max(1, Number(span.end - span.begin))] }, y: { distr: 3, range: () => [Math.max(0.4, (low === Infinity ? 1 : low) / 1.5), high * 1.5] } },
    series: [{ label: "how long", paths: () => null, points: { show: true, size: 5, width: 0, fill: css(colour), stroke: css(colour) } } as uPlot.Series],
    axes: [timeAxis(theme, origin, clock), logAxis("y", theme, shortDuration)],
    drag: { x: true, y: true },
    over: (plot) => {
      const { range, selection, current } = marks.current;
      if (selection !== null && (selection.begin > span.begin || selection.end < span.end)) {
        band(plot, "x", Number(selection.begin - origin), Number(selection.end - origin), SURFACES[theme].accent);
      }
      if (range !== null) {
        band(plot, "y", Math.max(0.4, range.low), range.high, SURFACES[theme].accent);
      }
      const chosen = points.find((point) => point.row === current);
      if (chosen !== undefined) {
        ring(plot, chosen, SURFACES[theme].ink);
      }
    },
    below: (plot) => {
      const { left, top } = plot.cursor;
      const point = near(plot, left ?? 0, top ?? 0);
      return point === null
        ? `${timeText(clock, timeOf(plot.posToVal(left ?? 0, "x")), 6)}, ${shortDuration(plot.posToVal(top ?? 0, "y"))}`
        : `${timeText(clock, point.span.begin)}: ${exactDuration(BigInt(point.y))}, ${whoOf(point.row, clock)}`;
    },
    brushed: (x, y) => brush(x === null ? null : { begin: timeOf(x[0]), end: timeOf(x[1]) }, y === null ? null : { low: Math.floor(y[0]), high: Math.ceil(y[1]) }),
    clicked: (plot, left, top) => {
      const point = near(plot, left, top);
      if (point !== null) {
        choose(point.row);
      }
    },
  };
}

/** The subject of a row. */
function whoOf(row: Row, clock: Clock): string {
  return row
    .filter((cell) => ["process", "text", "irq"].includes(cell.kind))
    .slice(0, 3)
    .map((cell) => cellText(cell, clock))
    .join(", ");
}

function nearest(plot: uPlot, points: readonly Point[], left: number, top: number): Point | null {
  let found: Point | null = null;
  let least = NEAR_PX;
  for (const point of points) {
    const x = plot.valToPos(point.x, "x") - left;
    if (Math.abs(x) <= least) {
      const distance = Math.hypot(x, plot.valToPos(Math.max(point.y, 0.5), "y") - top);
      if (distance <= least) {
        [found, least] = [point, distance];
      }
    }
  }
  return found;
}

function ring(plot: uPlot, point: Point, colour: Rgb): void {
  const { ctx } = plot;
  const { pxRatio } = uPlot;
  ctx.save();
  ctx.strokeStyle = css(colour);
  ctx.lineWidth = 2 * pxRatio;
  ctx.beginPath();
  ctx.arc(plot.valToPos(point.x, "x", true), plot.valToPos(Math.max(point.y, 0.5), "y", true), 6 * pxRatio, 0, 2 * Math.PI);
  ctx.stroke();
  ctx.restore();
}

interface CourseOptions {
  readonly page: Page;
  readonly title: string;
  readonly course: Course;
  readonly clock: Clock;
  readonly selection: Span | null;
  readonly brush: (time: Span) => void;
}

/** Quantities over time, a line each; names below the chart switch lines off and on. */
export function CourseChart({ page, title, course, clock, selection, brush }: CourseOptions): JSX.Element {
  const selected = useLatest(selection);
  const [off, switchOff] = useState<ReadonlySet<string>>(new Set());
  const plan = useCallback((theme: Theme) => coursePlan(theme, course, off, clock, selected, brush), [course, off, clock, brush]);
  const [first] = course.lines;
  const most = first === undefined ? 0 : first.values.reduce((one, other) => Math.max(one, other), 0);
  const summary = first === undefined ? "" : `${course.time.length - 1} spans of time; ${first.title} is at most ${textOf(most, first.column.of)}`;
  return (
    <>
      <Plot page={page} title={title} summary={summary} plan={plan} marks={[selection?.begin, selection?.end]} />
      {course.lines.length < 2 ? null : (
        <div class="tools lines">
          {course.lines.map((line, index) => (
            <button
              key={line.title}
              type="button"
              class="plain"
              aria-pressed={!off.has(line.title)}
              onClick={() => switchOff(off.has(line.title) ? new Set([...off].filter((title) => title !== line.title)) : new Set([...off, line.title]))}
            >
              <Swatch colour={colourAt(page.store.state.theme, index)} /> {line.title}
            </button>
          ))}
        </div>
      )}
    </>
  );
}

function Swatch({ colour }: { readonly colour: Rgb }): JSX.Element {
  return <span class="swatch" style={{ background: css(colour) }} />;
}

function colourAt(theme: Theme, index: number): Rgb {
  return index === 0 ? mainColour(theme) : (HUES[index] ?? mainColour(theme));
}

function textOf(value: number, of: string): string {
  return of === "number" || of === "duration" ? numberText(Number.isInteger(value) ? BigInt(value) : value, of) : numberText(value, of);
}

function coursePlan(theme: Theme, course: Course, off: ReadonlySet<string>, clock: Clock, selected: Latest<Span | null>, brush: (time: Span) => void): Plan {
  const timeOf = (x: number): ReturnType<typeof nanos> => nanos(course.begin + BigInt(Math.round(x)));
  const of = course.lines[0]?.column.of ?? "number";
  const shown = course.lines.filter((line) => !off.has(line.title));
  const most = shown.flatMap((line) => line.values).reduce((one, other) => Math.max(one, other), 0);
  const least = shown.flatMap((line) => line.values).reduce((one, other) => Math.min(one, other), 0);
  return {
    // A line goes on to the end of its last period.
    data: [[...course.time], ...course.lines.map((line) => [...line.values, line.values.at(-1) ?? 0])],
    scales: { x: { time: false, range: () => [0, Math.max(1, course.time.at(-1) ?? 1)] }, y: { range: () => [least, most <= least ? least + 1 : most * 1.05] } },
    series: course.lines.map((line, index) => {
      const colour = colourAt(theme, index);
      const fill = index === 0 ? { fill: area(colour, theme) } : {};
      return { label: line.title, show: !off.has(line.title), stroke: css(colour), width: 1.5, points: { show: false }, paths: uPlot.paths.stepped?.({ align: 1 }) ?? null, ...fill } as uPlot.Series;
    }),
    axes: [timeAxis(theme, course.begin, clock), axis(theme, "y", shortNumber(of))],
    drag: { x: true, y: false },
    over: (plot) => {
      const { current: selection } = selected;
      // Where all of it is selected, there is nothing to tell apart.
      if (selection !== null && (selection.begin > course.begin || Number(selection.end - course.begin) < (course.time.at(-1) ?? 0))) {
        band(plot, "x", Number(selection.begin - course.begin), Number(selection.end - course.begin), SURFACES[theme].accent);
      }
    },
    below: (plot) => {
      const x = plot.posToVal(plot.cursor.left ?? 0, "x");
      const at = Math.max(0, course.time.findIndex((time) => time > x) - 1);
      const parts = shown.map((line) => `${line.title} ${textOf(line.values[at] ?? 0, line.column.of)}`);
      return `${timeText(clock, timeOf(course.time[at] ?? 0))} + ${exactDuration(BigInt(Math.round((course.time[at + 1] ?? 0) - (course.time[at] ?? 0))))}: ${parts.join(", ")}`;
    },
    brushed: (x) => (x === null ? undefined : brush({ begin: timeOf(x[0]), end: timeOf(x[1]) })),
  };
}
