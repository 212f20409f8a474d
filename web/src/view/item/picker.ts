// The picked item: asks the server for it, goes to its neighbors, follows arrows from it and to it.
//
// It has a state of its own, so that no picture waits for an answer. A question is let go of as soon as something else is picked.

import { askItems, Search } from "../../api/items.ts";
import { pause } from "../../api/changes.ts";
import { ApiFault, type Client } from "../../api/client.ts";
import { areMessages, arrowTracks } from "../../model/arrows.ts";
import type { Track } from "../../model/catalogue.ts";
import { passes, type Fault } from "../../model/fault.ts";
import { extentOf, sameItem, type Item, type ItemsFound, type RunItem, type TrackItem } from "../../model/items.ts";
import { openedPanel } from "../../model/panels.ts";
import type { Spot } from "../../model/spot.ts";
import type { Extent } from "../../model/viewport.ts";
import { followed, trackNumbered, trackOf, withItem, withItemExtent } from "../../state/item.ts";
import { Store } from "../../state/store.ts";
import { withPanels, type State } from "../../state/viewer.ts";
import type { TrackNumber } from "../../units/tiles.ts";
import { nanos, plus, type Nanos } from "../../units/time.ts";

/** The known facts about the picked item. */
export interface Picked {
  readonly item: Item | null;
  readonly track: Track | null;
  /** `apart`: such tracks sum up, and have nothing that could be told one by one. `absent`: there is no such track. */
  readonly phase: "none" | "asking" | "found" | "failed" | "apart" | "absent";
  /** The items at that time; the first one is the picked one. */
  readonly items: readonly TrackItem[];
  /** There is more at that time than is told. */
  readonly more: boolean;
  /** Nothing will become known that is not known yet. */
  readonly complete: boolean;
  readonly fault: Fault | null;
  /** The step that could not be done, in a sentence. */
  readonly note: string | null;
}

const NOTHING: Picked = { item: null, track: null, phase: "none", items: [], more: false, complete: true, fault: null, note: null };
/** As many steps at most wait for the one that is being taken, so that a key that was held does not go on for long. */
const STEPS_MAX = 8;
/** A request that the server could not answer is sent again after that. */
const RETRY_MS = 2_000;
/** How far the first look back for an arrow goes. */
const ARROW_STEP = nanos(100_000);

export class Picker {
  readonly picked = new Store<Picked>(NOTHING);
  private readonly store: Store<State>;
  private readonly client: Client;
  /** The server is to be asked as soon as it is known which tracks there are. */
  private due = false;
  private asking = new AbortController();
  /** The tracks, and whether all was read, when the server was asked. */
  private askedOf: { readonly tracks: readonly Track[]; readonly isComplete: boolean } = { tracks: [], isComplete: false };
  private walking: AbortController | null = null;
  private steps = 0;
  private hasOpened = false;
  /** Until when something may begin that is meant by pointing, where that is more than a moment. */
  private spot: { readonly item: Item; readonly until: Nanos } | null = null;

  constructor(store: Store<State>, client: Client) {
    this.store = store;
    this.client = client;
    store.subscribe(() => this.see());
    this.see();
  }

  /** The user picks something. The panel that tells of it opens by itself, once. */
  pick(track: Track, { time, until, extent }: Spot): void {
    const item = { track: track.id, time };
    this.spot = { item, until };
    this.store.update((state) => {
      const picked = withItem(state, item);
      const known = extent === null || picked === state ? picked : withItemExtent(picked, item, extent);
      return this.hasOpened ? known : withPanels(known, openedPanel(known.panels, "inspector"));
    });
    this.hasOpened = true;
    if (this.picked.state.phase === "failed") {
      this.askAgain();
    }
  }

  /** The user has selected something, of which the same panel tells. */
  tellSelection(): void {
    this.store.update((state) => (this.hasOpened ? state : withPanels(state, openedPanel(state.panels, "inspector"))));
    this.hasOpened = true;
  }

  /** Goes to something, wherever it is. */
  go(item: Item): void {
    this.store.update((state) => followed(withItem(state, item)));
  }

  /** Goes to the next thing on the track, or back to the one before. */
  step(by: 1 | -1): void {
    this.steps = Math.max(-STEPS_MAX, Math.min(STEPS_MAX, this.steps + by));
    void this.walk(async (signal) => {
      while (this.steps !== 0 && !signal.aborted) {
        const now = this.steps > 0 ? 1 : -1;
        this.steps -= now;
        if (!(await this.stepOnce(now, signal))) {
          this.steps = 0;
        }
      }
    });
  }

  /** Goes along an arrow: to its effect, or to its cause. */
  follow(where: "effect" | "cause"): void {
    void this.walk((signal) => (where === "effect" ? this.toEffect(signal) : this.toCause(signal)));
  }

  /** The state has changed: perhaps something else is picked, or more can be known of it. */
  private see(): void {
    const { item, catalogue, status, isCatalogued } = this.store.state;
    const before = this.picked.state;
    if (!sameItem(item, before.item)) {
      this.letGo();
      this.picked.update(() => (item === null ? NOTHING : { ...NOTHING, item, phase: "asking" }));
      this.due = item !== null;
    } else if (before.phase === "absent") {
      this.due = catalogue.tracks !== this.askedOf.tracks;
    } else if (before.phase === "found" && !before.complete) {
      this.due = status?.state === "complete" && !this.askedOf.isComplete;
    }
    if (this.due && item !== null && isCatalogued) {
      this.due = false;
      this.askedOf = { tracks: catalogue.tracks, isComplete: status?.state === "complete" };
      const track = trackOf(this.store.state, item.track);
      this.picked.update((now) => ({ ...now, track, phase: track === null ? "absent" : now.phase }));
      if (track !== null) {
        void this.ask(item, track);
      }
    }
  }

  /** Asks for the picked item anew: its track may have another number by now. */
  private askAgain(): void {
    this.due = true;
    this.see();
  }

  /** The answers that are still to come are not wanted. */
  private letGo(): void {
    this.asking.abort();
    this.walking?.abort();
    this.walking = null;
    this.steps = 0;
  }

  private async ask(item: Item, track: Track): Promise<void> {
    if (track.kind === "counter" || track.kind === "heat") {
      this.picked.update((now) => ({ ...now, phase: "apart" }));
      return;
    }
    this.asking.abort();
    const asking = new AbortController();
    this.asking = asking;
    const until = this.spot !== null && sameItem(this.spot.item, item) ? this.spot.until : item.time;
    const end = until > item.time ? until : plus(item.time, nanos(1));
    try {
      const found = await askItems(this.client, track.number, { begin: item.time, end }, asking.signal);
      if (!asking.signal.aborted) {
        this.tell(item, found);
      }
    } catch (error) {
      if (!asking.signal.aborted) {
        const fault = faultOf(error);
        this.picked.update((now) => ({ ...now, phase: "failed", fault }));
        if (passes(fault.kind)) {
          await pause(RETRY_MS, asking.signal);
          if (!asking.signal.aborted) {
            this.askAgain();
          }
        }
      }
    }
  }

  /** The server has said which items are there. An item that begins later than it was pointed at is picked where it begins. */
  private tell(asked: Item, found: ItemsFound): void {
    const [first] = found.items;
    const extent = first === undefined ? null : extentOf(first);
    const item = extent !== null && extent.begin > asked.time ? { ...asked, time: extent.begin } : asked;
    const same = found.items.filter((other) => extentOf(other).begin === extent?.begin);
    const items = withFirst(same, this.picked.state.items[0]);
    const more = found.next !== null && extent !== null && found.next <= extent.begin + 1n;
    this.picked.update((now) => ({ ...now, item, phase: "found", items, more, complete: found.complete, fault: null }));
    this.store.update((state) => (sameItem(state.item, asked) && extent !== null ? withItemExtent(withItem(state, item), item, extent) : state));
  }

  /** Does something that takes several questions, unless another such thing is being done. */
  private async walk(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (this.walking !== null) {
      return;
    }
    const walking = new AbortController();
    this.walking = walking;
    this.note(null);
    try {
      await work(walking.signal);
    } catch (error) {
      if (!walking.signal.aborted) {
        this.steps = 0;
        this.note(sentence(faultOf(error).message));
      }
    }
    if (this.walking === walking) {
      this.walking = null;
    }
  }

  /** Says why a step could not be done; `null`: nothing has to be said any more. */
  note(note: string | null): void {
    this.picked.update((now) => (now.note === note ? now : { ...now, note }));
  }

  /** Takes a step; `false` if there is nothing to go to. */
  private async stepOnce(by: 1 | -1, signal: AbortSignal): Promise<boolean> {
    const { item, itemExtent, status, view } = this.store.state;
    const { phase } = this.picked.state;
    // A server that was started anew counts tracks anew.
    const track = item === null ? null : trackOf(this.store.state, item.track);
    if (item === null || track === null || status === null || view === null) {
      return false;
    }
    if (phase === "apart") {
      this.note("What this track shows adds up: there is nothing that comes next.");
      return false;
    }
    const now = itemExtent ?? { begin: item.time, end: item.time };
    const search = new Search(this.client, track.number, signal);
    // The end of a run is where the next one may begin; an item without a duration may be followed by another one a nanosecond later.
    const lasts = now.end > now.begin && track.kind === "states";
    const from = lasts ? now.end : plus(now.begin, nanos(1));
    const found =
      by > 0
        ? await search.first({ begin: from, end: status.extent.end })
        : await search.last({ begin: status.extent.begin, end: now.begin }, nanos(track.kind === "states" ? 1n : view.span / 256n));
    if (signal.aborted) {
      return false;
    }
    if (found === null) {
      this.note(`${search.gaveUp ? "Nothing was found nearby" : "There is nothing"} ${by > 0 ? "behind" : "before"} this on its track.`);
      return false;
    }
    this.take(track, found);
    return true;
  }

  /** Picks an item of which all is known already, but perhaps not the other ones at the same time. */
  private take(track: Track, found: TrackItem): void {
    const extent = extentOf(found);
    const item = { track: track.id, time: extent.begin };
    this.asking.abort();
    // First of all it is known here, so that nothing is asked when the state says that it is picked.
    this.picked.update((now) => ({ ...NOTHING, item, track, phase: "found", items: [found], complete: now.complete }));
    this.store.update((state) => followed(withItemExtent(withItem(state, item), item, extent)));
    if (found.kind !== "run" || isUntold(found)) {
      void this.ask(item, track);
    }
  }

  /** The picked item, as soon as it is known: a user that follows one arrow after the other is quicker than the server. */
  private async answered(signal: AbortSignal): Promise<{ readonly track: Track | null; readonly item: TrackItem | undefined }> {
    const { picked } = this;
    while (picked.state.phase === "asking" && !signal.aborted) {
      await new Promise<void>((done) => {
        const end = picked.subscribe(() => {
          end();
          done();
        });
      });
    }
    const { track, items } = picked.state;
    return signal.aborted ? { track: null, item: undefined } : { track, item: items[0] };
  }

  private async toEffect(signal: AbortSignal): Promise<void> {
    const { track, item } = await this.answered(signal);
    if (track === null || item === undefined) {
      return;
    }
    if (item.kind === "arrow") {
      const who = trackNumbered(this.store.state, item.to);
      if (!item.endKnown || who === null) {
        this.note(`Nobody knows when ${item.value.label} ran.`);
      } else {
        this.go({ track: who.id, time: item.end });
      }
      return;
    }
    const thread = threadOf(item, track);
    const { begin, end } = extentOf(item);
    const isFrom = (found: TrackItem): boolean => found.kind === "arrow" && (this.isOf(found.from, track) || (thread !== null && found.waker?.track === thread));
    const window = { begin, end: end > begin ? end : plus(begin, nanos(1)) };
    if (!(await this.toArrow(signal, () => true, isFrom, (search) => search.first(window)))) {
      this.note("No arrow leaves from here.");
    }
  }

  private async toCause(signal: AbortSignal): Promise<void> {
    const { track, item } = await this.answered(signal);
    if (track === null || item === undefined) {
      return;
    }
    if (item.kind === "arrow") {
      const { state } = this.store;
      const who = (item.waker?.track == null ? null : trackNumbered(state, item.waker.track)) ?? trackNumbered(state, item.from);
      if (who === null) {
        this.note("Nobody knows where this comes from.");
      } else {
        this.go({ track: who.id, time: item.begin });
      }
      return;
    }
    const thread = threadOf(item, track);
    if (thread !== null && item.kind === "run") {
      const { begin } = item;
      // It ran when the arrow came, or waits for a CPU since it left.
      const isWaking = (found: TrackItem): boolean => found.kind === "arrow" && found.to === thread && found.begin <= begin && begin <= found.end;
      const window = await this.waking(thread, item, signal);
      if (await this.toArrow(signal, (id) => !areMessages(id), isWaking, (search) => search.last(window, ARROW_STEP))) {
        return;
      }
    }
    const extent = extentOf(item);
    const [begin, end] = [extent.begin, extent.end > extent.begin ? extent.end : plus(extent.begin, nanos(1))];
    // A message that came while that was so.
    const hasCome = (found: TrackItem): boolean => found.kind === "arrow" && this.isOf(found.to, track) && begin <= found.end && found.end < end;
    const window = { begin: this.store.state.status?.extent.begin ?? begin, end };
    if (!(await this.toArrow(signal, areMessages, hasCome, (search) => search.last(window, ARROW_STEP)))) {
      this.note("No arrow leads here.");
    }
  }

  /** Whether a track, by its number, is of the same thread as another one, or that one itself. */
  private isOf(number: TrackNumber, track: Track): boolean {
    const one = number === track.number ? track : trackNumbered(this.store.state, number);
    return one !== null && (one === track || (one.tid !== null && one.tid === track.tid && one.host === track.host));
  }

  /** When a thread that runs, or waits for that, can have been woken: since it did something else. */
  private async waking(thread: TrackNumber, { begin }: RunItem, signal: AbortSignal): Promise<Extent> {
    const start = this.store.state.status?.extent.begin ?? begin;
    const before = await askItems(this.client, thread, { begin: nanos(begin - 1n), end: begin }, signal, 1);
    const [found] = before.items;
    const since = found?.kind === "run" && found.beginKnown ? found.begin : start;
    return { begin: since, end: plus(begin, nanos(1)) };
  }

  /** Picks an arrow, which is looked for on tracks of arrows, chosen by their ids; `false` if there is none. After the user lets go, nothing is told. */
  private async toArrow(signal: AbortSignal, on: (id: string) => boolean, wanted: (item: TrackItem) => boolean, look: (search: Search) => Promise<TrackItem | null>): Promise<boolean> {
    for (const track of arrowTracks(this.store.state.catalogue.tracks).filter(({ id }) => on(id))) {
      const found = await look(new Search(this.client, track.number, signal, { wanted, limit: 64 }));
      if (signal.aborted) {
        return true;
      }
      if (found !== null) {
        this.take(track, found);
        return true;
      }
    }
    return false;
  }
}

/** The same items, of which the arrow that was followed stays the first. */
function withFirst(items: readonly TrackItem[], first: TrackItem | undefined): readonly TrackItem[] {
  const isFirst = (item: TrackItem): boolean =>
    item.kind === "arrow" && first?.kind === "arrow" && item.from === first.from && item.to === first.to && item.end === first.end && item.begin === first.begin;
  return [...items.filter(isFirst), ...items.filter((item) => !isFirst(item))];
}

/** Why a thread waits is told of few things at a time: perhaps of this one it was not. */
function isUntold({ value, wait }: RunItem): boolean {
  return wait === null && value.kind === "doing" && value.label !== "running";
}

/** The thread that does something: the one that a CPU runs, or whose states a track shows. */
function threadOf(item: TrackItem, track: Track): TrackNumber | null {
  const shown = item.kind === "run" && item.value.kind === "thread" ? item.value.track : null;
  return shown ?? (track.kind === "states" && track.parent === null && track.tid !== null ? track.number : null);
}

function faultOf(error: unknown): Fault {
  return error instanceof ApiFault ? error : { kind: "nonsense", message: error instanceof Error ? error.message : String(error) };
}

/** A message as a sentence. */
export function sentence(text: string): string {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
