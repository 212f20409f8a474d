// Why a thread waits, in words: the call that it is in, its disk requests, its waker, the thread that has its CPU.
//
// Where traces do not record something, the page says so; that differs from an unknown fact, and from one that does not hold.

import type { TrackNumber } from "../units/tiles.ts";
import { minus } from "../units/time.ts";
import type { Track } from "./catalogue.ts";
import { duration } from "./clock.ts";
import type { Item, ItemValue, RunItem, Wait, WaitCall, WaitRequest, Waker } from "./items.ts";
import { nameOf } from "./rows.ts";

/** A line of the explanation. */
export interface WaitLine {
  readonly name: string;
  readonly text: string;
  readonly hint?: string;
  readonly copy?: string | null;
  /** The item that can be picked instead. */
  readonly to?: Item | null;
  readonly isDoubtful?: boolean;
}

/** A call, and the file that it is about. */
export function callText({ value, fd }: WaitCall): string {
  return fd === null ? value.label : `${value.label} (fd ${fd})`;
}

/** All that is known of why a thread waits on its track; `at` finds tracks. */
export function waitLines(item: RunItem, wait: Wait, track: Track, at: (number: TrackNumber) => Track | null): WaitLine[] {
  return [...ofCall(wait, track), ...wait.requests.map(ofRequest), ...unaskedOf(item, wait), ...ofWaker(wait, at), ...ofTurn(item, wait, at)];
}

/** An unknown fact, and why. */
function absent(name: string, text: string, hint = ""): WaitLine {
  return { name, text, hint, copy: null, isDoubtful: true };
}

function ofCall({ call, unknown, unrecorded }: Wait, track: Track): WaitLine[] {
  if (call !== null) {
    const calls = track.id.endsWith("/state") ? `${track.id.slice(0, -"state".length)}calls` : null;
    const hint = call.beginKnown ? "" : "It was in it before the traces tell of it: of which file is not known.";
    return [{ name: "in", text: callText(call), hint: call.inDoubt ? "Events are missing around the call." : hint, to: calls === null ? null : { track: calls, time: call.begin }, isDoubtful: call.inDoubt }];
  }
  if (unrecorded.has("calls")) {
    return [absent("in", "not known: no system calls are recorded")];
  }
  return unknown.has("call")
    ? [absent("in", "not known", "None of its system calls was seen before.")]
    : [{ name: "in", text: "no system call", hint: "A page fault, an interrupt, or the kernel’s own thread.", copy: null }];
}

function ofRequest({ device, sector, bytes, isWrite, begin, end }: WaitRequest): WaitLine {
  const what = `${isWrite ? "write" : "read"} of ${bytes} bytes at sector ${sector}`;
  const hint = `asked for at ${begin} ns`;
  return end === null
    ? { name: `disk ${device}`, text: `${what}, not seen done`, hint, copy: what, isDoubtful: true }
    : { name: `disk ${device}`, text: `${what}, done after ${duration(minus(end, begin))}`, hint: `${hint}\ndone at ${end} ns`, copy: what };
}

/** A thread that waits so hard often waits for a disk. */
function unaskedOf({ value }: RunItem, { unrecorded }: Wait): WaitLine[] {
  return value.label === "uninterruptible" && unrecorded.has("requests") ? [absent("disk", "not known: no requests are recorded")] : [];
}

function ofWaker({ waker, unknown, unrecorded }: Wait, at: (number: TrackNumber) => Track | null): WaitLine[] {
  if (waker === null) {
    return unrecorded.has("wakeups")
      ? [absent("woken by", "not known: no wakeups are recorded")]
      : unknown.has("waker")
        ? [absent("woken by", "unknown", "No event tells that the thread was woken then.")]
        : [];
  }
  const cpu = at(waker.from);
  const row = (waker.value?.track == null ? null : at(waker.value.track)) ?? cpu;
  const isUnsaid = waker.irq === null && waker.softirq === null && unrecorded.has("interrupts");
  return [
    {
      name: "woken by",
      text: wakerText(waker, cpu, at),
      hint: isUnsaid ? "No interrupts are recorded: perhaps one of them did it." : "",
      to: row === null ? null : { track: row.id, time: waker.time },
    },
  ];
}

/** The waker, where it is, and from within which interrupt. */
function wakerText({ value, irq, softirq }: Waker, cpu: Track | null, at: (number: TrackNumber) => Track | null): string {
  const where = cpu === null ? "" : ` on ${nameOf(cpu)}`;
  const within = [irq?.label, softirq === null ? undefined : `softirq ${softirq.label}`].filter((label) => label !== undefined);
  const who = value === null ? "an unknown thread" : ofProcess(value, at);
  return within.length === 0 ? `${who}${where}` : `${within.join(" in ")}${where}, where ${who} ran`;
}

/** A thread, with its process if that has another number. */
function ofProcess({ label, owner, track }: ItemValue, at: (number: TrackNumber) => Track | null): string {
  const tid = track === null ? null : (at(track)?.tid ?? null);
  if (owner === undefined || owner.process === String(tid)) {
    return label;
  }
  return `${label} of ${owner.application === null ? `process ${owner.process}` : `${owner.application} (${owner.process})`}`;
}

/** The thread that has the CPU meanwhile, and the CPU that the waiting thread gets. */
function ofTurn(item: RunItem, { instead, to, unknown }: Wait, at: (number: TrackNumber) => Track | null): WaitLine[] {
  const lines: WaitLine[] = [];
  if (instead !== null) {
    const row = instead.track === null ? null : at(instead.track);
    lines.push({ name: "behind", text: instead.label, hint: "Who has the CPU when it begins to wait.", to: row === null ? null : { track: row.id, time: item.begin } });
  } else if (unknown.has("instead")) {
    lines.push(absent("behind", "unknown", "The thread that has the CPU when the wait begins."));
  }
  const cpu = to === null ? null : at(to);
  if (cpu !== null) {
    lines.push({ name: "runs then on", text: nameOf(cpu), copy: null, to: { track: cpu.id, time: item.end } });
  } else if (unknown.has("to")) {
    lines.push(absent("runs then on", "unknown"));
  }
  return lines;
}
