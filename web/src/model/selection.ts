// The selection: a span of time, of all rows or of those from one to another.

import type { Row } from "./rows.ts";
import type { Viewport } from "./viewport.ts";

/** Two rows, by their keys; in the order in which the pointer came by. */
export interface RowSpan {
  readonly from: string;
  readonly to: string;
}

export interface Selection extends Viewport {
  /** Without it all rows are meant. */
  readonly rows?: RowSpan;
}

/** Of two ends one may be hidden now: then only the other one is left. */
export function rowsSelected(rows: readonly Row[], { rows: span }: Selection): readonly Row[] {
  if (span === undefined) {
    return rows;
  }
  const ends = [span.from, span.to].map((key) => rows.findIndex((row) => row.key === key)).filter((at) => at >= 0);
  return ends.length === 0 ? [] : rows.slice(Math.min(...ends), Math.max(...ends) + 1);
}
