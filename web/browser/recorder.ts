// The recorder of the stand-in: a session with classes of events that are switched on and off, and filters. It remembers the requests.

export interface RecorderAnswer {
  readonly status: number;
  readonly body: string;
}

interface Class {
  readonly name: string;
  readonly level: number;
  readonly programs: number;
  on: boolean;
  filters: string[];
  readonly runs: string[];
  readonly why: string | null;
}

interface Act {
  readonly act: string;
  readonly events?: readonly string[];
  readonly filter?: string | null;
  readonly effect?: string;
  readonly repeat?: boolean;
  readonly trigger?: string;
  readonly on?: boolean;
  readonly rule?: string;
  readonly limit?: string | null;
}

interface Rule {
  readonly name: string;
  readonly words: string;
  limit: string;
  is_set: boolean;
  readonly running_ns: number | null;
  readonly kinds: readonly unknown[];
  kept: number;
  let_go: number;
  readonly unknown: number;
  readonly forgotten: number;
  readonly without: number;
  readonly problems: readonly string[];
  readonly why: string | null;
}

interface Trigger {
  readonly name: string;
  readonly effect: string;
  readonly events: readonly string[];
  readonly filter: string | null;
  readonly repeats: boolean;
  armed: boolean;
  firings: number;
  readonly suppressed: number;
  last: unknown;
  readonly watched: number;
  readonly why: string | null;
}

const CLASSES: ReadonlyArray<readonly [string, number, boolean, string[]]> = [
  ["irq:handler_entry", 6, true, ["native"]],
  ["net:received", 6, true, ["native"]],
  ["net:sent", 6, true, ["native"]],
  ["sched:switch", 14, true, ["native"]],
  ["sched:wakeup", 14, false, []],
  ["server:request_begin", 4, true, ["recorder"]],
  ["server:request_end", 4, true, ["recorder"]],
];

export class Recorder {
  /** There is a session that writes the shown trace. */
  isThere = false;
  state: "recording" | "ended" = "recording";
  mode: "write" | "overwrite" = "write";
  milliseconds = 1_500;
  events = 12_000;
  bytes = 3_400_000;
  programs = 2;
  lost = { full: 0, no_lane: 0, unwritten: 0, undefined: 0 };
  problems: string[] = [];
  latePrograms = 0;
  hasGap = false;
  /** Why it cannot be asked; it tells the state known before. */
  problem: string | null = null;
  snapshots = 0;
  classes: Class[] = [];
  on = true;
  triggers: Trigger[] = [];
  rules: Rule[] = [];
  /** The requests, as texts. */
  readonly asked: string[] = [];
  /** It refuses with this sentence. */
  refusal: string | null = null;

  constructor() {
    this.clear();
  }

  /** As if the session had just begun. */
  clear(): void {
    [this.isThere, this.state, this.mode, this.refusal, this.problem, this.snapshots] = [false, "recording", "write", null, null, 0];
    [this.milliseconds, this.events, this.bytes, this.programs] = [1_500, 12_000, 3_400_000, 2];
    this.lost = { full: 0, no_lane: 0, unwritten: 0, undefined: 0 };
    this.problems = [];
    [this.latePrograms, this.hasGap] = [0, false];
    this.asked.length = 0;
    [this.on, this.triggers] = [true, []];
    this.classes = CLASSES.map(([name, level, on, runs]) => ({ name, level, programs: name.startsWith("server:") ? 1 : 2, on, filters: [], runs: on ? runs : [], why: runs[0] === "recorder" ? "its program was built without filters" : null }));
  }

  /** Half a second more was recorded. */
  tick(): void {
    this.milliseconds += 500;
    this.events += 4_000 + (this.milliseconds % 3_000);
    this.bytes += 1_000_000;
  }

  get session(): string {
    const { state, mode, milliseconds, events, bytes, programs, lost, problems, problem } = this;
    const snapshots = mode === "overwrite" ? this.snapshots : null;
    const classes = state === "ended" ? [] : this.classes;
    const session = { session: "server", output: "/home/somebody/kymo-traces/server", state, mode, on: this.on, triggers: this.triggers, rules: this.rules, command: "./server 1", milliseconds, events, bytes, programs, lost, late_programs: this.latePrograms, late_folders: [], has_gap: this.hasGap, filtered: 310, problems, snapshots, classes, more_classes: 0 };
    return JSON.stringify({ recording: this.isThere ? session : null, problem });
  }

  /** The messages of `changes`. */
  get told(): string {
    return this.isThere ? `event: recording\ndata: ${this.session}\n\n` : "";
  }

  /** `null`: this is not about recording. */
  answer(method: string, path: string, body: string): RecorderAnswer | null {
    if (path !== "recording") {
      return null;
    }
    if (method === "GET") {
      return { status: 200, body: this.session };
    }
    this.asked.push(body);
    if (this.refusal !== null || !this.isThere) {
      return refused(409, this.refusal ?? "no session records these traces");
    }
    const act = JSON.parse(body) as Act;
    switch (act.act) {
      case "enable":
      case "disable":
      case "filter":
        return this.select(act);
      case "snapshot":
        this.snapshots += this.mode === "overwrite" ? 1 : 0;
        return this.mode === "overwrite" ? this.said('"snapshot":{"output":"/home/somebody/kymo-traces/server/snapshot-1","events":41234,"problems":["lane_3 was too late"]}') : refused(409, "session `server` writes all that it records: only those that overwrite have snapshots");
      case "trigger":
        return this.watch(act);
      case "arm":
        for (const one of this.triggers.filter(({ name }) => name === act.trigger)) {
          one.armed = true;
        }
        return this.said("");
      case "remove":
        this.triggers = this.triggers.filter(({ name }) => name !== act.trigger);
        return this.said("");
      case "turn":
        this.on = act.on === true;
        return this.said("");
      case "limit":
        for (const one of this.rules.filter(({ name }) => name === act.rule)) {
          [one.limit, one.is_set] = act.limit === null || act.limit === undefined ? ["5ms", false] : [act.limit, true];
        }
        return this.said("");
      case "stop":
        this.state = "ended";
        this.programs = 0;
        return this.said("");
      default:
        return refused(400, `\`act\` is \`${act.act}\`; there are enable, disable, filter, snapshot and stop`);
    }
  }

  private select({ act, events = [], filter = null }: Act): RecorderAnswer {
    const wrong = filter === null ? null : /^\w+ (?:==|<|>) \d+$/.test(filter) ? null : filter;
    if (wrong !== null) {
      return refused(409, `found the end, expected a number\n  ${wrong}\n  ${" ".repeat(wrong.length)}^`);
    }
    const isLike = (name: string, pattern: string): boolean => new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(name);
    const found = this.classes.filter((one) => events.some((pattern) => isLike(one.name, pattern)) && (act !== "filter" || one.on));
    for (const one of found) {
      one.on = act !== "disable";
      one.filters = act === "disable" || filter === null ? [] : [filter];
    }
    const unmatched = events.filter((pattern) => !this.classes.some((one) => isLike(one.name, pattern))).map((pattern) => ({ pattern, near: this.near(pattern) }));
    const notes = filter !== null && found.some(({ why }) => why !== null) ? ["1 program takes no filters: the recorder sorts out what it writes"] : [];
    const sentence = `${found.length} events of ${this.programs} programs ${act === "disable" ? "are not recorded any more" : "are recorded"}`;
    const matched = { sentence, events: found.length, programs: Math.max(0, ...found.map(({ programs }) => programs)), all_programs: this.programs, unmatched, notes };
    return this.said(`"matched":${JSON.stringify(matched)}`);
  }

  /** A trigger has fired. */
  fire(name: string): void {
    for (const one of this.triggers.filter((known) => known.name === name)) {
      [one.armed, one.firings, this.on] = [one.repeats, one.firings + 1, one.effect === "start"];
      one.last = { ns: "1795789830118920835", event: one.events[0], program: "server", pid: 7, tid: 9 };
    }
  }

  private watch({ events = [], filter = null, effect = "stop", repeat = false }: Act): RecorderAnswer {
    this.triggers.push({ name: effect, effect, events, filter, repeats: repeat, armed: true, firings: 0, suppressed: 0, last: null, watched: effect === "stop" ? 1 : 0, why: effect === "stop" ? "a program is built with a tracer that is older than triggers" : null });
    this.on = effect !== "start";
    const matched = { sentence: `1 event of ${this.programs} programs fires the trigger`, events: 1, programs: this.programs, all_programs: this.programs, unmatched: [], notes: [] };
    return this.said(`"matched":${JSON.stringify(matched)}`);
  }

  /** Names of the same provider. */
  private near(pattern: string): string[] {
    const [provider = ""] = pattern.split(":");
    return this.classes.filter(({ name }) => name.startsWith(provider.slice(0, 3))).map(({ name }) => name).slice(0, 3);
  }

  private said(more: string): RecorderAnswer {
    const session = this.session.slice(1, -1);
    return { status: 200, body: `{${more === "" ? "" : `${more},`}${session}}` };
  }
}

function refused(status: number, message: string): RecorderAnswer {
  return { status, body: JSON.stringify({ error: { code: status === 409 ? "recording" : "parameter", message } }) };
}
