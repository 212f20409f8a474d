// The events at the ends of a duration, a call or an interrupt: their fields are its arguments and its result. A run does not say which events made it; these
// are the events at its begin and at its end, of its own thread or CPU, or else of any.

import type { Track } from "./catalogue.ts";
import { Fields, type EventItem, type Field, type RunItem, type TrackItem } from "./items.ts";

/** The event at an end of a run. */
export type End =
  | { readonly kind: "event"; readonly item: EventItem; readonly track: string }
  /** There is none, or `count` of them, of which none fits better than the others. */
  | { readonly kind: "unknown"; readonly count: number };

export type Side = "begin" | "end";

/** The kinds of values that begin with one event and end with another. */
const KINDS: ReadonlySet<string> = new Set(["slice", "call", "irq", "softirq"]);
const LAST_WORDS = /exit|end|stop|reply|leave|done|finish|complete/i;
/** The row of all events. */
const ALL_EVENTS = "all/events";

export function hasEnds(item: TrackItem): item is RunItem {
  return item.kind === "run" && KINDS.has(item.value.kind);
}

/** Where events of a track's runs are looked for: the tracks of its own thread or CPU come first. */
export function endTracks({ tid, cpu, host }: Track, tracks: readonly Track[]): readonly Track[] {
  const instants = tracks.filter(({ kind }) => kind === "instants");
  const own = instants.filter((one) => one.host === host && (tid !== null ? one.tid === tid : cpu !== null && one.cpu === cpu));
  return [...own, ...instants.filter(({ id }) => id === ALL_EVENTS)];
}

/** The event of a run among the items of one of these tracks at its begin or end. */
export function endAmong(items: readonly TrackItem[], run: RunItem, side: Side, track: string): End {
  const time = side === "begin" ? run.begin : run.end;
  const events = items.filter((item): item is EventItem => item.kind === "event" && item.time === time && item.event !== null);
  const fits = events.map((item) => fit(item, run.value.label, side));
  const best = Math.max(...fits);
  const [first, ...more] = events.filter((_, at) => fits[at] === best);
  return first !== undefined && more.length === 0 ? { kind: "event", item: first, track } : { kind: "unknown", count: events.length };
}

/** How well an event fits: it has the run's name, and it sounds like this end of something. */
function fit({ value, event }: EventItem, label: string, side: Side): number {
  const isNamed = value.label.includes(label) || hasText(event, label);
  return (isNamed ? 2 : 0) + (LAST_WORDS.test(value.label) === (side === "end") ? 1 : 0);
}

function hasText(field: Field, text: string): boolean {
  return field === text || (field instanceof Fields && [...field.members.values()].some((member) => hasText(member, text)));
}
