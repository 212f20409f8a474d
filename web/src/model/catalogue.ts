// The server's catalog: how far it is, which tracks the traces have, how their values are called.

import { level, trackNumber, valueNumber, type TrackNumber, type ValueNumber } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import type { Shape } from "./json.ts";
import { readLive, type Live } from "./live.ts";
import type { Extent } from "./viewport.ts";
import type { Levels } from "./wanted.ts";

/** How far the server is. `version` goes up whenever tiles, tracks or values change. */
export interface Status {
  readonly extent: Extent;
  /** Times count from the Unix epoch. */
  readonly unix: boolean;
  readonly levels: Levels;
  readonly version: number;
  readonly doneBytes: number;
  readonly totalBytes: number;
  readonly etaMs: number | null;
  readonly state: "building" | "complete" | "failed";
  readonly failure: string | null;
  readonly events: bigint | null;
  /** Events that are known to be lost; `null` if some were and their number is unknown. */
  readonly lost: bigint | null;
  /** Which server says so: another one each time that it is started. Older ones do not say. */
  readonly instance?: string;
  /** Whether traces grow, or have grown; `null`: they do not. Older servers know nothing of that, and nothing of recorders. */
  readonly live?: Live | null;
}

/** The kinds of rows of the timeline. */
export type TrackKind = "states" | "instants" | "counter" | "arrows" | "heat";

/** A row that the traces have. */
export interface Track {
  readonly number: TrackNumber;
  /** Stable from one day to the next, as opposed to the number. */
  readonly id: string;
  readonly kind: TrackKind;
  readonly name: string;
  readonly group: string;
  readonly host: string | null;
  readonly cpu: number | null;
  readonly process: string | null;
  readonly tid: number | null;
  readonly depth: number | null;
  readonly parent: TrackNumber | null;
  /** The unit of a counter. Older servers do not say. */
  readonly unit?: string | null;
}

/** A value that a track can show. */
export interface TrackValue {
  readonly number: ValueNumber;
  readonly label: string;
  readonly kind: string;
  /** A stable hash of the value's identity. */
  readonly colour: number;
  /** It means that nothing is done: a CPU is idle, a thread does not run. */
  readonly isRest?: boolean;
  /** The row of the value itself, as that of a thread, if it has one. */
  readonly track?: TrackNumber | null;
  /** The owner of a thread, where that is known. */
  readonly owner?: Owner;
}

/** A thread's process, and the application that this is: its name, with a hash that is the same in all traces. */
export interface Owner {
  readonly process: string;
  readonly application: string | null;
  readonly colour: number | null;
}

/** Both lists in the order of numbers, which only ever grow. */
export interface Catalogue {
  readonly tracks: readonly Track[];
  readonly values: readonly TrackValue[];
}

export const EMPTY_CATALOGUE: Catalogue = { tracks: [], values: [] };

/** The server's status of its timeline. Throws a `ShapeFault`. */
export function readStatus(shape: Shape): Status {
  const instance = optional(shape.get("instance"), (found) => found.label());
  const live = shape.get("live");
  const begin = nanos(shape.get("begin_ns").whole());
  // Something may happen in the last nanosecond that the server says: the window ends behind it.
  const end = nanos(shape.get("end_ns").whole() + 1n);
  return {
    extent: { begin, end: end < begin ? begin : end },
    unix: shape.get("unix").flag(),
    // Servers with buckets as short as a nanosecond do not say so.
    levels: { min: level(optional(shape.get("level_min"), (found) => found.number()) ?? 0), max: level(shape.get("level_max").number()) },
    version: shape.get("version").number(),
    doneBytes: shape.get("done_bytes").number(),
    totalBytes: shape.get("total_bytes").number(),
    etaMs: optional(shape.get("eta_ms"), (found) => found.number()),
    state: readState(shape.get("state")),
    failure: optional(shape.get("failure"), (found) => found.text()),
    events: optional(shape.get("events"), (found) => found.whole()),
    lost: optional(shape.get("lost_events"), (found) => found.whole()),
    ...(instance === null ? {} : { instance }),
    ...(live.unknown ? {} : { live: readLive(live) }),
  };
}

function readState(shape: Shape): Status["state"] {
  const found = shape.text();
  // A server that is newer than the page may know more states; none of them is complete.
  return found === "complete" || found === "failed" ? found : "building";
}

/** Whether another server answers than before, which counts tracks and values anew. Servers that do not identify themselves can only be told apart
 * by their knowledge of the traces, and only where `wasLost`: the one before was not heard for a while. */
export function isOtherServer(before: Status, now: Status, wasLost: boolean): boolean {
  if (before.instance !== undefined || now.instance !== undefined) {
    return before.instance !== now.instance;
  }
  const isSameTime = before.extent.begin === now.extent.begin && before.extent.end === now.extent.end;
  return wasLost && (now.version < before.version || !isSameTime);
}

/** The catalog with the server's additions. Throws a `ShapeFault`. */
export function readCatalogue(shape: Shape, before: Catalogue): Catalogue {
  return {
    tracks: appended(before.tracks, shape.get("tracks").list().map(readTrack)),
    values: appended(before.values, shape.get("values").list().map(readValue)),
  };
}

/** Old ones, then those that are new: a caller that asks twice from the same number gets some of them twice. */
function appended<T extends { readonly number: number }>(before: readonly T[], more: readonly T[]): readonly T[] {
  const end = (before.at(-1)?.number ?? -1) + 1;
  const fresh = more.filter((one) => one.number >= end);
  return fresh.length === 0 ? before : [...before, ...fresh];
}

/** All tracks with lower numbers are described. */
export function tracksKnown(catalogue: Catalogue): number {
  return (catalogue.tracks.at(-1)?.number ?? -1) + 1;
}

/** All values with lower numbers are described. */
export function valuesKnown(catalogue: Catalogue): number {
  return (catalogue.values.at(-1)?.number ?? -1) + 1;
}

function readTrack(shape: Shape): Track {
  return {
    number: trackNumber(shape.get("number").number()),
    id: shape.get("id").text(),
    kind: readKind(shape.get("kind")),
    name: shape.get("name").text(),
    group: shape.get("group").text(),
    host: optional(shape.get("host"), (found) => found.text()),
    cpu: optional(shape.get("cpu"), (found) => found.number()),
    process: optional(shape.get("process"), (found) => found.label()),
    tid: optional(shape.get("tid"), (found) => found.number()),
    depth: optional(shape.get("depth"), (found) => found.number()),
    parent: optional(shape.get("parent"), (found) => trackNumber(found.number())),
    unit: optional(shape.get("unit"), (found) => found.text()),
  };
}

const KINDS: ReadonlySet<string> = new Set(["states", "instants", "counter", "arrows", "heat"]);

function readKind(shape: Shape): TrackKind {
  const found = shape.text();
  return KINDS.has(found) ? (found as TrackKind) : "instants";
}

function readValue(shape: Shape): TrackValue {
  return {
    number: valueNumber(shape.get("number").number()),
    label: shape.get("label").text(),
    kind: shape.get("kind").text(),
    colour: shape.get("colour").number(),
    ...(optional(shape.get("is_rest"), (found) => found.flag()) === true ? { isRest: true } : {}),
    ...(shape.get("track").given ? { track: trackNumber(shape.get("track").number()) } : {}),
    ...readOwner(shape),
  };
}

/** The owner that a value gives for its thread. */
export function readOwner(shape: Shape): { owner?: Owner } {
  if (!shape.get("process").given) {
    return {};
  }
  return {
    owner: {
      process: shape.get("process").label(),
      application: optional(shape.get("application"), (found) => found.text()),
      colour: optional(shape.get("application_colour"), (found) => found.number()),
    },
  };
}

function optional<T>(shape: Shape, read: (shape: Shape) => T): T | null {
  return shape.given ? read(shape) : null;
}
