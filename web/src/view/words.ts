// The content of tiles at a time on a track, in words: all that is known of it without asking.

import type { Catalogue, Track } from "../model/catalogue.ts";
import { duration } from "../model/clock.ts";
import type { Piece } from "../model/cache.ts";
import { binBegin, inspect, type Inspected } from "../model/inspect.ts";
import { plain } from "../model/plain.ts";
import { exactQuantity } from "../model/quantity.ts";
import { nameOf } from "../model/rows.ts";
import { NONE } from "../model/tile.ts";
import { bucketSpan, levelFor, tilesIn } from "../model/wanted.ts";
import { widthOf, type State } from "../state/viewer.ts";
import { endOf } from "../model/viewport.ts";
import { nanos, type Nanos } from "../units/time.ts";
import type { Page } from "./page.ts";

/** The tiles of a track that are on the screen. */
export function piecesOf(page: Page, { status, view, size }: State, track: Track): readonly Piece[] {
  if (status === null || view === null) {
    return [];
  }
  const level = levelFor(view.span, widthOf({ size }), status.levels);
  return page.tiles.pieces(tilesIn(view, status.extent, level), track.number);
}

/** The name of a track, and its content at a time. */
export function wordsAt(page: Page, state: State, track: Track, time: Nanos): string {
  const { status, view } = state;
  if (status === null || view === null) {
    return nameOf(track);
  }
  const level = levelFor(view.span, widthOf(state), status.levels);
  const seen = inspect(piecesOf(page, state, track), status.extent.begin, time);
  return seen === null ? nameOf(track) : `${nameOf(track)}: ${foundText(seen, state.catalogue, bucketSpan(level), track.unit ?? null)}`;
}

const DOUBTS = { exact: "", estimated: " (estimated)", building: " (not all is read yet)", unknown: "" } as const;
const NOTHING = { exact: "nothing", estimated: "not read yet", building: "not read yet", unknown: "nothing is known here" } as const;

function foundText({ found, quality }: Inspected, catalogue: Catalogue, bucket: Nanos, unit: string | null): string {
  return found === null ? NOTHING[quality] : `${wordsOf(found, catalogue, bucket, unit)}${DOUBTS[quality]}`;
}

function wordsOf(found: NonNullable<Inspected["found"]>, catalogue: Catalogue, bucket: Nanos, unit: string | null): string {
  const name = (value: number): string => plain(catalogue.values[value]?.label ?? "…");
  switch (found.kind) {
    case "value": {
      const part = found.share >= 0.995 ? "" : ` ${percent(found.share)} of ${duration(bucket)}`;
      const second = found.second === NONE ? "" : `, then ${name(found.second)}`;
      const begins = found.begins > 1 ? `; ${found.begins} begin` : "";
      // Of one value alone its part says it.
      const busy = found.busy === null || found.second === NONE ? "" : `; busy for ${percent(found.busy)}`;
      return `${name(found.value)}${part}${second}${begins}${busy}`;
    }
    case "count": {
      const mostly = found.count === found.ofValue ? name(found.value) : `${found.ofValue.toLocaleString("en")} of them ${name(found.value)}`;
      return `${found.count.toLocaleString("en")} in ${duration(bucket)}: ${mostly}`;
    }
    case "durations":
      return `${found.count.toLocaleString("en")} in ${duration(bucket)}, most often from ${duration(binBegin(found.bin))} on`;
    case "number":
      return found.low === found.high ? exactQuantity(found.high, unit) : `${exactQuantity(found.low, null)} to ${exactQuantity(found.high, unit)}`;
  }
}

function percent(share: number): string {
  const found = share * 100;
  return found < 1 ? "< 1 %" : `${Math.round(found)} %`;
}

/** The value of a counter at a time, or now at the end of the window, with its unit. */
export function numberAt(page: Page, state: State, track: Track, time: Nanos | null): string {
  const { status, view } = state;
  if (status === null || view === null) {
    return "";
  }
  const at = time ?? nanos(endOf(view) - 1n);
  const seen = inspect(piecesOf(page, state, track), status.extent.begin, at);
  const level = levelFor(view.span, widthOf(state), status.levels);
  return seen === null ? "" : foundText(seen, state.catalogue, bucketSpan(level), track.unit ?? null);
}
