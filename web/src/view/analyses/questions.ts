// Questions to analyses, with the filter of the whole page.

import { tester } from "../../model/choice.ts";
import { analysisOf, choosesEvents, isActive, type Filter } from "../../model/filter.ts";
import { threadFacets, threadsChosen, threadsMeant } from "../../model/filter-threads.ts";
import type { Analysis, Options, Question } from "../../model/jobs.ts";
import type { Page } from "../page.ts";

type Asking = Pick<Page, "store" | "desk">;

/** No CPU has this number. */
const NO_CPU = 999_999_999;

/** Where rows are only paler or hidden, an analysis is about all of the traces. `null`: the analyses are not known yet, so neither is how to ask. */
export function questionFor(page: Asking, kind: string, options: Options): Question | null {
  const analysis = analysisFor(page, kind);
  const filter = filterOf(page);
  if (page.desk.store.state.analyses === null && filter.mode === "exclude" && isActive(filter)) {
    return null;
  }
  // Events that name no thread are of the one that their CPU ran: analyses know which one that is.
  const threads = analysis?.ofThreads === true ? threadsOf(page, analysis) : null;
  const cpus = cpusOf(page, analysis);
  const more = { ...(threads === null || options["tids"] !== undefined ? {} : { tids: threads }), ...(cpus === null || options["cpus"] !== undefined ? {} : { cpus }) };
  return { kind, options: { ...options, ...(analysis?.ofEvents === false ? {} : analysisOf(filter)), ...more } };
}

/** How far the answers of an analysis follow the filter. */
export interface Following {
  /** It leaves something out of them. */
  readonly isExcluding: boolean;
  /** It means some threads, and they are about all of them. */
  readonly ofAllThreads: boolean;
  /** It means some events, and they are about all of them. */
  readonly ofAllEvents: boolean;
  /** It only dims or hides rows: they are about everything. */
  readonly isAside: boolean;
}

export function followingOf(page: Asking, kind: string): Following {
  const filter = filterOf(page);
  const analysis = analysisFor(page, kind);
  const isAsked = filter.mode === "exclude";
  const isAside = !isAsked && isActive({ ...filter, states: null });
  if (analysis?.ofEvents === false) {
    const threads = isAsked && threadFacets(filter).length > 0;
    const isOfSome = threads && analysis.ofThreads && threadsOf(page, analysis) !== null;
    return { isExcluding: isOfSome || cpusOf(page, analysis) !== null, ofAllThreads: threads && !isOfSome, ofAllEvents: isAsked && choosesEvents(filter), isAside };
  }
  const threads = threadsOf(page, analysis);
  const isOfThreads = analysis?.ofThreads === true;
  return { isExcluding: analysisOf(filter).filter !== undefined || (threads !== null && isOfThreads), ofAllThreads: threads !== null && !isOfThreads, ofAllEvents: false, isAside };
}

/** The same in words; empty: the filter leaves nothing out of analyses. */
export function followingText({ isExcluding, ofAllThreads, ofAllEvents, isAside }: Following): string {
  return [
    isExcluding ? " · without what the filter excludes" : "",
    ofAllThreads ? " · of all threads: this analysis cannot tell them apart" : "",
    ofAllEvents ? " · of all events: this analysis needs every change of threads" : "",
    isAside ? " · of everything: only exclude applies the filter to analyses" : "",
  ].join("");
}

function filterOf({ store }: Asking): Filter {
  return store.state.filter;
}

function analysisFor({ desk }: Asking, kind: string): Analysis | null {
  return desk.store.state.analyses?.find((one) => one.kind === kind) ?? null;
}

function threadsOf({ store }: Asking, analysis: Analysis | null): readonly number[] | null {
  const { filter, catalogue } = store.state;
  const meant = analysis?.ofEvents === false ? threadsChosen : threadsMeant;
  return filter.mode === "exclude" ? (meant(filter, catalogue.tracks)?.numbers ?? null) : null;
}

/** The CPUs that the filter means, for an analysis that no expression can be about. */
function cpusOf({ store }: Asking, analysis: Analysis | null): readonly number[] | null {
  const { filter, catalogue } = store.state;
  if (analysis?.ofEvents !== false || filter.mode !== "exclude" || filter.cpus === null) {
    return null;
  }
  const known = new Set(catalogue.tracks.flatMap(({ cpu }) => cpu ?? []));
  const chosen = [...known].filter(tester(filter.cpus)).sort((one, other) => one - other);
  return chosen.length === 0 ? [NO_CPU] : chosen;
}
