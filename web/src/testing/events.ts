// A list of events that answers as the server does: pages at places, columns, names, counts, and filters of the plainest kind,
// `field == number` and `field < number`, joined by `&&`.

import { TOLD_COLUMNS, encodeRows, type Told } from "./arrow.ts";

/** What is answered. */
export interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer> | string;
}

interface At {
  readonly time: bigint;
  readonly rank: number;
}

export class Listing {
  private readonly all: readonly Told[];
  /** Only events before this time are there; `null`: all are. */
  until: bigint | null = null;

  /** In the order of time. */
  constructor(told: readonly Told[]) {
    this.all = told;
  }

  private get told(): readonly Told[] {
    const { until } = this;
    return until === null ? this.all : this.all.filter(({ time }) => time < until);
  }

  /** The answer to `events`, `events/count` or `filter/check`. */
  answer(path: string, params: URLSearchParams, body = ""): Answered {
    if (path === "filter/check") {
      const problem = problemOf((JSON.parse(body) as { filter: string }).filter);
      const problems = problem === null ? [] : [problem];
      return json(200, { valid: problem === null, problems, applies: problem === null ? 2 : 0, never: 0, untyped: 0 });
    }
    const problem = problemOf(params.get("filter") ?? "");
    if (problem !== null) {
      return json(400, { error: { code: "filter", message: problem.message } });
    }
    const names = params.getAll("event").filter((name) => !this.told.some((event) => isLike(event.name, name)));
    if (names.length > 0) {
      return json(400, { error: { code: "parameter", message: `no event has a name like \`${names[0]}\`` } });
    }
    const selected = this.selected(params);
    return path === "events/count" ? json(200, { events: selected.length, exact: true }) : page(selected, params);
  }

  private selected(params: URLSearchParams): readonly Told[] {
    const [names, filter] = [params.getAll("event"), conditionsOf(params.get("filter") ?? "")];
    const [begin, end] = [params.get("begin"), params.get("end")];
    return this.told.filter(
      (event) =>
        (begin === null || event.time >= BigInt(begin)) &&
        (end === null || event.time < BigInt(end)) &&
        (names.length === 0 || names.some((name) => isLike(event.name, name))) &&
        filter.every((condition) => condition(event)),
    );
  }
}

function page(all: readonly Told[], params: URLSearchParams): Answered {
  const place = readAt(params.get("from") ?? params.get("before") ?? "0");
  const limit = Number(params.get("limit") ?? 1_000);
  const later = all.findIndex((event) => event.time >= place.time);
  const at = later < 0 ? all.length : Math.min(later + place.rank, all.length);
  const [first, end] = params.has("from") ? [at, Math.min(at + limit, all.length)] : [Math.max(0, at - limit), at];
  const rows = all.slice(first, end);
  const isEnd = params.has("from") ? end === all.length : first === 0;
  const before = rows.length === 0 ? place : atOf(all, first);
  const last = atOf(all, end - 1);
  const after = rows.length === 0 ? place : { ...last, rank: last.rank + 1 };
  const plain = params.getAll("event");
  const own = plain.length === 1 && !/[*?]/.test(plain[0] ?? "") ? TOLD_COLUMNS.filter((name) => name !== "name") : TOLD_COLUMNS;
  const columns = params.get("columns")?.split(",") ?? own;
  const headers = { "Kymo-Before": atText(before), "Kymo-After": atText(after), "Kymo-End": String(isEnd) };
  return { status: 200, headers: { "Content-Type": "application/vnd.apache.arrow.stream", ...headers }, body: encodeRows(rows, columns) };
}

function atOf(all: readonly Told[], index: number): At {
  const time = all[index]?.time ?? 0n;
  return { time, rank: index - all.findIndex((event) => event.time === time) };
}

function readAt(text: string): At {
  const [time = "0", rank = "0"] = text.split(".");
  return { time: BigInt(time), rank: Number(rank) };
}

function atText({ time, rank }: At): string {
  return rank === 0 ? `${time}` : `${time}.${rank}`;
}

function isLike(name: string, pattern: string): boolean {
  return new RegExp(`^${pattern.replaceAll("*", ".*").replaceAll("?", ".")}$`).test(name);
}

const CONDITION = /^(\w+)\s*(==|<)\s*(\d+)$/;

function partsOf(filter: string): readonly string[] {
  return filter.split("&&").map((part) => part.replace(/[()]/g, "").trim()).filter((part) => part !== "");
}

function conditionsOf(filter: string): ReadonlyArray<(event: Told) => boolean> {
  return partsOf(filter).map((part) => {
    const [, name = "", operator, number = "0"] = CONDITION.exec(part) ?? [];
    return (event) => {
      const value = BigInt((name === "cpu_id" ? event.cpu : event[name]) as bigint | number);
      return operator === "==" ? value === BigInt(number) : value < BigInt(number);
    };
  });
}

function problemOf(filter: string): { message: string; help: string | null; begin: number; end: number; begin_utf16: number; end_utf16: number } | null {
  for (const part of partsOf(filter)) {
    const [begin, end] = [filter.indexOf(part), filter.indexOf(part) + part.length];
    const name = CONDITION.exec(part)?.[1];
    if (name === undefined || !["id", "cpu_id"].includes(name)) {
      return { message: `no class of events has \`${name ?? part}\``, help: "there is `id`", begin, end, begin_utf16: begin, end_utf16: end };
    }
  }
  return null;
}

function json(status: number, value: unknown): Answered {
  return { status, headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) };
}
