// The state of the tab that controls the recorder, beside the session itself: the request under way, and the result.

import { advice, type FaultKind } from "../model/fault.ts";
import { sentenceOf, withSample, type Matched, type Recording, type Snapshot, type Switching } from "../model/recording.ts";
import type { State } from "./viewer.ts";

/** The part of the tab that something is said in: the session itself, its triggers and rules, the box for patterns, the list of classes. */
export type Place = "session" | "triggers" | "rules" | "box" | "classes";

export interface Refusal {
  readonly place: Place;
  readonly why: string;
  readonly todo: string;
}

/** The result of the box for patterns. */
export interface Switched {
  readonly act: Switching | "trigger";
  readonly matched: Matched;
}

export interface RecordState {
  /** Where the recorder is asked for something. */
  readonly busy: Place | null;
  /** Classes that are being switched, and the new state of each. */
  readonly switching: ReadonlyMap<string, boolean>;
  readonly switched: Switched | null;
  readonly snapshot: Snapshot | null;
  readonly refusal: Refusal | null;
  /** The user wants to stop the session, and has not said so twice. */
  readonly isStopping: boolean;
}

export const FIRST_RECORD: RecordState = { busy: null, switching: new Map(), switched: null, snapshot: null, refusal: null, isStopping: false };

/** The recorder is asked; its answer before in that place is over. */
export function asking(state: RecordState, place: Place): RecordState {
  const refusal = state.refusal?.place === place ? null : state.refusal;
  return { ...state, busy: place, refusal, switched: place === "box" ? null : state.switched };
}

/** It has answered. */
export function answered(state: RecordState, more: Partial<RecordState> = {}): RecordState {
  return { ...state, busy: null, ...more };
}

/** A class is being switched, or not any more. */
export function switchingTo(state: RecordState, name: string, to: boolean | null): RecordState {
  const switching = new Map(state.switching);
  if (to === null) {
    switching.delete(name);
  } else {
    switching.set(name, to);
  }
  return { ...state, switching };
}

const NEXT: Readonly<Record<Place, string>> = {
  session: "Nothing was changed; `kymo status` says how the session is.",
  rules: "Nothing was changed; `kymo limit` lists the session's rules.",
  triggers: "Nothing was changed; `kymo trigger` lists the session's triggers.",
  box: "Nothing was changed: correct it, and try again.",
  classes: "Nothing was changed; `kymo status --events` says what programs have.",
};

/** A request is refused, or was not answered. */
export function refused(state: RecordState, place: Place, kind: FaultKind, message: string): RecordState {
  const isOwn = kind === "traces" || kind === "refused";
  return { ...state, busy: null, isStopping: false, refusal: { place, why: sentenceOf(message), todo: isOwn ? NEXT[place] : advice(kind) } };
}

/** The recorder has said how its session is. One that is not there any more has ended. */
export function withRecording(state: State, said: Recording | null): State {
  const recording = said ?? (state.recording === null ? null : { ...state.recording, state: "ended" as const });
  if (recording === null) {
    return state;
  }
  const isSame = state.recording?.session === recording.session && state.recording.output === recording.output;
  return { ...state, recording, rates: withSample(isSame ? state.rates : [], recording) };
}
