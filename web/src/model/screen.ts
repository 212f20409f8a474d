// The rows on the screen. Pinned rows stay at its top, all others scroll below them:
//
//     top of the screen   Pinned 2          rows whose `top` is less than `fixed`: where they are
//                         thread 4711
//                           calls
//     fixed           ───────────────────
//                         thread 4720       rows behind them: `scroll` CSS pixels higher than they are
//     height
//
// Half of the screen at most stays in place, so that there is always something to scroll; pinned rows that do not fit there scroll like all others.

import { cssPx, type CssPx } from "../units/screen.ts";
import { rowsBetween, type Row } from "./rows.ts";

/** The part of the rows that is on the screen, in CSS pixels. */
export interface RowScreen {
  readonly rows: readonly Row[];
  /** How much is scrolled away. */
  readonly scroll: number;
  readonly size: { readonly height: number };
}

const FIXED_PART = 0.5;

/** How high the pinned rows are that stay in place. */
export function fixedHeight({ rows, size }: Pick<RowScreen, "rows" | "size">): CssPx {
  let [fixed, tracks] = [0, 0];
  for (const row of rows) {
    if (!row.pinned || row.top + row.height > size.height * FIXED_PART) {
      break;
    }
    fixed = row.top + row.height;
    tracks += row.track === null && !row.folded ? 0 : 1;
  }
  // The head alone says nothing.
  return cssPx(tracks === 0 ? 0 : fixed);
}

/** Where a row is on the screen. */
export function topOnScreen(row: Row, fixed: number, scroll: number): CssPx {
  return cssPx(row.top < fixed ? row.top : row.top - scroll);
}

/** The rows that stay in place, and those below them of which something is on the screen, or on so many pixels below it. */
export function rowsOnScreen(screen: RowScreen, covered = 0): { readonly fixed: readonly Row[]; readonly rolled: readonly Row[] } {
  const fixed = fixedHeight(screen);
  const { rows, scroll, size } = screen;
  return { fixed: rowsBetween(rows, 0, fixed), rolled: rowsBetween(rows, Math.max(fixed, scroll + fixed), scroll + size.height + covered) };
}

/** Both of them, from top to bottom. */
export function rowsSeen(screen: RowScreen, covered = 0): readonly Row[] {
  const { fixed, rolled } = rowsOnScreen(screen, covered);
  return fixed.length === 0 ? rolled : [...fixed, ...rolled];
}

/** The height of the legend at most (legend.css), which covers rows. */
export const LEGEND_MAX = 84;

/** The row at a height of the screen. */
export function rowAt(screen: RowScreen, y: number): Row | null {
  const at = y < fixedHeight(screen) ? y : y + screen.scroll;
  return rowsBetween(screen.rows, at, at + 0.1)[0] ?? null;
}

/** Whether all of a row is seen. */
export function isSeenWholly(screen: RowScreen, row: Row): boolean {
  const fixed = fixedHeight(screen);
  return row.top < fixed || (row.top >= screen.scroll + fixed && row.top + row.height <= screen.scroll + screen.size.height);
}
