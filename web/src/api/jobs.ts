// Asks analyses, as jobs of the server, and tells how far they are. Answers are kept for a while by their questions; a job that no component wants
// any more is canceled, and forgotten by the server as soon as it is here.
//
// ```text
// want ──> POST ──> waiting, running (told by `changes`; asked for now and then, should these not come) ──> result ──> kept
//            └── no component wants it any more, or the user cancels it ──> DELETE
// ```

import { bodyOf, readJob, type Asked, type Failure, type Job, type Question } from "../model/jobs.ts";
import { ShapeFault, type Shape } from "../model/json.ts";
import { readAnswer } from "../model/tables.ts";
import { ApiFault, type Client } from "./client.ts";

/** Answers without a component that shows them, which are kept nevertheless. */
const KEPT_MAX = 16;
/** A switch from one question to another and back, within that time, finds the first one still running. */
const LET_GO_MS = 300;
/** How often a job is asked for, beside the messages of `changes`; after as many requests without an answer, one behind the other, it is given up. */
const POLL_MS = 2_000;
const MISSES_MAX = 3;

/** Hears the state of questions, by their key from [`bodyOf`]; `null`: it is not known any more. */
export type JobsListener = (key: string, asked: Asked | null) => void;

interface Entry {
  readonly key: string;
  /** The server's id of the job, once it has said so, until it is forgotten there. */
  id: string | null;
  asked: Asked;
  /** The entry is of no use any more. */
  isOver: boolean;
  isFetching: boolean;
  /** Requests for it, since the last answer, that the server did not answer. */
  misses: number;
  poll: ReturnType<typeof setInterval> | null;
  /** Ends requests about a job that the server forgets: it would answer that there is none. */
  readonly gone: AbortController;
}

export class Jobs {
  private readonly client: Client;
  private readonly listener: JobsListener;
  /** The one that was wanted last stands last. */
  private readonly entries = new Map<string, Entry>();
  /** How many components want each question, in any state of it. */
  private readonly counts = new Map<string, number>();
  /** The server's latest state of its jobs, by their ids. */
  private heard = new Map<string, Job>();

  constructor(client: Client, listener: JobsListener) {
    this.client = client;
    this.listener = listener;
  }

  /** Asks, if the answer is not there or on its way; the answer is wanted until the caller calls the returned function. */
  want(question: Question): () => void {
    const key = bodyOf(question);
    const before = this.entries.get(key);
    if (before !== undefined && !this.isWanted(key) && (before.asked.state === "failed" || before.asked.state === "cancelled")) {
      this.drop(before);
    }
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
    const entry = this.entries.get(key) ?? this.begin(key);
    this.entries.delete(key);
    this.entries.set(key, entry);
    this.trim();
    let isWanted = true;
    return () => {
      if (isWanted) {
        isWanted = false;
        this.release(key);
      }
    };
  }

  private release(key: string): void {
    const rest = (this.counts.get(key) ?? 0) - 1;
    if (rest > 0) {
      this.counts.set(key, rest);
      return;
    }
    this.counts.delete(key);
    setTimeout(() => this.letGo(key), LET_GO_MS);
  }

  private isWanted(key: string): boolean {
    return this.counts.has(key);
  }

  /** Asks once more, after any result. */
  again(question: Question): void {
    this.restart(bodyOf(question));
  }

  private restart(key: string): void {
    const before = this.entries.get(key);
    if (before !== undefined) {
      this.drop(before);
      this.begin(key);
    }
  }

  /** Ends it; the components that want it are told so. */
  cancel(question: Question): void {
    const entry = this.entries.get(bodyOf(question));
    if (entry !== undefined && isUnderWay(entry)) {
      this.forget(entry);
      this.tell(entry, { state: "cancelled" });
    }
  }

  /** Another server may answer now: wanted questions are asked again, all others are not known any more. */
  renew(): void {
    for (const entry of [...this.entries.values()]) {
      if (this.isWanted(entry.key)) {
        this.restart(entry.key);
      } else {
        this.drop(entry);
      }
    }
  }

  /** The server answers again: wanted questions that failed as it did not are asked once more. */
  reached(): void {
    for (const { key, asked } of [...this.entries.values()]) {
      if (this.isWanted(key) && asked.state === "failed" && asked.failure.code === "unreachable") {
        this.restart(key);
      }
    }
  }

  /** Cancels everything: the page is being closed. */
  end(): void {
    this.entries.forEach((entry) => this.drop(entry));
  }

  /** Takes the server's message about all of its jobs. Throws a `ShapeFault`. */
  hear(shape: Shape): void {
    const jobs = shape.get("jobs").list().map(readJob);
    this.heard = new Map(jobs.map((job) => [job.id, job]));
    this.entries.forEach((entry) => this.look(entry));
  }

  private begin(key: string): Entry {
    const entry: Entry = { key, id: null, asked: { state: "asking" }, isOver: false, isFetching: false, misses: 0, poll: null, gone: new AbortController() };
    this.entries.set(key, entry);
    this.listener(key, entry.asked);
    void this.ask(entry);
    return entry;
  }

  private async ask(entry: Entry): Promise<void> {
    try {
      const job = readJob(await this.client.post("jobs", entry.key));
      entry.id = job.id;
      if (entry.isOver || !isUnderWay(entry)) {
        this.forget(entry);
        return;
      }
      entry.poll = setInterval(() => void this.poll(entry), POLL_MS);
      this.take(entry, job);
      // It may have ended before the server's answer was here.
      this.look(entry);
    } catch (error) {
      this.fail(entry, error);
    }
  }

  private async poll(entry: Entry): Promise<void> {
    if (entry.id === null || entry.isFetching) {
      return;
    }
    try {
      const job = readJob(await this.client.json(`jobs/${entry.id}`, entry.gone.signal));
      entry.misses = 0;
      this.take(entry, job);
    } catch (error) {
      // A server that does not answer at once may do so soon; progress that the server no longer tells is none.
      const isMissed = error instanceof ApiFault && error.kind === "unreachable" && ++entry.misses < MISSES_MAX;
      if (!isMissed && !entry.gone.signal.aborted) {
        this.fail(entry, error);
      }
    }
  }

  private look(entry: Entry): void {
    const job = entry.id === null ? undefined : this.heard.get(entry.id);
    if (job !== undefined) {
      this.take(entry, job);
    }
  }

  private take(entry: Entry, job: Job): void {
    if (entry.isOver || entry.isFetching || !isUnderWay(entry)) {
      return;
    }
    if (job.state === "done") {
      entry.isFetching = true;
      void this.fetch(entry, job.id);
    } else if (job.state === "failed") {
      this.forget(entry);
      this.tell(entry, { state: "failed", failure: job.failure ?? { code: "failed", message: "the job has failed" } });
    } else {
      const { done, total, etaMs } = job;
      this.tell(entry, job.state === "running" ? { state: "running", done, total, etaMs } : { state: "waiting" });
    }
  }

  private async fetch(entry: Entry, id: string): Promise<void> {
    try {
      const answer = readAnswer(await this.client.json(`jobs/${id}/result`, entry.gone.signal));
      if (!entry.isOver && isUnderWay(entry)) {
        this.tell(entry, { state: "done", answer });
      }
      this.forget(entry);
    } catch (error) {
      if (!entry.gone.signal.aborted) {
        this.fail(entry, error);
      }
    }
    this.trim();
  }

  private fail(entry: Entry, error: unknown): void {
    if (!entry.isOver && isUnderWay(entry)) {
      this.forget(entry);
      this.tell(entry, { state: "failed", failure: failureOf(error) });
    }
  }

  private tell(entry: Entry, asked: Asked): void {
    entry.asked = asked;
    if (!entry.isOver) {
      this.listener(entry.key, asked);
    }
  }

  private letGo(key: string): void {
    const entry = this.entries.get(key);
    if (entry !== undefined && !this.isWanted(key) && isUnderWay(entry)) {
      this.drop(entry);
    }
    this.trim();
  }

  /** The page knows nothing of it any more. */
  private drop(entry: Entry): void {
    entry.isOver = true;
    this.forget(entry);
    this.entries.delete(entry.key);
    this.listener(entry.key, null);
  }

  /** The server need not know of it any more. */
  private forget(entry: Entry): void {
    if (entry.poll !== null) {
      clearInterval(entry.poll);
      entry.poll = null;
    }
    const { id } = entry;
    entry.id = null;
    if (id !== null) {
      entry.gone.abort();
      // The server drops a job that cannot be forgotten now when there are too many.
      this.client.remove(`jobs/${id}`).catch(() => undefined);
    }
  }

  private trim(): void {
    const idle = [...this.entries.values()].filter((entry) => !this.isWanted(entry.key) && !isUnderWay(entry));
    idle.slice(0, Math.max(0, idle.length - KEPT_MAX)).forEach((entry) => this.drop(entry));
  }
}

function isUnderWay({ asked }: Entry): boolean {
  return asked.state === "asking" || asked.state === "waiting" || asked.state === "running";
}

function failureOf(error: unknown): Failure {
  if (error instanceof ApiFault) {
    return error.kind === "absent" ? { code: "forgotten", message: "the server does not know this question any more" } : { code: error.kind, message: error.message };
  }
  if (error instanceof ShapeFault) {
    return { code: "nonsense", message: error.message };
  }
  return { code: "fault", message: error instanceof Error ? error.message : String(error) };
}
