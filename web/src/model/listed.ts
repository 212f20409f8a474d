// The state of the tab Events, as a URL has it: which events, with which columns, the search, and where the list is.
//
// Where it is, is a place between two events, which needs no number of a row; row numbers of a large trace are unknown.

import { placeText, readPlace, type Place } from "./events.ts";

export interface Listed {
  /** The texts in the box of names, and in that of columns. */
  readonly names: string;
  readonly columns: string;
  /** The expression that is looked for. */
  readonly find: string;
  /** The list and the timeline follow each other. */
  readonly sync: boolean;
  /** `null`: where the window begins. */
  readonly at: ListPlace | null;
}

/** The row behind a place is on the screen. */
export interface ListPlace {
  readonly place: Place;
  /** It is the current one, so many rows below the first one on the screen (above it: less than 0); `null`: it is the first one, and none is current. */
  readonly below: number | null;
}

export const PLAIN_LISTED: Listed = { names: "", columns: "", find: "", sync: true, at: null };

/** Farther from the first row, the current one is no place to go to: other rows are on the screen. */
export const BELOW_MAX = 400;

/** As members of a URL; defaults are left out. */
export function listedParts({ names, columns, find, sync, at }: Listed): [string, string][] {
  const place = at === null ? "" : placeText(at.place);
  const parts: [string, string][] = [
    ["list", names],
    ["columns", columns],
    ["find", find],
    ["sync", sync ? "" : "off"],
    ["row", at === null || at.below === null ? "" : `${place}~${at.below}`],
    ["top", at === null || at.below !== null ? "" : place],
  ];
  return parts.filter(([, text]) => text !== "");
}

/** Reads the output of [`listedParts`]; parts that it does not understand are left out. */
export function readListed(parts: URLSearchParams): Listed {
  const text = (name: string): string => parts.get(name) ?? "";
  return { names: text("list"), columns: text("columns"), find: text("find"), sync: text("sync") !== "off", at: readRow(text("row")) ?? readTop(text("top")) };
}

function readRow(text: string): ListPlace | null {
  const [, at = "", below] = /^([^~]+)~(-?\d{1,3})$/.exec(text) ?? [];
  const place = readPlace(at);
  // Not -0, which is not written so.
  const rows = Number(below) || 0;
  return place === null || Math.abs(rows) > BELOW_MAX ? null : { place, below: rows };
}

function readTop(text: string): ListPlace | null {
  const place = readPlace(text);
  return place === null ? null : { place, below: null };
}
