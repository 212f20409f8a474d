// Asks for the events that the list shows. Rows come at once, with few columns; all fields of those on the screen come behind them.
//
//     goal   rows around a place, if the list is to be elsewhere      one question at a time, the latest goal
//     ends   more rows before the first one, behind the last one      while no goal is waiting
//     fields of the rows on the screen                                beside these, one question at a time
//     count, find, copy, save                                         beside these, each until another one is asked for
//
// The list and the timeline follow each other: the current row is a mark on the timeline, and where the window goes, the list goes. The
// list does not follow its own changes of the timeline.

import { ApiFault, type Client } from "../../api/client.ts";
import type { Status } from "../../model/catalogue.ts";
import { askColumns, askPage, findEvent, type PageAsked } from "../../api/events.ts";
import { checkExpression, countEvents, type Problem } from "../../api/filter.ts";
import { pause } from "../../api/changes.ts";
import { FIRST_PLACE, LAST_PLACE, baseNames, fieldNames, isSingle, narrowed, placeText, questionText, readNames, wantedNames, type Direction, type EventPage, type EventQuestion, type Place } from "../../model/events.ts";
import { passes, type Fault } from "../../model/fault.ts";
import { eventQuestion } from "../../model/filter-threads.ts";
import { BELOW_MAX, PLAIN_LISTED, type ListPlace, type Listed } from "../../model/listed.ts";
import { isRecording } from "../../model/live.ts";
import { NO_REEL, endOf, firstOf, joinedBy, placeOf, rowOfPlace, timeOf, trimmed, type Reel } from "../../model/reel.ts";
import { endOf as windowEnd, type Viewport } from "../../model/viewport.ts";
import { FIRST_EVENTS, asked, blockOf, chosen, grown, lacking, placed, placedBelow, regrown, roomed, scrolledRows, stepped, tailed, withBlock, type Count, type EventsState, type Find } from "../../state/events.ts";
import { Store } from "../../state/store.ts";
import { markShown, type State } from "../../state/viewer.ts";
import type { Nanos } from "../../units/time.ts";

/** Rows of a page. */
const PAGE_ROWS = 512;
/** Memory for pages, and how many answers with fields are kept. */
const REEL_BYTES_MAX = 8 << 20;
const BLOCKS_MAX = 40;
/** So many screens of rows are there below the first row on the screen; those are not forgotten. */
const AHEAD_SCREENS = 3;
/** Fields are asked for of as many rows at least: a question costs more than a row. */
const BLOCK_ROWS_MIN = 24;
/** The pause while the user types; and the one before a request that the server could not answer is sent again. */
const TYPING_MS = 250;
const RETRY_MS = 2_000;

/** Where the list is to be. */
export interface Goal {
  readonly place: Place;
  /** The row behind the place becomes the first one on the screen, or the current one; or the list is at its end, and stays there. */
  readonly as: "top" | "current" | "end";
  /** As the current one, it stands so many rows below the first one; else as the screen needs it. */
  readonly below?: number;
  /** The timeline is told of it. */
  readonly tells: boolean;
}

const AT_END: Goal = { place: LAST_PLACE, as: "end", tells: false };

/** How many events there are of traces that grow, if all are listed and the count is known. */
function countOf(status: Status | null, { filter, names, threads }: EventQuestion): Count | null {
  const isAll = filter === null && names.length === 0 && threads === undefined;
  return isAll && isRecording(status) && status?.events != null ? { events: status.events, isExact: status.state === "complete" } : null;
}

export class EventsDesk {
  readonly store = new Store<EventsState>(FIRST_EVENTS);
  private readonly page: Store<State>;
  private readonly client: Client;
  /** Ends the requests for these events; there is none while the list is not shown. */
  private ending: AbortController | null = null;
  private goal: Goal | null = null;
  private asking = false;
  private askingFields = false;
  private finding = new AbortController();
  private checking = new AbortController();
  private unsubscribe: () => void = () => undefined;
  /** The state of the page at the latest look, and whether the list itself changes it. */
  private seen: Pick<State, "view" | "filter" | "catalogue" | "mark" | "status" | "follow">;
  private isOwn = false;
  /** Where a URL wants the list to be, until it is. */
  private wish: ListPlace | null = null;

  constructor(page: Store<State>, client: Client, listed: Listed = PLAIN_LISTED) {
    this.page = page;
    this.client = client;
    this.seen = page.state;
    this.reopen(listed);
  }

  /** The state of the list, as a URL has it. */
  get listed(): Listed {
    const { names, wanted, find, sync } = this.store.state;
    return { names, columns: wanted, find: find.text, sync, at: this.placeSeen() };
  }

  /** The list shows the state of another URL. */
  reopen({ names, columns, find, sync, at }: Listed): void {
    this.wish = at;
    this.store.update((state) => ({ ...asked(state, state.question), names, wanted: columns, sync, find: { text: find, problem: null, state: "idle" } }));
    if (this.isOpen) {
      this.restart(this.question());
    }
  }

  get isOpen(): boolean {
    return this.ending !== null;
  }

  /** The list is shown. */
  open(): void {
    // The user may have marked another time meanwhile.
    const isElsewhere = this.store.state.sync && this.page.state.mark !== this.seen.mark;
    this.wish = isElsewhere ? null : this.wish;
    this.seen = this.page.state;
    const ends = [this.page.subscribe(() => this.hear()), this.store.subscribe(() => this.pump())];
    this.unsubscribe = () => ends.forEach((end) => end());
    this.restart(this.question());
  }

  /** The list is not shown any more. */
  close(): void {
    this.wish = this.placeSeen();
    this.unsubscribe();
    [this.ending, this.finding, this.checking].forEach((controller) => controller?.abort());
    this.ending = null;
    this.store.update((state) => ({ ...state, asking: false, find: { ...state.find, state: "idle" } }));
  }

  /** Only events of these names are listed. */
  setNames(text: string): void {
    this.store.update((state) => ({ ...state, names: text }));
    this.restart(this.question());
  }

  /** Fields of these names have columns of their own. */
  setWanted(text: string): void {
    this.store.update((state) => ({ ...state, wanted: text }));
    this.restart(this.question());
  }

  setSync(sync: boolean): void {
    this.store.update((state) => ({ ...state, sync }));
    if (sync) {
      this.tell();
    }
  }

  setRoom(rows: number): void {
    this.store.update((state) => roomed(state, rows));
  }

  scroll(rows: number): void {
    [this.goal, this.wish] = [null, null];
    this.store.update((state) => scrolledRows(state, rows));
  }

  choose(row: number, extend: boolean): void {
    this.store.update((state) => chosen(state, row, extend));
    this.tell();
  }

  step(rows: number, extend: boolean): void {
    this.store.update((state) => stepped(state, rows, extend));
    this.tell();
  }

  toBegin(): void {
    this.go({ place: FIRST_PLACE, as: "current", tells: true });
  }

  toEnd(): void {
    this.go({ place: LAST_PLACE, as: "current", tells: true });
  }

  /** The list goes to a time, as if it were scrolled there. */
  toTime(time: Nanos): void {
    this.go({ place: { time, rank: 0 }, as: "top", tells: false });
  }

  /** The user clicked on the timeline. */
  clicked(time: Nanos): void {
    if (this.isOpen && this.store.state.sync) {
      this.own(() => this.page.update((state) => ({ ...state, mark: time })));
      this.go({ place: { time, rank: 0 }, as: "current", tells: false });
    }
  }

  /** Another expression is searched for: its fault, or how many events it selects, is said in a moment. */
  setFind(text: string): void {
    this.store.update((state) => ({ ...state, find: { text, problem: null, state: "idle" }, matches: null }));
    this.finding.abort();
    this.checking.abort();
    this.checking = new AbortController();
    void this.check(text.trim(), this.checking.signal);
  }

  /** The next match, or the one before, becomes the current row. */
  find(direction: Direction): void {
    this.finding.abort();
    this.finding = new AbortController();
    void this.search(direction, this.finding.signal);
  }

  stopFinding(): void {
    this.finding.abort();
    this.finds({ state: "idle" });
  }

  /** Rows with all columns. A caller that asks for several pages gives the same question each time: the list may show other events by then. */
  ask(part: Omit<PageAsked, "columns">, signal: AbortSignal): Promise<EventPage> {
    return askPage(this.client, { columns: null, ...part }, signal);
  }

  /** Which events are to be listed: those that the page's filter selects, of the names that the user wants to see. */
  private question(): EventQuestion {
    const { filter, catalogue } = this.page.state;
    const names = readNames(this.store.state.names);
    return eventQuestion(filter, catalogue.tracks, names);
  }

  private restart(question: EventQuestion): void {
    const { state } = this.store;
    this.ending?.abort();
    this.finding.abort();
    this.ending = new AbortController();
    [this.asking, this.askingFields] = [false, false];
    this.goal = this.goalNow(state);
    this.store.update((now) => asked(now, question));
    void this.count(this.ending.signal);
    this.setFind(state.find.text);
    this.pump();
  }

  /** Where the list begins: where a URL wants it, at the mark, where it was, or where the window begins. */
  private goalNow(state: EventsState): Goal {
    const { mark, view, follow, status } = this.page.state;
    const current = placeOf(state.reel, state.current ?? state.top);
    if (this.wish !== null) {
      const { place, below } = this.wish;
      return below === null ? { place, as: "top", tells: false } : { place, as: "current", below, tells: false };
    }
    if (state.sync && mark !== null && mark !== current?.time) {
      return { place: { time: mark, rank: 0 }, as: "current", tells: false };
    }
    if ((state.tails && isRecording(status)) || (state.sync && follow.isOn)) {
      return AT_END;
    }
    // Of other events, another one may have that rank.
    const time = current?.time ?? view?.begin ?? null;
    return { place: time === null ? FIRST_PLACE : { time, rank: 0 }, as: state.sync && time === mark ? "current" : "top", tells: false };
  }

  /** Where the list is, as far as that is not where it would be anyway. */
  private placeSeen(): ListPlace | null {
    const { reel, current, top, tails } = this.store.state;
    if (tails && isRecording(this.page.state.status)) {
      return null;
    }
    const row = current !== null && Math.abs(current - top) <= BELOW_MAX ? current : top;
    const place = placeOf(reel, row);
    if (place === null) {
      return this.wish;
    }
    const { view } = this.page.state;
    const plain = view === null ? null : rowOfPlace(reel, { time: view.begin, rank: 0 });
    return row === current ? { place, below: current - top } : row === (plain ?? firstOf(reel)) ? null : { place, below: null };
  }

  /** The list is to be elsewhere: at once if the rows are there. */
  private go(goal: Goal): void {
    const { reel } = this.store.state;
    const row = rowOfPlace(reel, goal.place);
    [this.goal, this.wish] = [null, null];
    if (row === null) {
      this.goal = goal;
      this.pump();
    } else {
      this.arrive(goal, reel, row);
    }
  }

  private arrive(goal: Goal, reel: Reel, row: number): void {
    this.wish = this.goal === null ? null : this.wish;
    this.store.update((state) => {
      if (goal.below !== undefined) {
        return placedBelow(state, reel, row, goal.below);
      }
      if (goal.as === "end") {
        return tailed(state, reel);
      }
      const there = reel === state.reel ? state : placed(state, reel, row - Math.floor(state.room / 2));
      return goal.as === "top" ? placed(there, reel, row) : chosen(there, row, false);
    });
    if (goal.tells) {
      this.tell();
    }
  }

  /** The current row is marked on the timeline. */
  private tell(): void {
    const { reel, current, sync } = this.store.state;
    const time = current === null ? null : timeOf(reel, current);
    if (sync && time !== null) {
      this.own(() => this.page.update((state) => markShown(state, time)));
    }
  }

  private own(change: () => void): void {
    this.isOwn = true;
    change();
    this.isOwn = false;
  }

  /** The page has changed: if that is the window, the list goes along. */
  private hear(): void {
    const { view, filter, catalogue, mark, status, follow } = this.page.state;
    // The first window is where the page was opened; one that goes along with the traces by itself moves no list, but the end of the list is there.
    const [isMoved, isOther] = [view !== this.seen.view && this.seen.view !== null && !this.isOwn && !follow.isOn, filter !== this.seen.filter || catalogue.tracks !== this.seen.catalogue.tracks];
    const follows = follow.isOn && !this.seen.follow.isOn;
    const isMarked = mark !== this.seen.mark && !this.isOwn;
    const isLonger = status?.extent.end !== this.seen.status?.extent.end;
    // Until all is read, events of chosen threads may be missing: those of a CPU that was switched to its thread in a part that is not read yet.
    const isRead = status?.state === "complete" && this.seen.status?.state !== "complete";
    this.seen = this.page.state;
    const question = isOther ? this.question() : this.store.state.question;
    if (questionText(question) !== questionText(this.store.state.question) || (isRead && question.threads !== undefined)) {
      this.restart(question);
    }
    if (isLonger) {
      this.store.update((state) => grown(state, countOf(status, state.question)));
    }
    const { sync } = this.store.state;
    if (follows && sync) {
      this.go(AT_END);
    } else if (isMarked && mark !== null && sync) {
      this.go({ place: { time: mark, rank: 0 }, as: "current", tells: false });
    } else if (isMoved && view !== null && sync) {
      this.follow(view);
    }
  }

  /** The list stays where it is as long as that is in the window. */
  private follow(view: Viewport): void {
    const { reel, current, top, room } = this.store.state;
    const isSeen = current !== null && current >= top && current < top + room;
    const time = this.goal === null ? timeOf(reel, isSeen ? current : top) : this.goal.place.time;
    if (time === null || time < view.begin || time >= windowEnd(view)) {
      this.toTime(view.begin);
    }
  }

  /** Asks for the missing rows, if they are not on their way. */
  private pump(): void {
    const { ending } = this;
    if (ending !== null && !this.asking && this.wantsRows()) {
      this.asking = true;
      void this.askRows(ending);
    }
    if (ending !== null && !this.askingFields && this.wantedFields() !== null) {
      this.askingFields = true;
      void this.askFields(ending);
    }
  }

  private wantsRows(): boolean {
    const { columns, fault } = this.store.state;
    return fault === null && (columns.length === 0 || this.goal !== null || this.wantedEnd() !== null);
  }

  /** The end of the reel that is near the rows on the screen. */
  private wantedEnd(): Direction | null {
    const { reel, wish, room } = this.store.state;
    if (reel === NO_REEL) {
      return null;
    }
    if (!reel.isEnd && endOf(reel) - wish < AHEAD_SCREENS * room) {
      return "from";
    }
    return !reel.isBegin && wish - firstOf(reel) < 2 * room ? "before" : null;
  }

  /** Rows, until none are missing; a fault is shown, and the request repeated if that may help. */
  private async askRows(ending: AbortController): Promise<void> {
    const { signal } = ending;
    try {
      this.store.update((state) => ({ ...state, asking: true }));
      while (!signal.aborted && this.wantsRows()) {
        await this.askSome(signal);
      }
      this.store.update((state) => (signal.aborted ? state : { ...state, asking: false }));
    } catch (error) {
      await this.fail(error, signal);
    }
    if (this.ending === ending) {
      this.asking = false;
      // A wish that came meanwhile, or that is asked for again.
      if (this.store.state.fault === null) {
        this.pump();
      }
    }
  }

  private async askSome(signal: AbortSignal): Promise<void> {
    const { question, columns } = this.store.state;
    if (columns.length === 0) {
      const all = await askColumns(this.client, question, signal);
      this.store.update((state) => (signal.aborted ? state : { ...state, columns: all.length === 0 ? ["time"] : all }));
      return;
    }
    const { goal } = this;
    const end = this.wantedEnd();
    if (goal !== null) {
      await this.askAround(goal, signal);
    } else if (end !== null) {
      await this.askEnd(end, signal);
    }
  }

  private async askAround(goal: Goal, signal: AbortSignal): Promise<void> {
    const pages = await Promise.all((["from", "before"] as const).map((direction) => this.askBase({ direction, place: goal.place, limit: PAGE_ROWS }, signal)));
    const [behind, before] = pages;
    // Another goal may have been set meanwhile; this one is shown all the same, so that something is.
    if (behind !== undefined && before !== undefined && !signal.aborted) {
      this.goal = this.goal === goal ? null : this.goal;
      this.arrive(goal, joinedBy(joinedBy(NO_REEL, behind, "from"), before, "before"), 0);
    }
  }

  private async askEnd(direction: Direction, signal: AbortSignal): Promise<void> {
    const { reel } = this.store.state;
    const page = (direction === "from" ? reel.pages.at(-1) : reel.pages[0])?.page;
    const place = direction === "from" ? page?.after : page?.before;
    const found = await this.askBase({ direction, place: place ?? FIRST_PLACE, limit: PAGE_ROWS }, signal);
    this.store.update((state) => (signal.aborted ? state : regrown(state, trimmed(joinedBy(state.reel, found, direction), state.top, AHEAD_SCREENS * state.room, REEL_BYTES_MAX))));
    if (direction === "from" && this.store.state.tails && !found.isEnd && this.goal === null && !signal.aborted) {
      // More rows have come than a page: going from page to page would never get there.
      this.goal = AT_END;
    }
  }

  private askBase(part: Omit<PageAsked, "question" | "columns">, signal: AbortSignal): Promise<EventPage> {
    const { question, columns, wanted } = this.store.state;
    return askPage(this.client, { question, columns: isSingle(question) ? null : [...baseNames(columns), ...wantedNames(columns, wanted)], ...part }, signal);
  }

  /** Rows on the screen, and some beside them, whose fields are not there. */
  private wantedFields(): { readonly first: number; readonly count: number } | null {
    const { state } = this.store;
    const gap = isSingle(state.question) || fieldNames(state.columns).length === 0 ? null : lacking(state);
    if (gap === null || state.fault !== null) {
      return null;
    }
    const end = gap.first + gap.count;
    const goesUp = blockOf(state, end) !== null;
    const first = goesUp ? Math.max(firstOf(state.reel), Math.min(gap.first, end - BLOCK_ROWS_MIN)) : gap.first;
    return { first, count: goesUp ? end - first : Math.min(Math.max(gap.count, BLOCK_ROWS_MIN), endOf(state.reel) - first) };
  }

  private async askFields(ending: AbortController): Promise<void> {
    const { signal } = ending;
    let isRefused = false;
    try {
      for (let gap = this.wantedFields(); gap !== null && !signal.aborted; gap = this.wantedFields()) {
        const { first, count } = gap;
        const place = placeOf(this.store.state.reel, first);
        if (place === null) {
          break;
        }
        const { question } = this.store.state;
        const page = await this.ask({ question, direction: "from", place, limit: count }, signal);
        if (page.rows.count === 0) {
          break;
        }
        this.store.update((state) => {
          const now = placeOf(state.reel, first);
          const isSame = !signal.aborted && now !== null && placeText(now) === placeText(place);
          return isSame ? withBlock(state, { first, rows: page.rows }, BLOCKS_MAX) : state;
        });
      }
    } catch (error) {
      isRefused = true;
      await this.fail(error, signal);
    }
    if (this.ending === ending) {
      this.askingFields = false;
      // Rows without fields of which there is nothing to ask are left alone.
      if (isRefused && this.store.state.fault === null) {
        this.pump();
      }
    }
  }

  private async count(signal: AbortSignal): Promise<void> {
    try {
      const count = await countEvents(this.client, questionText(this.store.state.question), signal);
      this.store.update((state) => (signal.aborted ? state : { ...state, count }));
    } catch (error) {
      // A fault of the question is shown with its rows.
      if (!(error instanceof ApiFault)) {
        throw error;
      }
    }
  }

  private async check(text: string, signal: AbortSignal): Promise<void> {
    if (text === "") {
      return;
    }
    await pause(TYPING_MS, signal);
    try {
      const problem = signal.aborted ? null : await this.problemOf(text, signal);
      this.finds({ problem }, signal);
      if (problem === null && !signal.aborted) {
        const matches = await countEvents(this.client, questionText(narrowed(this.store.state.question, text)), signal);
        this.store.update((state) => (signal.aborted ? state : { ...state, matches }));
      }
    } catch (error) {
      this.tellFind(error, signal);
    }
  }

  /** The fault of an expression; `null`: it can be asked. */
  private async problemOf(text: string, signal: AbortSignal): Promise<Problem | null> {
    const { isValid, problems } = await checkExpression(this.client, text, signal);
    return isValid ? null : (problems[0] ?? null);
  }

  private async search(direction: Direction, signal: AbortSignal): Promise<void> {
    const { state } = this.store;
    const text = state.find.text.trim();
    const at = placeOf(state.reel, state.current ?? state.top);
    if (text === "" || at === null) {
      return;
    }
    // Where no row is the current one, the first one on the screen may be the match.
    const from = state.current === null && direction === "from" ? { ...at, rank: at.rank - 1 } : at;
    this.finds({ state: "searching" });
    try {
      const problem = await this.problemOf(text, signal);
      const found = problem === null ? await findEvent(this.client, state.question, text, from, direction, signal) : null;
      this.finds({ problem, state: problem === null && found === null ? "absent" : "idle" }, signal);
      if (found !== null && !signal.aborted) {
        this.go({ place: found, as: "current", tells: true });
      }
    } catch (error) {
      this.tellFind(error, signal);
    }
  }

  private finds(change: Partial<Find>, signal?: AbortSignal): void {
    this.store.update((state) => (signal?.aborted === true ? state : { ...state, find: { ...state.find, ...change } }));
  }

  private tellFind(error: unknown, signal: AbortSignal): void {
    const { kind, message } = faultOf(error);
    if (kind !== "aborted") {
      this.finds({ problem: { message, help: null, begin: 0, end: 0 }, state: "idle" }, signal);
    }
  }

  /** Shows a fault; a request that may pass later is sent again after a while. */
  private async fail(error: unknown, signal: AbortSignal): Promise<void> {
    const fault = faultOf(error);
    if (fault.kind === "aborted" || signal.aborted) {
      return;
    }
    this.store.update((state) => ({ ...state, fault, asking: false }));
    if (passes(fault.kind)) {
      await pause(RETRY_MS, signal);
      this.store.update((state) => (signal.aborted ? state : { ...state, fault: null }));
    }
  }
}

export function faultOf(error: unknown): Fault {
  if (error instanceof ApiFault) {
    return { kind: error.kind, message: error.message };
  }
  return { kind: "nonsense", message: error instanceof Error ? error.message : String(error) };
}
