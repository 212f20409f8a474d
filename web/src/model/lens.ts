// What the tabs Statistics and Latency look at: which analysis, which of its tables, and of which time.

import { endOf, type Viewport } from "./viewport.ts";
import type { Options } from "./jobs.ts";

/** All of the traces, what the window shows, what is selected. */
export type Scope = "all" | "window" | "selection";

export const SCOPES: ReadonlyArray<readonly [Scope, string]> = [
  ["all", "All"],
  ["window", "Window"],
  ["selection", "Selection"],
];

export interface Lens {
  readonly scope: Scope;
  /** The analysis of Statistics, and its table by its class; `null`: the first one. */
  readonly kind: string;
  readonly table: string | null;
  /** What Latency looks at: one of model/latency. */
  readonly latency: string;
  /** Which events are pairs, as their fields are typed: begin, end, key, group. Empty: what roles say. */
  readonly pairs: readonly string[];
  /** Definitions of periods, one a line. */
  readonly periods: string;
}

export const PLAIN_LENS: Lens = { scope: "all", kind: "count", table: null, latency: "", pairs: [], periods: "" };

/** The times that are asked for; `null`: there is nothing selected. */
export function timesOf(scope: Scope, view: Viewport | null, selection: Viewport | null): Options | null {
  if (scope === "all") {
    return {};
  }
  const asked = scope === "window" ? view : selection;
  return asked === null ? null : { begin_ns: asked.begin, end_ns: endOf(asked) };
}

/** As a URL has it, by the names of its parameters; what is plain is left out. */
export function encodeLens(lens: Lens): ReadonlyArray<readonly [string, string]> {
  const stats = lens.kind === PLAIN_LENS.kind && lens.table === null ? "" : [lens.kind, ...(lens.table === null ? [] : [lens.table])].join(".");
  const parts: ReadonlyArray<readonly [string, string]> = [
    ["stats", stats],
    ["latency", lens.latency],
    ["scope", lens.scope === PLAIN_LENS.scope ? "" : lens.scope],
    ...lens.pairs.map((part) => ["pairs", part] as const),
    ["periods", lens.periods],
  ];
  return parts.some(([name, text]) => name === "pairs" && text !== "") ? parts.filter(([name, text]) => name === "pairs" || text !== "") : parts.filter(([, text]) => text !== "");
}

/** What [`encodeLens`] wrote; what is not understood is left out. */
export function decodeLens(parts: URLSearchParams): Lens {
  const [, kind, table] = /^([a-z]+)(?:\.([a-z-]+))?$/.exec(parts.get("stats") ?? "") ?? [];
  const scope = SCOPES.find(([name]) => name === parts.get("scope"))?.[0] ?? PLAIN_LENS.scope;
  const latency = /^[a-z-]+$/.test(parts.get("latency") ?? "") ? (parts.get("latency") ?? "") : PLAIN_LENS.latency;
  return { scope, kind: kind ?? PLAIN_LENS.kind, table: table ?? null, latency, pairs: parts.getAll("pairs").slice(0, 4), periods: parts.get("periods") ?? "" };
}
