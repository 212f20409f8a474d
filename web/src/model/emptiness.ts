// The words in the place of a table or a list without rows: which events were looked at, and which were not. That there is nothing is said only where all of
// them were.

import { grouped } from "./cells.ts";
import type { EventQuestion } from "./events.ts";
import type { Scope } from "./lens.ts";
import type { Answer } from "./tables.ts";

/** A sentence, and the explanation or advice behind it. */
export interface EmptyWords {
  readonly why: string;
  readonly todo: string;
}

const SCOPES: Readonly<Record<Scope, string>> = { all: "these traces", window: "the window", selection: "the selection" };

/** For a table of an analysis. `isFiltered`: the filter of the page leaves events out. */
export function emptyTable(answer: Pick<Answer, "lost" | "lostMore" | "lostPackets" | "complete">, title: string, scope: Scope, isFiltered: boolean): EmptyWords {
  const gaps = [
    ...(isFiltered ? ["the filter excludes events"] : []),
    ...(answer.lost > 0n || answer.lostMore ? [`${lostText(answer.lost, answer.lostMore)} lost`] : []),
    ...(answer.lostPackets > 0n ? [`${grouped(answer.lostPackets)} packets were lost`] : []),
    ...(answer.complete ? [] : ["a part of the traces could not be read"]),
  ];
  const elsewhere = scope === "all" ? "" : " All of the traces may have some.";
  if (gaps.length > 0) {
    return { why: `${title}: none was found in ${SCOPES[scope]}.`, todo: `There may be some: ${gaps.join(", ")}.${elsewhere}` };
  }
  const reason = scope === "all" ? "All events were read; perhaps events of this kind were not recorded." : "All events of that time were read.";
  return { why: `${title}: there is none in ${SCOPES[scope]}.`, todo: `${reason}${elsewhere}` };
}

/** For rows that a choice has left none of; `text`: what was typed to find some. */
export function emptyChoice(text: string, omitted: number): EmptyWords {
  const loaded = omitted === 0 ? "" : ` ${grouped(BigInt(omitted))} more rows are not loaded: choose more rows.`;
  return text.trim() === ""
    ? { why: "No row is in the chosen range and group.", todo: `Choose a longer range, or all groups.${loaded}` }
    : { why: "No row has this.", todo: `Type less, or choose another column.${loaded}` };
}

interface Listing {
  readonly question: EventQuestion;
  /** Events that are known to be lost; `null`: some, and it is not known how many. */
  readonly lost: bigint | null;
  /** The traces are still recorded. */
  readonly isRecording: boolean;
}

/** For the list of events, all of which were looked at. */
export function emptyList({ question: { filter, names, threads }, lost, isRecording }: Listing): EmptyWords {
  const [hasNames, hasFilter] = [names.length > 0, filter !== null || threads !== undefined];
  const missing = lost === 0n ? "" : ` ${lost === null ? "Some events were" : lostText(lost, false)} lost, which no list can have.`;
  const now = isRecording ? " so far" : "";
  if (!hasNames && !hasFilter) {
    return { why: `There are no events in these traces${now}.`, todo: `${isRecording ? "They appear as they are recorded." : "\`kymo TRACE\` summarizes them."}${missing}` };
  }
  const of = hasNames && hasFilter ? "has one of these names and passes the filter" : hasNames ? "has one of these names" : "passes the filter";
  const change = hasNames && hasFilter ? "the names of events, or the filter" : hasNames ? "the names of events" : "the filter";
  return { why: `No event of these traces ${of}${now}.`, todo: `Change ${change}.${missing}` };
}

function lostText(lost: bigint, isMore: boolean): string {
  return `${isMore ? "at least " : ""}${grouped(lost)} ${lost === 1n ? "event was" : "events were"}`;
}
