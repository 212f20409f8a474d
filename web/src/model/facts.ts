// The known facts about an item on a track, as lines that can be read: name, text, text to copy, link.

import { trackNumber } from "../units/tiles.ts";
import type { Nanos } from "../units/time.ts";
import { baseAt, integerText, type FieldBase } from "./bases.ts";
import type { Track } from "./catalogue.ts";
import { duration, timeText, zoneText, type Clock } from "./clock.ts";
import { Fields, Figure, durationOf, jsonOf, type ArrowItem, type EventItem, type Field, type Item, type ItemValue, type RunItem, type TrackItem } from "./items.ts";
import { plain } from "./plain.ts";
import { nameOf } from "./rows.ts";
import { callText, waitLines } from "./waits.ts";

/** One line. */
export interface Fact {
  readonly name: string;
  readonly text: string;
  /** Further details of the fact. */
  readonly hint: string;
  /** The text to copy; `null` if a copy is of no use. */
  readonly copy: string | null;
  /** The item that can be picked instead. */
  readonly to: Item | null;
  /** It is less certain than it looks. */
  readonly isDoubtful: boolean;
}

/** A field of an event, or a head above some of them. */
export interface FieldLine {
  readonly name: string;
  /** `null`: it is the head of those below it that are deeper. */
  readonly text: string | null;
  readonly type: string;
  readonly hint: string;
  readonly copy: string;
  readonly depth: number;
}

/** Lines of fields that are shown at most; all of them are copied. */
export const FIELD_LINES_MAX = 300;

/** The context that telling facts needs. */
export interface Telling {
  readonly clock: Clock;
  readonly tracks: readonly Track[];
}

/** The title of an item, in a few words. */
export function titleOf(item: TrackItem, telling: Telling): string {
  return plain(wordsFor(item, telling));
}

function wordsFor(item: TrackItem, { tracks }: Telling): string {
  if (item.kind === "run" && item.wait?.call != null) {
    return `${item.value.label} in ${callText(item.wait.call)}`;
  }
  if (item.kind !== "arrow") {
    return item.value.label;
  }
  if (isMessage(item)) {
    const [from, to] = [item.from, item.to].map((number) => whoOf(trackAt(tracks, number)));
    return `${item.value.label}: ${from} → ${to}`;
  }
  const from = item.waker?.label ?? trackAt(tracks, item.from)?.name ?? "something";
  return `${from} wakes ${item.value.label}`;
}

/** Something is sent and received, as opposed to a wakeup. */
function isMessage(item: ArrowItem): boolean {
  return item.value.kind === "message";
}

/** The subject of a row of events. */
function whoOf(track: Track | null): string {
  return track === null ? "something" : nameOf(track).replace(/: events(\u2069?)$/, "$1");
}

/** All facts but the fields of events. */
export function factsOf(item: TrackItem, track: Track, telling: Telling): Fact[] {
  const facts = item.kind === "run" ? ofRun(item, track, telling) : item.kind === "event" ? ofEvent(item, track, telling) : ofArrow(item, telling);
  return [...facts, ...ofTrack(track)];
}

function fact(name: string, text: string, more: Partial<Fact> = {}): Fact {
  return { hint: "", copy: text, to: null, isDoubtful: false, ...more, name: plain(name), text: plain(more.text ?? text) };
}

function timeFact(name: string, time: Nanos, clock: Clock, more: Partial<Fact> = {}): Fact {
  const other = clock.style === "absolute" ? timeText({ ...clock, style: "relative" }, time) : "";
  const day = clock.unix ? `${timeText({ ...clock, style: "absolute", days: true }, time)} ${zoneText({ ...clock, style: "absolute" }, time)}` : "";
  const hint = [`${time} ns`, other === "" ? day : `${other} since begin`, other === "" ? "" : day].filter((part) => part !== "").join("\n");
  return fact(name, timeText(clock, time), { hint, copy: String(time), ...more });
}

function spanFact(name: string, item: TrackItem): Fact[] {
  const span = durationOf(item);
  return span === null ? [] : [fact(name, duration(span, 6), { hint: `${span} ns`, copy: String(span) })];
}

function ofRun(item: RunItem, track: Track, { clock, tracks }: Telling): Fact[] {
  const { begin, end, beginKnown, endKnown, value } = item;
  const facts = [
    timeFact("begin", begin, clock, beginKnown ? {} : { text: `since before ${timeText(clock, begin)}`, hint: "It was there before the traces tell of it.", isDoubtful: true }),
    timeFact("end", end, clock, endKnown ? {} : { text: `not before ${timeText(clock, end)}`, hint: "It has not ended in the traces, as far as they were read.", isDoubtful: true }),
    ...spanFact("duration", item),
  ];
  if (item.inDoubt) {
    facts.push(fact("in doubt", "events are missing around it", { copy: null, isDoubtful: true }));
  }
  if (item.wait !== null) {
    const lines = waitLines(item, item.wait, track, (number) => trackAt(tracks, number));
    facts.push(...lines.map(({ name, text, ...more }) => fact(name, text, more)));
  }
  const kind = KINDS[value.kind] ?? value.kind;
  const row = value.track === null ? null : trackAt(tracks, value.track);
  const link = row === null ? [] : [fact("its row", nameOf(row), { to: { track: row.id, time: begin }, copy: null })];
  return [...facts, fact("is a", kind, { copy: null }), ...ofOwner(value), ...link];
}

/** The owner of a thread. */
function ofOwner({ owner }: ItemValue): Fact[] {
  return owner === undefined ? [] : [fact("of process", owner.application === null ? owner.process : `${owner.application} (${owner.process})`, { copy: owner.process })];
}

/** The kinds of values, in words. */
const KINDS: Readonly<Record<string, string>> = {
  thread: "thread that runs",
  doing: "state of a thread",
  call: "system call",
  irq: "interrupt",
  softirq: "softirq",
  slice: "duration",
  state: "state",
};

function ofEvent(item: EventItem, track: Track, { clock, tracks }: Telling): Fact[] {
  const { thread } = item;
  const row = thread === null || thread.track === null ? null : trackAt(tracks, thread.track);
  // On the row of a thread it is known anyway.
  const of = thread === null || track.tid !== null ? [] : [fact("thread", thread.label, { to: row === null ? null : { track: row.id, time: item.time } }), ...ofOwner(thread)];
  const members = [...(item.event?.members ?? [])].filter(([name, field]) => name !== "time" && name !== "event" && !isNested(field));
  return [timeFact("time", item.time, clock), ...of, ...members.map(([name, field]) => fact(name, textOf(field, PLAIN), { copy: copyOf(field, PLAIN) }))];
}

function ofArrow(item: ArrowItem, { clock, tracks }: Telling): Fact[] {
  const { begin, end, endKnown, value, waker } = item;
  const [from, to] = [trackAt(tracks, item.from), trackAt(tracks, item.to)];
  const link = (track: Track | null, time: Nanos): Item | null => (track === null ? null : { track: track.id, time });
  if (isMessage(item)) {
    const end = (name: string, track: Track | null, time: Nanos): Fact => fact(name, track === null ? "a track that is not known yet" : whoOf(track), { to: link(track, time), copy: null });
    const [sent, received] = item.receivedFirst ? [item.end, begin] : [begin, item.end];
    const times = [timeFact("sent", sent, clock), timeFact("received", received, clock)];
    const span = item.receivedFirst ? spanFact("received first by", item).map((early) => ({ ...early, hint: "Clocks disagree: it was received before it was sent.", isDoubtful: true })) : spanFact("latency", item);
    return [fact("message", value.label), end("from", from, sent), end("to", to, received), ...times, ...span];
  }
  return [
    waker === null
      ? fact("waker", "unknown", { copy: null, isDoubtful: true })
      : fact("waker", waker.label, { to: link(waker.track === null ? from : trackAt(tracks, waker.track), begin) }),
    fact("from", from === null ? "a track that is not known yet" : nameOf(from), { to: link(from, begin), copy: null }),
    fact("wakee", value.label, { to: link(to, endKnown ? end : begin) }),
    timeFact("woken", begin, clock),
    endKnown ? timeFact("runs", end, clock) : fact("runs", "time unknown", { copy: null, isDoubtful: true }),
    ...spanFact("latency", item),
  ];
}

function ofTrack(track: Track): Fact[] {
  const facts = [fact("track", nameOf(track), { hint: track.id, copy: track.id }), fact("group", track.group, { copy: null })];
  const known: ReadonlyArray<readonly [string, string | number | null]> = [
    ["CPU", track.cpu],
    ["thread", track.tid],
    ["process", track.process],
    ["depth", track.depth],
    ["host", track.host],
  ];
  return [...facts, ...known.flatMap(([name, value]) => (value === null ? [] : [fact(name, String(value))]))];
}

function trackAt(tracks: readonly Track[], number: number): Track | null {
  const likely = tracks[number];
  return likely?.number === trackNumber(number) ? likely : (tracks.find((track) => track.number === number) ?? null);
}

/** How parts of an event are called; others have their own names. */
const PARTS: Readonly<Record<string, string>> = {
  payload: "fields",
  context: "context of the event",
  common_context: "context of all events",
  packet_context: "context of the packet",
  header: "header",
};

/** Where a field is in an event, and in which bases its integers are written. */
interface Place {
  readonly bases: readonly FieldBase[];
  readonly path: readonly string[];
}

const PLAIN: Place = { bases: [], path: [] };

function within({ bases, path }: Place, name: string): Place {
  return { bases, path: [...path, name] };
}

/** All fields of an event, line by line: its own ones first. */
export function fieldLines(event: Fields, bases: readonly FieldBase[]): FieldLine[] {
  const parts = [...event.members].filter(([, field]) => isNested(field));
  const rank = (name: string): number => (name === "payload" ? 0 : 1);
  const lines = parts.sort(([one], [other]) => rank(one) - rank(other)).flatMap(([name, field]) => linesOf(PARTS[name] ?? name, field, 0, { bases, path: [name] }));
  return lines.map((line) => ({ ...line, name: plain(line.name), text: line.text === null ? null : plain(line.text) }));
}

function linesOf(name: string, field: Field, depth: number, place: Place): FieldLine[] {
  const line = { name, type: typeOf(field), hint: hintOf(field, place), copy: copyOf(field, place), depth };
  if (!isNested(field) || enumerated(field) !== null) {
    return [{ ...line, text: textOf(field, place) }];
  }
  const members: ReadonlyArray<readonly [string, Field]> = field instanceof Fields ? [...field.members] : field.map((item, index) => [String(index), item]);
  const placeOf = (member: string): Place => (field instanceof Fields ? within(place, member) : place);
  // Short lists of plain values are read best on one line.
  if (members.length === 0 || (!(field instanceof Fields) && members.every(([, member]) => !isNested(member)) && textOf(field, place).length <= 60)) {
    return [{ ...line, text: members.length === 0 ? "none" : textOf(field, place) }];
  }
  return [{ ...line, text: null }, ...members.flatMap(([member, value]) => linesOf(member, value, depth + 1, placeOf(member)))];
}

function isNested(field: Field): field is readonly Field[] | Fields {
  return Array.isArray(field) || field instanceof Fields;
}

/** An enumeration is written as its value with the labels that this has. */
function enumerated(field: Field): { readonly value: Field; readonly labels: readonly Field[] } | null {
  if (!(field instanceof Fields) || field.members.size !== 2) {
    return null;
  }
  const [value, labels] = [field.members.get("value"), field.members.get("labels")];
  return value instanceof Figure && Array.isArray(labels) ? { value, labels: labels as readonly Field[] } : null;
}

function textOf(field: Field, place: Place): string {
  const enumeration = enumerated(field);
  if (enumeration !== null) {
    const labels = enumeration.labels.map((label) => textOf(label, place)).join(", ");
    const value = textOf(enumeration.value, place);
    return labels === "" ? value : `${labels} (${value})`;
  }
  if (field instanceof Figure) {
    return figureText(field, place);
  }
  if (Array.isArray(field)) {
    return `[${(field as readonly Field[]).map((one) => (typeof one === "string" ? jsonOf(one) : textOf(one, place))).join(", ")}]`;
  }
  return typeof field === "string" ? field : jsonOf(field);
}

function figureText(figure: Figure, { bases, path }: Place): string {
  return figure.isWhole ? integerText(BigInt(figure.text), baseAt(bases, path)) : figure.text;
}

/** A number is copied as it stands there, which is how filters take it, too. */
function copyOf(field: Field, place: Place): string {
  return typeof field === "string" ? field : field instanceof Figure ? figureText(field, place) : jsonOf(field);
}

function typeOf(field: Field): string {
  if (field instanceof Figure) {
    return field.isWhole ? "integer" : "real number";
  }
  if (Array.isArray(field)) {
    return `list of ${field.length}`;
  }
  if (field instanceof Fields) {
    return enumerated(field) === null ? "structure" : "enumeration";
  }
  return field === null ? "nothing" : typeof field === "boolean" ? "true or false" : "text";
}

/** Numbers that may be addresses or flags, as these are written; and those that are written so in base 10. */
function hintOf(field: Field, { bases, path }: Place): string {
  if (field instanceof Figure && field.isWhole && baseAt(bases, path) !== null) {
    return field.text;
  }
  const large = field instanceof Figure && field.isWhole && field.text.length > 3 && !field.text.startsWith("-");
  return large ? `0x${BigInt(field.text).toString(16)}` : "";
}
