// The server's answer on one item of a track: a run of a value, an event with its fields, an arrow from track to track.
//
// Events are shown and copied as they were recorded, so numbers are kept as they were written: a field of 64 bits does not become a
// double, and a text of digits does not become a number.

import { trackNumber, type TrackNumber } from "../units/tiles.ts";
import { minus, nanos, type Nanos } from "../units/time.ts";
import { readBases, type FieldBase } from "./bases.ts";
import { readOwner, type Owner } from "./catalogue.ts";
import { Shape, parseJson } from "./json.ts";
import type { Extent } from "./viewport.ts";

/** The picked item: the run, event or arrow on a track at a time. `track` is the id that stays. */
export interface Item {
  readonly track: string;
  readonly time: Nanos;
}

/** A value that something shows: a thread, a state, a call. */
export interface ItemValue {
  readonly label: string;
  readonly kind: string;
  /** A stable hash of the value's identity. */
  readonly colour: number;
  /** The row of the value itself, as that of a thread. */
  readonly track: TrackNumber | null;
  /** The owner of a thread, where that is known. */
  readonly owner?: Owner;
}

/** A value from when to when; where an end is not known it is there until then at least. */
export interface RunItem {
  readonly kind: "run";
  readonly begin: Nanos;
  readonly end: Nanos;
  readonly beginKnown: boolean;
  readonly endKnown: boolean;
  /** Events are missing around it. */
  readonly inDoubt: boolean;
  readonly value: ItemValue;
  /** Why a thread waits, if it does, and the server was not asked for many at once. */
  readonly wait: Wait | null;
}

/** Why a thread waits. */
export interface Wait {
  /** The system call that it is in. */
  readonly call: WaitCall | null;
  readonly waker: Waker | null;
  /** Of a thread that could run: the thread that has the CPU when that begins. */
  readonly instead: ItemValue | null;
  /** Of a thread that could run: the CPU that it gets in the end. */
  readonly to: TrackNumber | null;
  /** The thread's disk requests that were not done when it began to wait. */
  readonly requests: readonly WaitRequest[];
  /** The unknown parts of this: `call`, `waker`, `instead`, `to`. */
  readonly unknown: ReadonlySet<string>;
  /** The kinds of events that these traces lack: `calls`, `wakeups`, `interrupts`, `requests`. */
  readonly unrecorded: ReadonlySet<string>;
}

export interface WaitCall {
  readonly value: ItemValue;
  readonly begin: Nanos;
  readonly beginKnown: boolean;
  readonly inDoubt: boolean;
  /** The file that it is about, by its number, where the trace has that. */
  readonly fd: bigint | null;
}

/** The waker of a thread. */
export interface Waker {
  readonly time: Nanos;
  /** The CPU where that happens. */
  readonly from: TrackNumber;
  /** The thread that runs there then, if that is known. */
  readonly value: ItemValue | null;
  readonly irq: ItemValue | null;
  readonly softirq: ItemValue | null;
}

/** A request to a disk. */
export interface WaitRequest {
  readonly device: string;
  readonly sector: bigint;
  readonly bytes: bigint;
  readonly isWrite: boolean;
  readonly begin: Nanos;
  /** When the disk was done with it, if that is known. */
  readonly end: Nanos | null;
}

export interface EventItem {
  readonly kind: "event";
  readonly time: Nanos;
  readonly value: ItemValue;
  /** All that it says; `null` where it cannot be told which one it is. */
  readonly event: Fields | null;
  /** In which bases its integers are written for people, where that is not 10. */
  readonly bases: readonly FieldBase[];
  /** Its thread, if that is known: the one that it names, or that its CPU ran. */
  readonly thread: ItemValue | null;
}

export interface ArrowItem {
  readonly kind: "arrow";
  readonly begin: Nanos;
  readonly end: Nanos;
  readonly endKnown: boolean;
  /** A message was received at its begin and sent at its end, as clocks say. */
  readonly receivedFirst: boolean;
  readonly from: TrackNumber;
  readonly to: TrackNumber;
  /** The woken thread, or the name of a message. */
  readonly value: ItemValue;
  /** The thread that ran where the arrow leaves, if that is known. */
  readonly waker: ItemValue | null;
}

export type TrackItem = RunItem | EventItem | ArrowItem;

export interface ItemsFound {
  /** All before was read: unknown parts stay unknown. */
  readonly complete: boolean;
  /** In the order of their begins. */
  readonly items: readonly TrackItem[];
  /** There may be more from then on. */
  readonly next: Nanos | null;
}

/** From when to when something is; an event is as short as anything can be. */
export function extentOf(item: TrackItem): Extent {
  return item.kind === "event" ? { begin: item.time, end: item.time } : { begin: item.begin, end: item.end };
}

/** The known ones of an item's ends. */
export function edgesOf(item: TrackItem): readonly Nanos[] {
  if (item.kind === "event") {
    return [item.time];
  }
  return [...(item.kind === "run" && !item.beginKnown ? [] : [item.begin]), ...(item.endKnown ? [item.end] : [])];
}

/** How long something takes, where both ends are known. */
export function durationOf(item: TrackItem): Nanos | null {
  if (item.kind === "event" || !item.endKnown || (item.kind === "run" && !item.beginKnown)) {
    return null;
  }
  return minus(item.end, item.begin);
}

export function sameItem(one: Item | null, other: Item | null): boolean {
  return one === other || (one !== null && other !== null && one.track === other.track && one.time === other.time);
}

/** A number as it was written. */
export class Figure {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  get isWhole(): boolean {
    return /^-?\d+$/.test(this.text);
  }
}

export type Field = null | boolean | string | Figure | readonly Field[] | Fields;

/** A structure: its members in their order. */
export class Fields {
  readonly members: ReadonlyMap<string, Field>;

  constructor(members: ReadonlyMap<string, Field>) {
    this.members = members;
  }
}

/** The answer to a question for items. Throws a `ShapeFault` or a `SyntaxError`. */
export function readItems(text: string): ItemsFound {
  const shape = new Shape(parseJson(text), "items");
  const exact = memberOf(parseFields(text), "items");
  const events = Array.isArray(exact) ? (exact as readonly Field[]) : [];
  return {
    complete: shape.get("complete").flag(),
    items: shape.get("items").list().flatMap((item, index) => readItem(item, memberOf(events[index], "event")) ?? []),
    next: shape.get("next_ns").given ? nanos(shape.get("next_ns").whole()) : null,
  };
}

/** One thing; `null` if it is of a kind that only a newer page knows. */
function readItem(shape: Shape, event: Field | undefined): TrackItem | null {
  const time = (name: string): Nanos => nanos(shape.get(name).whole());
  const value = readValue(shape.get("value"));
  switch (shape.get("kind").text()) {
    case "run":
      return {
        kind: "run",
        begin: time("begin_ns"),
        end: time("end_ns"),
        beginKnown: shape.get("begin_known").flag(),
        endKnown: shape.get("end_known").flag(),
        inDoubt: shape.get("in_doubt").flag(),
        value,
        wait: optional(shape.get("wait"), readWait),
      };
    case "event":
      return { kind: "event", time: time("time_ns"), value, event: event instanceof Fields ? event : null, bases: optional(shape.get("bases"), readBases) ?? [], thread: optional(shape.get("thread"), readValue) };
    case "arrow":
      return {
        kind: "arrow",
        begin: time("begin_ns"),
        end: time("end_ns"),
        endKnown: shape.get("end_known").flag(),
        receivedFirst: shape.get("received_first").flag(),
        from: trackNumber(shape.get("from").number()),
        to: trackNumber(shape.get("to").number()),
        value,
        waker: optional(shape.get("waker"), readValue),
      };
    default:
      return null;
  }
}

function optional<T>(shape: Shape, read: (shape: Shape) => T): T | null {
  return shape.given ? read(shape) : null;
}

function readWait(shape: Shape): Wait {
  const texts = (name: string): ReadonlySet<string> => new Set(shape.get(name).list().map((text) => text.text()));
  return {
    call: optional(shape.get("call"), (call) => ({
      value: readValue(call.get("value")),
      begin: nanos(call.get("begin_ns").whole()),
      beginKnown: call.get("begin_known").flag(),
      inDoubt: call.get("in_doubt").flag(),
      fd: optional(call.get("fd"), (fd) => fd.whole()),
    })),
    waker: optional(shape.get("waker"), (waker) => ({
      time: nanos(waker.get("time_ns").whole()),
      from: trackNumber(waker.get("from").number()),
      value: optional(waker.get("value"), readValue),
      irq: optional(waker.get("irq"), readValue),
      softirq: optional(waker.get("softirq"), readValue),
    })),
    instead: optional(shape.get("instead"), readValue),
    to: optional(shape.get("to"), (to) => trackNumber(to.number())),
    requests: shape.get("requests").list().map((request) => ({
      device: request.get("device").text(),
      sector: request.get("sector").whole(),
      bytes: request.get("bytes").whole(),
      isWrite: request.get("write").flag(),
      begin: nanos(request.get("begin_ns").whole()),
      end: optional(request.get("end_ns"), (end) => nanos(end.whole())),
    })),
    unknown: texts("unknown"),
    unrecorded: texts("unrecorded"),
  };
}

function readValue(shape: Shape): ItemValue {
  const track = shape.get("track");
  return {
    label: shape.get("label").text(),
    kind: shape.get("kind").text(),
    colour: shape.get("colour").number(),
    track: track.given ? trackNumber(track.number()) : null,
    ...readOwner(shape),
  };
}

function memberOf(field: Field | undefined, name: string): Field | undefined {
  return field instanceof Fields ? field.members.get(name) : undefined;
}

/** JSON with its numbers as they are written. Throws a `SyntaxError`. */
export function parseFields(text: string): Field {
  // Numbers are put into a list, and the parsed text has their places in it instead.
  const figures: Figure[] = [];
  const placed = text.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (found) => (found.startsWith('"') ? found : String(figures.push(new Figure(found)) - 1)));
  const fieldOf = (value: unknown): Field => {
    if (typeof value === "number") {
      return figures[value] ?? null;
    }
    if (Array.isArray(value)) {
      return value.map(fieldOf);
    }
    if (typeof value === "object" && value !== null) {
      return new Fields(new Map(Object.entries(value).map(([name, member]) => [name, fieldOf(member)])));
    }
    return typeof value === "string" || typeof value === "boolean" ? value : null;
  };
  return fieldOf(JSON.parse(placed));
}

/** A field as JSON: members of lists and structures on lines of their own, or all on one line. */
export function jsonOf(field: Field, form: "lines" | "line" = "line", indent = ""): string {
  if (field instanceof Figure) {
    return field.text;
  }
  if (field === null || typeof field !== "object") {
    return JSON.stringify(field);
  }
  const within = `${indent}  `;
  const [open, close] = field instanceof Fields ? "{}" : "[]";
  const parts = field instanceof Fields
    ? [...field.members].map(([name, member]) => `${JSON.stringify(name)}: ${jsonOf(member, form, within)}`)
    : field.map((one) => jsonOf(one, form, within));
  if (parts.length === 0 || form === "line") {
    return `${open}${parts.join(", ")}${close}`;
  }
  return `${open}\n${parts.map((part) => within + part).join(",\n")}\n${indent}${close}`;
}
