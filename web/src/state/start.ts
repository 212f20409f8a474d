// The state before traces are open: the choices, the work under way, and its fault.

import type { FaultKind } from "../model/fault.ts";
import type { StartInfo } from "../model/start.ts";

/** Work that takes a while. */
export type Busy =
  | { readonly kind: "opening"; readonly what: string }
  | { readonly kind: "sending"; readonly name: string; readonly files: number; readonly done: number; readonly total: number };

/** The fault, and the advice for it. */
export interface StartFault {
  readonly why: string;
  readonly todo: string;
}

export interface StartState {
  /** `null`: the server has not said yet whether traces are open. */
  readonly info: StartInfo | null;
  /** Traces are open, or the server says nothing of that: a request for traces learns more. */
  readonly isOpen: boolean;
  readonly busy: Busy | null;
  readonly fault: StartFault | null;
}

export const FIRST_START: StartState = { info: null, isOpen: false, busy: null, fault: null };

/** Whether the user has to choose. */
export function isChoosing(state: StartState): boolean {
  return state.info !== null && !state.isOpen && state.info.state !== "waiting";
}

/** Whether traces that are named have no event yet. */
export function isWaiting(state: StartState): boolean {
  return state.info?.state === "waiting" && !state.isOpen;
}

/** The server has said how it is. */
export function withInfo(state: StartState, info: StartInfo): StartState {
  const isOpening = info.state === "opening" && state.busy === null;
  // Work that another page has begun ends when the server says so.
  const isElsewhere = state.info?.state === "opening" && info.state === "choosing" && state.busy?.kind === "opening";
  const busy = isOpening ? ({ kind: "opening", what: "What was chosen in another window" } as const) : isElsewhere ? null : state.busy;
  return { ...state, info, isOpen: info.state === "open", busy };
}

/** Work begins, and the fault before is over. */
export function begun(state: StartState, busy: Busy): StartState {
  return { ...state, busy, fault: null };
}

/** So much of the files is there. */
export function sent(state: StartState, done: number, name: string): StartState {
  return state.busy?.kind === "sending" ? { ...state, busy: { ...state.busy, done, name } } : state;
}

/** The work has come to its end. */
export function ended(state: StartState, fault: StartFault | null): StartState {
  return { ...state, busy: null, fault };
}

/** The advice for a fault, by the wanted traces or list. */
export function startAdvice(kind: FaultKind, wanted: "path" | "files" | "sample" | "list"): string {
  switch (kind) {
    case "refused":
      return wanted === "path"
        ? "Name a folder with a `metadata` file, a folder above such, or an archive of them, on the machine where `kymo view` runs."
        : wanted === "files"
          ? "Drop the whole folder of a trace, with its `metadata` file, or an archive of it."
          : "Try again; the terminal output of `kymo view` may say more.";
    case "traces":
      return "Reload this page to see what is open.";
    case "token":
      return "Open the URL that `kymo view` has printed.";
    case "busy":
      return "Try again in a moment.";
    case "unreachable":
      return "Is `kymo view` still running? Start it again, and open the URL that it prints.";
    case "server":
      return "Is there room on the disk? The terminal output of `kymo view` may say more.";
    default:
      return "Are this page and `kymo view` of the same version? Reload the page.";
  }
}
