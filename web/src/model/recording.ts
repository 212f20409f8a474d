// The session state from the recorder of the shown traces, and the results of the page's requests to it.

import { counted } from "../units/counted.ts";
import type { Finding } from "./findings.ts";
import type { Shape } from "./json.ts";

/** A class of events that programs of the session have. */
export interface RecordedClass {
  readonly name: string;
  readonly level: number;
  /** Programs that have it. */
  readonly programs: number;
  /** The session records it. */
  readonly isOn: boolean;
  /** Filters that the session has on it, and where they run. */
  readonly filters: readonly string[];
  readonly runs: readonly string[];
  /** Why a filter does not run as machine code in the program. */
  readonly why: string | null;
}

/** Effect of a trigger. */
export type TriggerEffect = "start" | "stop" | "snapshot";

/** An event that starts or stops the session, or takes a snapshot. */
export interface Trigger {
  readonly name: string;
  readonly effect: TriggerEffect;
  readonly events: readonly string[];
  readonly filter: string | null;
  readonly repeats: boolean;
  readonly isArmed: boolean;
  readonly firings: number;
  /** The last event that has fired it, in words. */
  readonly last: string | null;
  /** Programs that cannot act themselves: the recorder watches their events. */
  readonly watched: number;
  readonly why: string | null;
}

/** A rule: of some events, the session keeps only those that took long, or some of many. */
export interface Rule {
  readonly name: string;
  readonly words: string;
  /** Its limit now, in words. */
  readonly limit: string;
  /** That is not the limit of its words. */
  readonly isSet: boolean;
  readonly runningNs: number | null;
  readonly kept: number;
  readonly letGo: number;
  readonly unknown: number;
  readonly problems: readonly string[];
  readonly why: string | null;
}

/** Events that are missing, by where they were lost. */
export interface Lost {
  readonly full: number;
  readonly noLane: number;
  readonly undefined: number;
  readonly unwritten: number;
}

export interface Recording {
  readonly session: string;
  /** The folder that is written. */
  readonly output: string;
  readonly state: "recording" | "ended";
  /** `overwrite`: the newest events stay in memory, and are written when the user takes a snapshot. */
  readonly mode: "write" | "overwrite";
  /** It records now: a trigger may have stopped it, or still have to start it. */
  readonly isOn: boolean;
  readonly triggers: readonly Trigger[];
  readonly rules: readonly Rule[];
  readonly command: string | null;
  readonly milliseconds: number;
  readonly events: number;
  readonly bytes: number;
  /** Programs that run. */
  readonly programs: number;
  readonly lost: Lost;
  /** Programs of which the first events may be missing, uncounted. */
  readonly latePrograms: number;
  /** Folders of programs: of those that ended before the recorder found the folder, everything is missing. */
  readonly lateFolders: readonly string[];
  /** No recorder ran for a while. */
  readonly hasGap: boolean;
  /** Events that a filter left out. */
  readonly filtered: number;
  readonly problems: readonly string[];
  /** Snapshots that were taken; `null`: there are none in this mode. */
  readonly snapshots: number | null;
  /** None once it has ended. Of very many, there are more than are told. */
  readonly classes: readonly RecordedClass[];
  readonly moreClasses: number;
  /** Why the recorder could not be asked: all else is the state known before. */
  readonly problem: string | null;
}

/** The member `recording` of an answer; `null`: no recorder records the shown traces. Throws a `ShapeFault`. */
export function readRecording(shape: Shape): Recording | null {
  const found = shape.get("recording");
  if (!found.given) {
    return null;
  }
  return {
    session: found.get("session").text(),
    output: found.get("output").text(),
    // The page can ask nothing of an unknown state that a newer recorder may be in.
    state: found.get("state").text() === "recording" ? "recording" : "ended",
    mode: found.get("mode").text() === "overwrite" ? "overwrite" : "write",
    // Servers that are older have no triggers.
    isOn: !found.get("on").given || found.get("on").flag(),
    triggers: found.get("triggers").given ? found.get("triggers").list().map(readTrigger) : [],
    rules: found.get("rules").given ? found.get("rules").list().map(readRule) : [],
    command: textIn(found.get("command")),
    milliseconds: found.get("milliseconds").number(),
    events: found.get("events").number(),
    bytes: found.get("bytes").number(),
    programs: found.get("programs").number(),
    lost: readLost(found.get("lost")),
    // Servers that are older do not say so.
    latePrograms: found.get("late_programs").given ? found.get("late_programs").number() : 0,
    lateFolders: found.get("late_folders").given ? textsIn(found.get("late_folders")) : [],
    hasGap: found.get("has_gap").given && found.get("has_gap").flag(),
    filtered: found.get("filtered").number(),
    problems: textsIn(found.get("problems")),
    snapshots: found.get("snapshots").given ? found.get("snapshots").number() : null,
    classes: found.get("classes").list().map(readClass),
    moreClasses: found.get("more_classes").given ? found.get("more_classes").number() : 0,
    problem: textIn(shape.get("problem")),
  };
}

function readLost(shape: Shape): Lost {
  return { full: shape.get("full").number(), noLane: shape.get("no_lane").number(), unwritten: shape.get("unwritten").number(), undefined: shape.get("undefined").number() };
}

function readRule(shape: Shape): Rule {
  const running = shape.get("running_ns");
  return {
    name: shape.get("name").text(),
    words: shape.get("words").text(),
    limit: shape.get("limit").text(),
    isSet: shape.get("is_set").flag(),
    runningNs: running.given ? running.number() : null,
    kept: shape.get("kept").number(),
    letGo: shape.get("let_go").number(),
    unknown: shape.get("unknown").number(),
    problems: textsIn(shape.get("problems")),
    why: textIn(shape.get("why")),
  };
}

/** The events of a rule in words. */
export function ruleState({ kept, letGo, unknown }: Rule): string {
  const all = kept + letGo;
  const those = `kept ${kept.toLocaleString("en")} of ${all.toLocaleString("en")} ${all === 1 ? "event" : "events"}`;
  return unknown === 0 ? those : `${those}, ${unknown.toLocaleString("en")} without a known begin`;
}

function readTrigger(shape: Shape): Trigger {
  const effect = shape.get("effect").text();
  const last = shape.get("last");
  return {
    name: shape.get("name").text(),
    effect: effect === "start" || effect === "snapshot" ? effect : "stop",
    events: textsIn(shape.get("events")),
    filter: textIn(shape.get("filter")),
    repeats: shape.get("repeats").flag(),
    isArmed: shape.get("armed").flag(),
    firings: shape.get("firings").number(),
    last: last.given ? `${last.get("event").text()} of ${last.get("program").text()} (process ${last.get("pid").number()}, thread ${last.get("tid").number()})` : null,
    watched: shape.get("watched").number(),
    why: textIn(shape.get("why")),
  };
}

/** State of a trigger in words. */
export function triggerState({ isArmed, firings, repeats }: Trigger): string {
  const times = firings === 1 ? "once" : `${firings.toLocaleString("en")} times`;
  if (isArmed) {
    return firings === 0 ? "armed" : `armed; has fired ${times}`;
  }
  return firings === 0 ? "disarmed" : repeats ? `disarmed; has fired ${times}` : `has fired ${times}`;
}

function readClass(shape: Shape): RecordedClass {
  return {
    name: shape.get("name").text(),
    level: shape.get("level").number(),
    programs: shape.get("programs").number(),
    isOn: shape.get("on").flag(),
    filters: textsIn(shape.get("filters")),
    runs: textsIn(shape.get("runs")),
    why: textIn(shape.get("why")),
  };
}

function textIn(shape: Shape): string | null {
  return shape.given ? shape.text() : null;
}

function textsIn(shape: Shape): readonly string[] {
  return shape.list().map((one) => one.text());
}

/** The events and programs that a change of the recording matches. */
export interface Matched {
  /** The result of that, as `kymo enable` says it. Servers that do not say so leave it to the page. */
  readonly sentence: string | null;
  readonly events: number;
  readonly programs: number;
  readonly allPrograms: number;
  /** Patterns that no event has, with names that are near. */
  readonly unmatched: readonly { readonly pattern: string; readonly near: readonly string[] }[];
  readonly notes: readonly string[];
}

export function readMatched(shape: Shape): Matched {
  return {
    sentence: textIn(shape.get("sentence")),
    events: shape.get("events").number(),
    programs: shape.get("programs").number(),
    allPrograms: shape.get("all_programs").number(),
    unmatched: shape.get("unmatched").list().map((one) => ({ pattern: one.get("pattern").text(), near: textsIn(one.get("near")) })),
    notes: textsIn(shape.get("notes")),
  };
}

/** A change of a rule's limit; `null`: that of its words again. */
export interface LimitChange {
  readonly act: "limit";
  readonly rule: string;
  readonly limit: string | null;
}

/** A change of triggers. */
export type TriggerTurn = { readonly act: "arm" | "remove"; readonly trigger: string } | { readonly act: "turn"; readonly on: boolean };

/** The snapshot that a flight recorder has written. */
export interface Snapshot {
  readonly output: string;
  readonly events: number;
  readonly problems: readonly string[];
}

export function readSnapshot(shape: Shape): Snapshot {
  const problems = shape.get("problems");
  return { output: shape.get("output").text(), events: shape.get("events").number(), problems: problems.given ? textsIn(problems) : [] };
}

/** The changes to the events of a session. */
export type Switching = "enable" | "disable" | "filter";

const DONE: Readonly<Record<Switching | "trigger", readonly [one: string, many: string]>> = {
  trigger: ["fires the trigger", "fire the trigger"],
  enable: ["is recorded", "are recorded"],
  disable: ["is not recorded any more", "are not recorded any more"],
  filter: ["has this filter, where it is recorded", "have this filter, where they are recorded"],
};

/** The result of a change, in a sentence. */
export function matchedText(act: Switching | "trigger", { sentence, events, programs, allPrograms }: Matched): string {
  if (sentence !== null) {
    return sentenceOf(sentence);
  }
  if (events === 0) {
    return allPrograms === 0 ? "No program runs that records; it holds for those that begin." : `No event of ${counted(allPrograms, "program")} matches; it holds for those that come.`;
  }
  return `${counted(events, "event")} of ${counted(programs, "program")} ${DONE[act][events === 1 ? 0 : 1]}.`;
}

/** Words of the recorder, which begins small, as a sentence. Lines that show where something is stay as they are. */
export function sentenceOf(words: string): string {
  const text = words.trimEnd();
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return text.includes("\n") || /[.!?]$/.test(text) ? begun : `${begun}.`;
}

/** Patterns that the user has typed, between spaces or commas. */
export function patternsIn(text: string): readonly string[] {
  return [...new Set(text.split(/[\s,]+/).filter((one) => one !== ""))];
}

const LEVELS = ["emergency", "alert", "critical", "error", "warning", "notice", "info", "debug:system", "debug:program", "debug:process", "debug:module", "debug:unit", "debug:function", "debug:line", "debug"];

export function levelText(level: number): string {
  return LEVELS[level] ?? `level ${level}`;
}

const PLACES: Readonly<Record<string, string>> = {
  native: "in the program, as machine code",
  interpreter: "in the program, as bytecode",
  recorder: "in the recorder",
  always: "nowhere, as all such events match",
  never: "nowhere, as no such event matches",
};

/** Where the filters of a class run, and why not better; `null`: it has none. */
export function whereText({ filters, runs, why }: RecordedClass): string | null {
  if (filters.length === 0) {
    return null;
  }
  const places = runs.map((place) => PLACES[place] ?? place);
  return `${places.length === 0 ? "is put into the program" : `runs ${places.join("; ")}`}${why === null ? "" : ` (${why})`}`;
}

/** The losses, one reason each. */
export function lossTexts({ full, noLane, unwritten, undefined: undefinedEvents }: Lost): readonly string[] {
  const parts: ReadonlyArray<readonly [number, string, string?]> = [
    [full, "found no room in memory"],
    [noLane, "was of a thread that had no memory at all", "were of threads that had no memory at all"],
    [unwritten, "could not be written to the disk"],
    [undefinedEvents, "has a definition that cannot be used", "have definitions that cannot be used"],
  ];
  return parts.filter(([count]) => count > 0).map(([count, why, whyOfSeveral = why]) => counted(count, why, whyOfSeveral));
}

/** How many events there were after so long. */
export interface Sample {
  readonly milliseconds: number;
  readonly events: number;
}

/** As many are kept: a minute, if the recorder tells twice a second. */
const SAMPLES_MAX = 121;

/** The samples with the latest one of the recorder. Another session, or one that begins anew, has samples of its own. */
export function withSample(samples: readonly Sample[], { milliseconds, events }: Sample): readonly Sample[] {
  const last = samples.at(-1);
  if (last === undefined || milliseconds < last.milliseconds || events < last.events) {
    return [{ milliseconds, events }];
  }
  return milliseconds === last.milliseconds ? samples : [...samples, { milliseconds, events }].slice(-SAMPLES_MAX);
}

/** Events a second between each two samples. */
export function ratesOf(samples: readonly Sample[]): readonly number[] {
  return samples.slice(1).map(({ milliseconds, events }, index) => {
    const before = samples[index];
    return before === undefined ? 0 : ((events - before.events) * 1_000) / (milliseconds - before.milliseconds);
  });
}

/** A line of numbers in a box, as the `points` of an SVG: the newest at the right, the highest at the top. */
export function sparkline(numbers: readonly number[], width: number, height: number): string {
  const most = Math.max(1e-9, ...numbers);
  const step = width / Math.max(1, SAMPLES_MAX - 2);
  const from = width - step * (numbers.length - 1);
  return numbers.map((number, index) => `${(from + index * step).toFixed(1)},${(height - (number / most) * height).toFixed(1)}`).join(" ");
}

/** The parts that a recording may lack without a count, as problems of the traces. */
export function uncounted(recording: Recording | null): readonly Finding[] {
  if (recording === null) {
    return [];
  }
  const { session, latePrograms, lateFolders, hasGap } = recording;
  const finding = (rule: string, message: string): Finding => ({ severity: "warning", rule, place: `session ${session}`, message, help: null, times: 1 });
  const [first] = lateFolders;
  const more = lateFolders.length > 1 ? ` and ${counted(lateFolders.length - 1, "other folder")}` : "";
  return [
    ...(hasGap ? [finding("recorder-gap", "no recorder ran for a while: programs that came and went meanwhile are not recorded")] : []),
    ...(latePrograms === 0 ? [] : [finding("late-programs", `events of ${counted(latePrograms, "program")} from before the recorder found ${latePrograms === 1 ? "it" : "them"} are not recorded`)]),
    ...(first === undefined ? [] : [finding("late-folders", `programs in ${first}${more} that ended before the recorder found that folder are not recorded, if there were any`)]),
  ];
}
