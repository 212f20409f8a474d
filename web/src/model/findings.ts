// The problems of the traces, as the server tells them: parts that cannot be read or trusted, and when events were lost.

import { nanos, type Nanos } from "../units/time.ts";
import type { Shape } from "./json.ts";
import type { Extent } from "./viewport.ts";

/** One thing that is wrong. */
export interface Finding {
  readonly severity: "error" | "warning";
  /** The rule that is broken. */
  readonly rule: string;
  readonly place: string;
  readonly message: string;
  /** The possible remedy. */
  readonly help: string | null;
  /** How often, in this file. */
  readonly times: number;
}

export interface Findings {
  readonly findings: readonly Finding[];
  /** When events may be missing, in the order of time. */
  readonly losses: readonly Extent[];
  /** How many more such times there are. */
  readonly omitted: number;
}

export const NO_FINDINGS: Findings = { findings: [], losses: [], omitted: 0 };

/** The server's findings. Throws a `ShapeFault`. */
export function readFindings(shape: Shape): Findings {
  const findings = shape.get("findings").list().map((found): Finding => {
    const help = found.get("help");
    return {
      severity: found.get("severity").text() === "error" ? "error" : "warning",
      rule: found.get("rule").text(),
      place: found.get("place").text(),
      message: found.get("message").text(),
      help: help.given ? help.text() : null,
      times: found.get("times").number(),
    };
  });
  const losses = shape.get("losses").list().map((loss): Extent => ({ begin: nanos(loss.get("begin_ns").whole()), end: nanos(loss.get("end_ns").whole()) }));
  return { findings, losses, omitted: shape.get("losses_omitted").number() };
}

/** Why it matters, by the rule; of others their message says it. */
const WHY: Readonly<Record<string, string>> = {
  "events-discarded": "What these events would have changed is not seen: states and durations around the loss are in doubt, and sums are too small.",
  "packets-lost": "All events of these packets are missing: states and durations around them are in doubt, and sums are too small.",
  "cut-packet": "What was behind the cut is missing.",
  record: "Events behind that place, up to the end of its packet, are missing.",
  "packet-head": "Everything behind that place of the file is missing.",
  import: "That part of the file is not in the trace.",
  "unreadable-file": "Nothing of that file is shown.",
  "clocks-apart": "Whether something of one machine was before something of another one, is not certain.",
  "counters-apart": "Whether something of one CPU was before something of another one, is not certain if both are nearer to each other.",
  "packets-overlap": "Something near the borders of packets may be shown a little too early or too late.",
  "begin-after-end": "Until all was read, the overview may show it at a wrong time.",
  "sequence-steps-back": "What is shown may be of several recordings.",
  "gone-file": "The parts of it that were not read before are missing.",
  "recorder-gap": "Their activity is not seen, and nothing counts it.",
  "late-programs": "Their begin is not seen, and nothing counts these events.",
  "late-folders": "Their activity is not seen, and nothing counts it.",
  "discarded-steps-back": "The number of lost events is unknown.",
};

export function whyOf(finding: Finding): string {
  return WHY[finding.rule] ?? "";
}

/** How the traces are: unreadable parts are worse than lost or doubtful ones. */
export function healthOf({ findings, losses }: Findings, lost: bigint | null): "good" | "doubtful" | "bad" {
  if (findings.some(({ severity }) => severity === "error")) {
    return "bad";
  }
  return findings.length > 0 || losses.length > 0 || lost !== 0n ? "doubtful" : "good";
}

/** Whether events may be missing at a time. */
export function isLost({ losses }: Findings, time: Nanos): boolean {
  return losses.some(({ begin, end }) => begin <= time && time <= end);
}

/** Times that are a few pixels apart are one mark: there may be thousands of them. */
export function lossMarks(losses: readonly Extent[], pixelOf: (time: Nanos) => number, width: number, narrowest: number): (readonly [number, number])[] {
  const marks: [number, number][] = [];
  for (const { begin, end } of losses) {
    const [from, to] = [Math.floor(pixelOf(begin)), Math.ceil(pixelOf(end))];
    const until = Math.max(to, from + narrowest);
    if (until <= 0 || from >= width) {
      continue;
    }
    const last = marks.at(-1);
    if (last !== undefined && from <= last[1]) {
      last[1] = Math.max(last[1], until);
    } else {
      marks.push([Math.max(0, from), Math.min(width, until)]);
    }
  }
  return marks;
}
