// Numbers over time: a line with steps, and an envelope from the least to the most where it changes within a pixel.

import type { Piece } from "../model/cache.ts";
import { firstPixel, placeOf, type Frame, type Place } from "../model/geometry.ts";
import type { Counter, Span } from "../model/tile.ts";
import type { Pen } from "./pen.ts";

/** From the least to the most. */
export interface Scale {
  readonly low: number;
  readonly high: number;
}

/** A part of a counter on the screen: its buckets, and which pixels they have. */
export interface CounterPart {
  readonly items: Counter;
  readonly place: Place;
  /** Behind it, the value is unknown. */
  readonly isCut: boolean;
}

/** The parts of a counter that were read. */
export function counterParts(frame: Frame, pieces: readonly Piece[]): CounterPart[] {
  return pieces.flatMap(({ tile, begin, end }) => {
    const place = placeOf(frame, tile.level, tile.index, begin, end);
    const to = Math.max(place.from, ...readParts(place, tile.spans).map((part) => part.to));
    return tile.items.form === "counter" ? [{ items: tile.items, place: { ...place, to }, isCut: to < place.to }] : [];
  });
}

/** The parts of a place that were read: elsewhere it is unknown how long the state before them lasts. */
export function readParts(place: Place, spans: readonly Span[]): Place[] {
  const read = spans.filter((span) => span.quality === "exact" || span.quality === "building");
  return read.map((span) => ({
    ...place,
    from: Math.max(place.from, firstPixel(place.left + span.begin * place.step)),
    to: Math.min(place.to, firstPixel(place.left + span.end * place.step)),
    low: Math.max(place.low, place.left + span.begin * place.step),
    high: Math.min(place.high, place.left + span.end * place.step),
  }));
}

/** From the least to the most that a counter is in all of its tiles; `null` if it is nothing there. */
export function rangeOf(parts: readonly CounterPart[]): Scale | null {
  let [low, high] = [Infinity, -Infinity];
  for (const { items } of parts) {
    const { min, max, held } = items;
    [low, high] = Number.isNaN(held) ? [low, high] : [Math.min(low, held), Math.max(high, held)];
    min.forEach((value) => (low = Math.min(low, value)));
    max.forEach((value) => (high = Math.max(high, value)));
  }
  return low <= high ? { low, high } : null;
}

/** The same of the parts on the screen. */
export function rangeSeen(parts: readonly CounterPart[]): Scale | null {
  let [low, high] = [Infinity, -Infinity];
  let held: number | null = null;
  const take = (least: number, most: number): void => {
    [low, high] = [Math.min(low, least), Math.max(high, most)];
  };
  for (const { items, place, isCut } of parts) {
    const { bucket, min, max, last } = items;
    held = Number.isNaN(items.held) ? held : items.held;
    let isSeen = false;
    for (let index = 0; index < bucket.length; index++) {
      const x = place.left + (bucket[index] ?? 0) * place.step;
      if (x >= place.to) {
        break;
      }
      if (x + place.step > place.from) {
        if (!isSeen && held !== null) {
          take(held, held);
        }
        isSeen = true;
        take(min[index] ?? 0, max[index] ?? 0);
      }
      held = last[index] ?? held;
    }
    if (!isSeen && held !== null && place.from < place.to) {
      take(held, held);
    }
    held = isCut ? null : held;
  }
  return low <= high ? { low, high } : null;
}

/** Something more where that is the same, so that a line lies in the middle. */
export function widened(range: Scale | null): Scale {
  const { low, high } = range ?? { low: 0, high: 0 };
  return low < high ? { low, high } : { low: low - 1, high: high + 1 };
}

export function drawEnvelope(pen: Pen, { items, place }: CounterPart, y: (value: number) => number): void {
  for (let index = 0; index < items.bucket.length; index++) {
    const x = place.left + (items.bucket[index] ?? 0) * place.step;
    const [from, to] = [Math.max(x, place.from), Math.min(x + place.step, place.to)];
    const [top, bottom] = [y(items.max[index] ?? 0), y(items.min[index] ?? 0)];
    if (from < to && bottom - top >= 1) {
      pen.fillRect(from, top, Math.max(1, to - from), bottom - top);
    }
  }
}

/** The line through all parts of a counter. */
export function drawLine(pen: Pen, parts: readonly CounterPart[], y: (value: number) => number): void {
  pen.beginPath();
  let held: number | null = null;
  for (const part of parts) {
    held = drawSteps(pen, part, y, Number.isNaN(part.items.held) ? held : part.items.held);
    held = part.isCut ? null : held;
  }
  pen.stroke();
}

/** A counter keeps its value until it changes: its line has steps. `held` is the value before; returned is the value then. */
function drawSteps(pen: Pen, { items, place }: CounterPart, y: (value: number) => number, held: number | null): number | null {
  let value = held;
  if (value !== null) {
    pen.moveTo(place.from, y(value));
  }
  for (let index = 0; index < items.bucket.length; index++) {
    const end = place.left + ((items.bucket[index] ?? 0) + 1) * place.step;
    const x = Math.min(Math.max(end, place.from), place.to);
    const next = items.last[index] ?? 0;
    if (value === null) {
      pen.moveTo(x, y(next));
    } else {
      pen.lineTo(x, y(value));
      pen.lineTo(x, y(next));
    }
    value = next;
  }
  if (value !== null) {
    pen.lineTo(place.to, y(value));
  }
  return value;
}
