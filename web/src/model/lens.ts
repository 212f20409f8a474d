// The choices of the tabs Statistics and Latency: which analysis, which of its tables, of which time, and which rows of that in which order. All
// of it stands in the URL.

import { endOf, type Viewport } from "./viewport.ts";
import type { Options } from "./jobs.ts";

/** All of the traces, the window, the selection. */
export type Scope = "all" | "window" | "selection";

export const SCOPES: ReadonlyArray<readonly [Scope, string]> = [
  ["all", "All"],
  ["window", "Window"],
  ["selection", "Selection"],
];

/** Which rows of a table are shown, and in which order. */
export interface Look {
  /** By which column, by its name; `null`: as they came. */
  readonly sort: { readonly column: string; readonly descending: boolean } | null;
  /** Rows that have this, in one column or (`null`) in any. */
  readonly text: string;
  readonly within: string | null;
}

export const PLAIN_LOOK: Look = { sort: null, text: "", within: null };

/** From how long to how long, in nanoseconds. */
export interface Range {
  readonly low: number;
  readonly high: number;
}

/** A group that was chosen of some statistics: rows with that text in the column of that name. */
export interface Group {
  readonly column: string;
  readonly text: string;
  /** The thread that it is, if it is one. */
  readonly tid: number | null;
}

export interface Lens {
  readonly scope: Scope;
  /** The analysis of Statistics, and its table by its class; `null`: the first one. */
  readonly kind: string;
  readonly table: string | null;
  readonly look: Look;
  /** As many rows of each table are asked for. */
  readonly rows: number;
  /** The source that Latency looks at: one of model/latency. And its table; `null`: that of the longest. */
  readonly latency: string;
  readonly latencyTable: string | null;
  readonly latencyLook: Look;
  /** As many of the longest are asked for. */
  readonly longest: number;
  /** The duration of the shown rows, and their group; `null`: anything. */
  readonly range: Range | null;
  readonly group: Group | null;
  /** Which events are pairs, as their fields are typed: begin, end, key, group. Empty: the events that roles name. */
  readonly pairs: readonly string[];
  /** Definitions of periods, one a line. */
  readonly periods: string;
}

/** As many rows can be asked for, of a table and of the longest; the first is the default. */
export const ROWS: readonly number[] = [1_000, 10_000];
const ROWS_PLAIN = ROWS[0] ?? 1_000;

export const PLAIN_LENS: Lens = {
  scope: "all",
  kind: "count",
  table: null,
  look: PLAIN_LOOK,
  rows: ROWS_PLAIN,
  latency: "",
  latencyTable: null,
  latencyLook: PLAIN_LOOK,
  longest: ROWS_PLAIN,
  range: null,
  group: null,
  pairs: [],
  periods: "",
};

/** Another analysis, or another table of it: the sorting and the search belong to the one before. */
export function ofTable(kind: string, table: string | null): Partial<Lens> {
  return { kind, table, look: PLAIN_LOOK };
}

export function ofLatency(latency: string): Partial<Lens> {
  return { latency, latencyTable: null, latencyLook: PLAIN_LOOK, range: null, group: null };
}

export function ofLatencyTable(latencyTable: string | null): Partial<Lens> {
  return { latencyTable, latencyLook: PLAIN_LOOK };
}

/** The times that are asked for; `null`: there is nothing selected. */
export function timesOf(scope: Scope, view: Viewport | null, selection: Viewport | null): Options | null {
  if (scope === "all") {
    return {};
  }
  const asked = scope === "window" ? view : selection;
  return asked === null ? null : { begin_ns: asked.begin, end_ns: endOf(asked) };
}

type Parts = ReadonlyArray<readonly [string, string]>;

/** As a URL has it, by the names of its parameters; defaults are left out. */
export function encodeLens(lens: Lens): Parts {
  const stats = lens.kind === PLAIN_LENS.kind && lens.table === null ? "" : [lens.kind, ...(lens.table === null ? [] : [lens.table])].join(".");
  const { range, group } = lens;
  const parts: Parts = [
    ["stats", stats],
    ["stats-rows", lens.rows === ROWS_PLAIN ? "" : String(lens.rows)],
    ...lookParts("stats", lens.look),
    ["latency", lens.latency],
    ["latency-table", lens.latencyTable ?? ""],
    ["latency-rows", lens.longest === ROWS_PLAIN ? "" : String(lens.longest)],
    ...lookParts("latency", lens.latencyLook),
    ["lasts", range === null ? "" : `${range.low}-${range.high}`],
    ["latency-group", group === null ? "" : `${group.column}${group.tid === null ? "" : `.${group.tid}`}~${group.text}`],
    ["scope", lens.scope === PLAIN_LENS.scope ? "" : lens.scope],
    ["periods", lens.periods],
  ];
  const pairs = lens.pairs.some((part) => part !== "") ? lens.pairs.map((part) => ["pairs", part] as const) : [];
  return [...parts.filter(([, text]) => text !== ""), ...pairs];
}

function lookParts(of: string, { sort, text, within }: Look): Parts {
  return [
    [`${of}-sort`, sort === null ? "" : `${sort.descending ? "down" : "up"}.${sort.column}`],
    [`${of}-find`, text],
    [`${of}-in`, within ?? ""],
  ];
}

/** Reads the output of [`encodeLens`]; parts that it does not understand are left out. */
export function decodeLens(parts: URLSearchParams): Lens {
  const [, kind, table] = /^([a-z]+)(?:\.([a-z-]+))?$/.exec(parts.get("stats") ?? "") ?? [];
  const name = (part: string): string | null => (/^[a-z-]+$/.test(parts.get(part) ?? "") ? parts.get(part) : null);
  const rows = (part: string): number => ROWS.find((count) => String(count) === parts.get(part)) ?? ROWS_PLAIN;
  return {
    scope: SCOPES.find(([one]) => one === parts.get("scope"))?.[0] ?? PLAIN_LENS.scope,
    kind: kind ?? PLAIN_LENS.kind,
    table: table ?? null,
    look: readLook(parts, "stats"),
    rows: rows("stats-rows"),
    latency: name("latency") ?? PLAIN_LENS.latency,
    latencyTable: name("latency-table"),
    latencyLook: readLook(parts, "latency"),
    longest: rows("latency-rows"),
    range: readRange(parts.get("lasts") ?? ""),
    group: readGroup(parts.get("latency-group") ?? ""),
    pairs: readPairs(parts.getAll("pairs").slice(0, 4)),
    periods: parts.get("periods") ?? "",
  };
}

function readPairs(pairs: readonly string[]): readonly string[] {
  return pairs.some((part) => part !== "") ? pairs : [];
}

function readLook(parts: URLSearchParams, of: string): Look {
  const [, direction, column] = /^(down|up)\.(.+)$/s.exec(parts.get(`${of}-sort`) ?? "") ?? [];
  const within = parts.get(`${of}-in`) ?? "";
  return { sort: column === undefined ? null : { column, descending: direction === "down" }, text: parts.get(`${of}-find`) ?? "", within: within === "" ? null : within };
}

function readRange(text: string): Range | null {
  const [, from, to] = /^(\d{1,15})-(\d{1,15})$/.exec(text) ?? [];
  const [low, high] = [Number(from), Number(to)];
  return from === undefined || to === undefined || low > high ? null : { low, high };
}

function readGroup(text: string): Group | null {
  const [, column, tid, said] = /^([a-z_-]+)(?:\.(\d{1,10}))?~(.*)$/s.exec(text) ?? [];
  return column === undefined || said === undefined ? null : { column, text: said, tid: tid === undefined ? null : Number(tid) };
}
