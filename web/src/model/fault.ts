// A fault between the page and the server, in one sentence, and the advice for it, in another one.

/** The kind of a fault. */
export type FaultKind = "unreachable" | "token" | "traces" | "refused" | "absent" | "busy" | "server" | "nonsense" | "aborted";

export interface Fault {
  readonly kind: FaultKind;
  readonly message: string;
}

/** It may go better when it is tried again. */
export function passes(kind: FaultKind): boolean {
  return kind === "unreachable" || kind === "busy" || kind === "server";
}

/** The advice for a fault. */
export function advice(kind: FaultKind): string {
  switch (kind) {
    case "unreachable":
      return "Is `kymo view` still running? It is asked again until it answers.";
    case "token":
      return "Open the URL that `kymo view` has printed.";
    case "traces":
      return "`kymo print` lists their events, `kymo info` summarizes them.";
    case "busy":
      return "It is asked again in a moment.";
    case "server":
      return "The page retries; the terminal output of `kymo view` may say more.";
    case "refused":
    case "absent":
    case "nonsense":
      return "Are this page and `kymo view` of the same version? Reload the page.";
    case "aborted":
      return "";
  }
}
