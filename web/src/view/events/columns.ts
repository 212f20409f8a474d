// How wide the columns of the list are, and the texts of its cells.

import { named, type ListColumn, type Named } from "../../model/events.ts";
import { deltaText, fieldText, fieldsText, filledFields, threadText } from "../../model/eventtext.ts";
import { timeText, type Clock } from "../../model/clock.ts";
import { rowAt, timeOf } from "../../model/reel.ts";
import type { Rows } from "../../model/arrow.ts";
import { blockOf, type EventsState } from "../../state/events.ts";
import { nanos } from "../../units/time.ts";

/** A row as it is written. */
export interface WrittenRow {
  readonly number: number;
  readonly cells: readonly string[];
}

/** The texts of the rows of an answer, found out once for each. */
interface Known {
  readonly columns: Named;
  readonly fields: readonly string[];
}

const known = new WeakMap<Rows, Known>();

function knownOf(rows: Rows): Known {
  const found = known.get(rows) ?? { columns: named(rows), fields: filledFields(rows.columns) };
  known.set(rows, found);
  return found;
}

/** The rows on the screen, and one more that may be seen in part. */
export function writtenRows(state: EventsState, columns: readonly ListColumn[], clock: Clock): readonly WrittenRow[] {
  const found: WrittenRow[] = [];
  for (let number = state.top; number <= state.top + state.room; number++) {
    const at = rowAt(state.reel, number);
    if (at === null) {
      break;
    }
    found.push({ number, cells: columns.map((column) => cellOf(state, column, number, at.page.rows, at.row, clock)) });
  }
  return found;
}

function cellOf(state: EventsState, column: ListColumn, number: number, rows: Rows, row: number, clock: Clock): string {
  const time = timeOf(state.reel, number) ?? nanos(0);
  switch (column.kind) {
    case "time":
      return timeText(clock, time);
    case "delta":
      return deltaText(time, timeOf(state.reel, number - 1));
    case "thread":
      return threadText(knownOf(rows).columns, column.names, row);
    case "fields": {
      const block = blockOf(state, number);
      const { columns, fields } = block === null ? { columns: new Map(), fields: [] } : knownOf(block.rows);
      return block === null ? "…" : fieldsText(columns, fields, number - block.first);
    }
    default:
      return fieldText(knownOf(rows).columns, column.names[0] ?? "", row);
  }
}

type Widths = Partial<Record<ListColumn["kind"], string>>;

const WIDE: Widths = { delta: "13ch", cpu: "5ch", thread: "22ch", fields: "minmax(40ch, 1fr)" };
const NARROW: Widths = { delta: "13ch", cpu: "5ch", thread: "15ch", fields: "minmax(40ch, 1fr)" };

/** How much room there is, and how long the longest time and the longest name of an event are. */
export interface Room {
  readonly isNarrow: boolean;
  readonly time: number;
  readonly name: number;
}

/** The columns as a grid has them: those of fields are as wide as their texts, within reason. */
export function templateOf(columns: readonly ListColumn[], rows: readonly WrittenRow[], { isNarrow, time, name }: Room): string {
  const event = `${Math.max(12, Math.min(isNarrow ? 17 : 44, name + 5))}ch`;
  const known: Widths = { ...(isNarrow ? NARROW : WIDE), event, time: `${time + (isNarrow ? 2 : 6)}ch` };
  const widths = columns.map((column, index) => {
    const longest = rows.reduce((most, row) => Math.max(most, row.cells[index]?.length ?? 0), column.title.length);
    return known[column.kind] ?? `${Math.min(32, Math.max(6, longest + 2))}ch`;
  });
  return columns.some((column) => column.kind === "fields") ? widths.join(" ") : `${widths.join(" ")} 1fr`;
}
