// The jobs of the stand-in: analyses of invented calls, as the true server would answer them. Tests hold jobs back, and let them go on.

import { BEGIN } from "./invented.ts";

const CALLS = 5_000;
const APART = 400_000;
const NAMES = ["read", "write", "poll", "futex"];

interface Call {
  readonly begin: bigint;
  readonly took: number;
  readonly name: string;
  readonly thread: string;
}

/** Calls with durations that are all different: 1 µs to 5 ms. */
export const INVENTED_CALLS: readonly Call[] = Array.from({ length: CALLS }, (_, index) => ({
  begin: BEGIN + BigInt(index * APART),
  took: 1_000 * (1 + ((index * 7_919) % CALLS)),
  name: NAMES[index % NAMES.length] ?? "",
  thread: index % 3 === 0 ? "nginx" : "postgres",
}));

interface Options {
  readonly begin_ns?: string | number;
  readonly end_ns?: string | number;
  readonly min_ns?: number;
  readonly max_ns?: number;
  readonly top?: number;
  readonly names?: readonly string[];
}

type State = "running" | "done" | "failed";

export class Office {
  /** Jobs stay as they are, a quarter done. */
  isHeld = false;
  /** The requests: methods and paths, with bodies. */
  readonly asked: string[] = [];
  private readonly jobs = new Map<string, { readonly kind: string; readonly options: Options }>();
  private count = 0;

  /** As if the server had just begun. */
  clear(): void {
    this.isHeld = false;
    this.asked.length = 0;
    this.jobs.clear();
    this.count = 0;
  }

  /** The messages of `changes`. */
  get told(): string {
    return `event: jobs\ndata: {"jobs":[${[...this.jobs.keys()].map((id) => this.job(id)).join(",")}]}\n\n`;
  }

  /** `null`: this is not about analyses. */
  answer(method: string, path: string, body: string): { readonly status: number; readonly body: string } | null {
    const [first, id = "", result] = path.split("/");
    if (first === "analyses") {
      return { status: 200, body: ANALYSES };
    }
    if (first !== "jobs") {
      return null;
    }
    this.asked.push(`${method} ${path}${body === "" ? "" : ` ${body}`}`);
    if (method === "POST") {
      const id = String(++this.count);
      // Times do not fit into a double: they stay texts.
      this.jobs.set(id, JSON.parse(body.replace(/:(\d{16,})/g, ':"$1"')) as { kind: string; options: Options });
      return { status: 202, body: this.job(id) };
    }
    const job = this.jobs.get(id);
    if (job === undefined) {
      return { status: 404, body: '{"error":{"code":"absent","message":"there is no such job"}}' };
    }
    if (method === "DELETE") {
      this.jobs.delete(id);
      return { status: 204, body: "" };
    }
    return { status: 200, body: result === undefined ? this.job(id) : resultOf(job.kind, job.options) };
  }

  private job(id: string): string {
    const job = this.jobs.get(id);
    const state: State = this.isHeld ? "running" : job?.kind === "cpu" ? "failed" : "done";
    const failure = state === "failed" ? { code: "traces", message: "no event of these traces has the role `thread_switch`" } : null;
    return JSON.stringify({ id, kind: job?.kind, state, done: state === "done" ? 400 : 100, total: 400, eta_ms: state === "running" ? 3_000 : null, failure });
  }
}

const column = (name: string, title: string, of: string): object => ({ name, title, class: of, unit: null });
const PER_SYSCALL = [column("syscall", "System call", "syscall"), column("count", "Calls", "number"), column("total", "Total", "duration")];
const SLOWEST = [column("time", "Time", "time-range"), column("duration", "Duration", "duration"), column("thread", "Thread", "process"), column("syscall", "System call", "syscall")];
const BINS = [column("low", "From", "duration"), column("high", "To", "duration"), column("count", "Calls", "number")];
const CLASSES = [column("name", "Event", "string"), column("count", "Count", "number")];
const TOTAL = [column("count", "Count", "number"), column("lost", "Lost", "number")];

const understands = { by: [], durations: true, sizes: false, cpus: false, threads: false, interrupts: false };
const analysis = (kind: string, title: string, tables: readonly object[]): object => ({ kind, title, description: `${title} that nobody made.`, tables, understands });
const ANALYSES = JSON.stringify({
  analyses: [
    analysis("count", "Events by class", [{ class: "per-class", title: "Classes of events", columns: CLASSES }]),
    analysis("cpu", "Busy CPUs", []),
    analysis("syscalls", "System calls", [{ class: "per-syscall", title: "System calls", columns: PER_SYSCALL }]),
  ],
});

/** The calls that end in the time and last as long as asked for. */
function chosen({ begin_ns, end_ns, min_ns, max_ns, names = [] }: Options): Call[] {
  const [begin, end] = [BigInt(begin_ns ?? 0), BigInt(end_ns ?? 2n ** 62n)];
  return INVENTED_CALLS.filter((call) => call.begin >= begin && call.begin < end && call.took >= (min_ns ?? 0) && call.took <= (max_ns ?? Infinity) && (names.length === 0 || names.includes(call.name)));
}

function resultOf(kind: string, options: Options): string {
  const calls = chosen(options);
  const top = options.top ?? 10;
  const span = `{"begin":${options.begin_ns ?? BEGIN},"end":${options.end_ns ?? BEGIN + BigInt(CALLS * APART)}}`;
  const table = (name: string, title: string, columns: readonly object[], rows: readonly string[]): string =>
    `{"class":"${name}","title":"${title}","span":${span},"omitted":${Math.max(0, rows.length - top)},"columns":${JSON.stringify(columns)},"rows":[${rows.slice(0, name === "distribution" ? rows.length : top).join(",")}]}`;
  const names = NAMES.map((name) => calls.filter((call) => call.name === name));
  const slowest = [...calls].sort((one, other) => other.took - one.took);
  const edges = Array.from({ length: 38 }, (_, index) => Math.round(1_000 * 1.26 ** index));
  const bins = edges.slice(1).map((high, index) => [edges[index] ?? 0, high] as const);
  const tables =
    kind === "count"
      ? [table("per-class", "Classes of events", CLASSES, [`["sched_switch",${calls.length}]`]), table("total", "All events", TOTAL, [`[${calls.length},{"value":0,"low":0,"high":null}]`])]
      : [
          table("per-syscall", "System calls", PER_SYSCALL, names.map((some, index) => `["${NAMES[index]}",${some.length},${some.reduce((sum, call) => sum + call.took, 0)}]`)),
          table("slowest", "Slowest system calls", SLOWEST, slowest.map(({ begin, took, thread, name }) => `[{"begin":${begin},"end":${begin + BigInt(took)}},${took},{"name":"${thread}","pid":1,"tid":2},"${name}"]`)),
          table("distribution", "How long system calls took", BINS, bins.map(([low, high]) => `[${low},${high},${calls.filter((call) => call.took >= low && call.took < high).length}]`)),
        ];
  return `{"tables":[${tables.join(",")}],"events_discarded":0,"events_discarded_is_lower_bound":false,"packets_lost":0,"complete":true}`;
}
