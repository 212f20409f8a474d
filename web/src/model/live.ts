// The server's account of traces that grow: until when all is there, how old that is, and how much came since the window was held back.

import { nanos, type Nanos } from "../units/time.ts";
import type { Status } from "./catalogue.ts";
import { duration } from "./clock.ts";
import type { Shape } from "./json.ts";
import { counted } from "../units/counted.ts";

/** Traces that a recorder writes, or has written until it ended. */
export interface Live {
  readonly state: "recording" | "ended";
  /** Everything before it is there, and stays as it is. */
  readonly watermark: Nanos;
  /** How old the watermark was when it was said; `null` where clocks know no time of day, and once nothing comes any more. */
  readonly behindMs: number | null;
  /** Why nothing new is seen, if that is so. */
  readonly problem: string | null;
}

/** The member `live` of a status; `null` where traces do not grow. Throws a `ShapeFault`. */
export function readLive(shape: Shape): Live | null {
  if (!shape.given) {
    return null;
  }
  const [behind, problem] = [shape.get("behind_ms"), shape.get("problem")];
  return {
    // A state that a newer server knows is none in which more comes, as far as this page knows.
    state: shape.get("state").text() === "recording" ? "recording" : "ended",
    watermark: nanos(shape.get("watermark_ns").whole()),
    behindMs: behind.given ? Math.max(0, behind.number()) : null,
    problem: problem.given ? problem.text() : null,
  };
}

/** Whether more is to come. */
export function isRecording(status: Status | null): boolean {
  return status?.live?.state === "recording";
}

/** The state of the traces when the window was held back. */
export interface Left {
  readonly end: Nanos;
  readonly events: bigint | null;
}

export function leftAt({ extent, events }: Status): Left {
  return { end: extent.end, events };
}

/** How old the shown end is: "0.4 s behind". `lag` is how far the window's end is behind the watermark; `null`: that is unknown. */
export function behindText({ behindMs }: Live, lag: Nanos): string | null {
  return behindMs === null ? null : `${secondsText(behindMs / 1_000 + Math.max(0, Number(lag)) / 1e9)} behind`;
}

/** So many seconds, as people look at them while they pass. */
export function secondsText(seconds: number): string {
  return seconds < 60 ? `${seconds.toFixed(1)} s` : duration(nanos(BigInt(Math.round(seconds)) * 1_000_000_000n));
}

/** The growth since then: "12.3 s, 45,012 events". How many events that is may not be known. */
export function sinceText(left: Left, { extent, events }: Status): string {
  const seconds = secondsText(Math.max(0, Number(extent.end - left.end)) / 1e9);
  if (events === null || left.events === null) {
    return seconds;
  }
  const count = events > left.events ? events - left.events : 0n;
  return `${seconds}, ${counted(count, "event")}`;
}
