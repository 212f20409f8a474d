// Answers questions for items as the server does: whatever is at the begin, then what begins before the end, and where to go on.

export interface TestItem {
  readonly begin: number;
  readonly end: number;
  /** What it is, as JSON without the times. */
  readonly more: Readonly<Record<string, unknown>>;
}

/** The answer for a track, whose items are in the order of their begins. Times count from `origin`. */
export function answerItems(all: readonly TestItem[], query: URLSearchParams, origin = 0n): string {
  const number = (name: string): number => Number(BigInt(query.get(name) ?? 0) - origin);
  const [begin, end, limit] = [number("begin"), number("end"), Number(query.get("limit") ?? 100)];
  const found = all.filter((item) => item.begin < end && (item.end > begin || item.begin >= begin));
  const next = found[limit];
  // Whoever goes on misses nothing: items at the same time come together, unless they are more than wanted.
  const isSplit = next !== undefined && found[0]?.begin !== next.begin;
  const told = next === undefined ? found : isSplit ? found.slice(0, limit).filter((item) => item.begin < next.begin) : found.slice(0, limit);
  const at = (time: number): string => String(origin + BigInt(time));
  const texts = told.map(({ begin: from, end: to, more }) => {
    const times = more["kind"] === "event" ? `"time_ns":${at(from)}` : `"begin_ns":${at(from)},"end_ns":${at(to)}`;
    return `{${times},${JSON.stringify(more).slice(1)}`;
  });
  const goOn = next === undefined ? "null" : at(isSplit ? next.begin : next.begin + 1);
  return `{"complete":true,"items":[${texts.join(",")}],"next_ns":${goOn}}`;
}
