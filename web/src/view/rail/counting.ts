// Has events counted while a component shows the counts: all of the traces once, the window whenever it has come to rest. Two analyses count, one by
// the names of events, one by their owners; each is shown as soon as it is there. They are asked one after the other: the
// server does few things at a time, and other requests meanwhile should not wait for both.

import { readNames, readWhose, type Counts } from "../../model/counts.ts";
import { bodyOf, type Options, type Question, type Failure } from "../../model/jobs.ts";
import type { Answer } from "../../model/tables.ts";
import { endOf, type Viewport } from "../../model/viewport.ts";
import { FIRST_FACETS, counted, countedPart, counting, uncounted, type FacetsState } from "../../state/facets.ts";
import { Store } from "../../state/store.ts";
import type { Nanos } from "../../units/time.ts";
import type { Page } from "../page.ts";

/** The window is counted once it has not moved for so long. */
const REST_MS = 400;
/** The count was the answer to a question that the user canceled elsewhere. */
const CANCELLED: Failure = { code: "cancelled", message: "The count was cancelled" };
/** One that goes along with a recording is counted that often. */
const FOLLOW_MS = 5_000;

/** So many threads and processes are told apart: more are of no use, and an answer of all of them may be too large. */
const ROWS_MAX = 10_000;

interface Kind {
  readonly kind: string;
  readonly options: Options;
  readonly read: (answer: Answer) => Partial<Counts>;
}

const KINDS: readonly Kind[] = [
  { kind: "count", options: {}, read: (answer) => ({ byName: readNames(answer) }) },
  { kind: "threads", options: { top: ROWS_MAX }, read: (answer) => ({ whose: readWhose(answer) }) },
];

interface Wanted {
  readonly question: Question;
  readonly key: string;
  readonly read: (answer: Answer) => Partial<Counts>;
  release: () => void;
  isRead: boolean;
}

/** The state of the panel of filters, and its requests. */
export class Counting {
  readonly store = new Store<FacetsState>(FIRST_FACETS);
  private readonly page: Pick<Page, "store" | "desk">;
  private viewers = 0;
  private wanted: readonly Wanted[] = [];
  private resting: ReturnType<typeof setTimeout> | null = null;
  /** The window of the counts; `undefined`: of nothing yet. */
  private of: Viewport | null | undefined = undefined;
  /** As far as traces went that grow, where all of them are counted. */
  private end: Nanos | null = null;
  /** The counts of that so far. */
  private found: Counts = { byName: null, whose: null };

  constructor(page: Pick<Page, "store" | "desk">) {
    this.page = page;
    let view = page.store.state.view;
    page.store.subscribe(() => {
      if (page.store.state.view !== view) {
        view = page.store.state.view;
        this.moved();
      }
    });
    page.desk.store.subscribe(() => this.hear());
  }

  /** A component shows the counts, until it calls the returned function. */
  want(): () => void {
    this.viewers++;
    this.look();
    return () => {
      this.viewers--;
      if (this.viewers === 0) {
        this.stop();
      }
    };
  }

  /** Counts in the window, or in all of the traces. */
  scope(inWindow: boolean): void {
    this.store.update((state) => ({ ...state, inWindow }));
    this.look();
  }

  /** Repeats the counts that failed. */
  again(): void {
    this.store.update((state) => counting(state, this.of ?? null));
    this.wanted.filter(({ isRead }) => !isRead).forEach(({ question }) => this.page.desk.jobs.again(question));
  }

  /** Counts the events that have come since. */
  recount(): void {
    this.look();
  }

  private moved(): void {
    if (!this.store.state.inWindow || this.viewers === 0) {
      return;
    }
    if (this.page.store.state.follow.isOn) {
      this.resting ??= setTimeout(() => this.followed(), FOLLOW_MS);
      return;
    }
    if (this.resting !== null) {
      clearTimeout(this.resting);
    }
    this.resting = setTimeout(() => {
      this.resting = null;
      this.look();
    }, REST_MS);
  }

  /** The window has gone along for a while. A count under way comes to its end before another one begins. */
  private followed(): void {
    this.resting = null;
    if (this.store.state.counting === null) {
      this.look();
    } else {
      this.moved();
    }
  }

  /** Begins the counts that are missing. */
  private look(): void {
    const { view, status } = this.page.store.state;
    const { inWindow } = this.store.state;
    const of = inWindow ? view : null;
    const end = !inWindow && status?.live?.state === "recording" ? status.live.watermark : null;
    if (this.viewers === 0 || (this.of === of && this.end === end)) {
      return;
    }
    const before = this.wanted;
    this.of = of;
    this.end = end;
    this.found = { byName: null, whose: null };
    this.wanted = [];
    this.store.update((state) => counting(state, of));
    this.ask(of);
    before.forEach(({ release }) => release());
    this.hear();
  }

  /** Asks the next question. */
  private ask(of: Viewport | null): void {
    const next = KINDS[this.wanted.length];
    if (next === undefined) {
      return;
    }
    const span: Options = of !== null ? { begin_ns: of.begin, end_ns: endOf(of) } : this.end !== null ? { end_ns: this.end } : {};
    const question = { kind: next.kind, options: { ...next.options, ...span } };
    const wanted: Wanted = { question, key: bodyOf(question), read: next.read, release: () => undefined, isRead: false };
    // The jobs may tell the state of it at once.
    this.wanted = [...this.wanted, wanted];
    wanted.release = this.page.desk.jobs.want(question);
  }

  /** Takes the results of the questions. */
  private hear(): void {
    const { of } = this;
    if (of === undefined) {
      return;
    }
    let part = 0;
    for (const one of this.wanted) {
      const asked = this.page.desk.store.state.asked.get(one.key);
      if (asked?.state === "done" && !one.isRead) {
        one.isRead = true;
        this.found = { ...this.found, ...one.read(asked.answer) };
        const isAll = this.isAll();
        this.store.update((state) => counted(state, this.merged(state), of, isAll));
      } else if (asked?.state === "failed" && this.store.state.failure !== asked.failure) {
        this.store.update((state) => uncounted(state, asked.failure));
      } else if (asked?.state === "cancelled" && this.store.state.counting !== null) {
        this.store.update((state) => uncounted(state, CANCELLED));
      }
      part += one.isRead ? 1 : asked?.state === "running" && asked.total > 0 ? asked.done / asked.total : 0;
    }
    const share = part / KINDS.length;
    if (this.store.state.counting !== null && this.store.state.counting.part !== share) {
      this.store.update((state) => countedPart(state, share));
    }
    if (this.wanted.at(-1)?.isRead === true) {
      this.ask(of);
    }
  }

  private isAll(): boolean {
    return this.wanted.length === KINDS.length && this.wanted.every(({ isRead }) => isRead);
  }

  /** The counts so far; a count under way keeps its value from before. */
  private merged({ counts }: FacetsState): Counts {
    return { byName: this.found.byName ?? counts?.byName ?? null, whose: this.found.whose ?? counts?.whose ?? null };
  }

  /** No component shows the counts any more: the missing ones are not wanted. */
  private stop(): void {
    const isAll = this.isAll();
    this.wanted.forEach(({ release }) => release());
    if (!isAll) {
      this.of = undefined;
      this.store.update((state) => ({ ...state, counting: null }));
    }
    this.wanted = [];
  }
}

const all = new WeakMap<Page, Counting>();

/** The counts for a page: once for all components that show them. */
export function countingOf(page: Page): Counting {
  let found = all.get(page);
  if (found === undefined) {
    found = new Counting(page);
    all.set(page, found);
  }
  return found;
}
