// Which of several rows of one time are meant: where a clock is coarse, many events have the same time, and those that a filter
// selects among them are known by their content.

import type { Rows } from "./arrow.ts";
import { jsonText } from "./eventtext.ts";

/** All that rows say, as a text each. */
export function contentsOf(rows: Rows): readonly string[] {
  const columns = rows.columns.filter((column) => !column.isEmpty).toSorted((one, other) => (one.name < other.name ? -1 : 1));
  return Array.from({ length: rows.count }, (_, row) =>
    columns.flatMap((column) => (column.at(row) === null ? [] : [`${column.name}=${jsonText(column.at(row))}`])).join("\n"),
  );
}

/** Which of `all` the entries of `some` are, which are in the same order. Equal ones are all selected, or none of them. */
export function ranksOf(all: readonly string[], some: readonly string[]): readonly number[] {
  const selected = new Set(some);
  return all.flatMap((content, rank) => (selected.has(content) ? [rank] : []));
}
