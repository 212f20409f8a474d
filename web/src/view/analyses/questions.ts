// Questions to analyses, with the filter of the whole page.

import { analysisOf } from "../../model/filter.ts";
import { threadsMeant } from "../../model/filter-threads.ts";
import type { Options, Question } from "../../model/jobs.ts";
import type { Page } from "../page.ts";

type Asking = Pick<Page, "store" | "desk">;

/** Where rows are only paler or hidden, an analysis is about all of the traces. */
export function questionFor(page: Asking, kind: string, options: Options): Question {
  // Events that name no thread are of the one that their CPU ran: analyses know which one that is.
  const threads = isOfThreads(page, kind) ? threadsOf(page) : null;
  const more = threads === null || options["tids"] !== undefined ? {} : { tids: threads };
  return { kind, options: { ...options, ...analysisOf(page.store.state.filter), ...more } };
}

/** Whether the filter leaves events out of the answers of an analysis. */
export function isExcluding(page: Asking, kind: string): boolean {
  return analysisOf(page.store.state.filter).filter !== undefined || (threadsOf(page) !== null && isOfThreads(page, kind));
}

/** Whether the filter means some threads, and an analysis is about all of them. */
export function isOfAllThreads(page: Asking, kind: string): boolean {
  return threadsOf(page) !== null && !isOfThreads(page, kind);
}

/** How far the answers of an analysis follow the filter, in words; empty: it leaves nothing out of analyses. */
export function excludedText(isSome: boolean, ofAllThreads: boolean): string {
  return `${isSome ? " · without what the filter excludes" : ""}${ofAllThreads ? " · of all threads: this analysis cannot tell them apart" : ""}`;
}

function threadsOf({ store }: Asking): readonly number[] | null {
  const { filter, catalogue } = store.state;
  return filter.mode === "exclude" ? (threadsMeant(filter, catalogue.tracks)?.numbers ?? null) : null;
}

function isOfThreads({ desk }: Asking, kind: string): boolean {
  return desk.store.state.analyses?.find((one) => one.kind === kind)?.ofThreads === true;
}
