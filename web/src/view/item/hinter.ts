// The content of the tooltip: first the drawn state where the pointer rests, and then the server's answer about it.

import { askEnd } from "../../api/ends.ts";
import { askItems } from "../../api/items.ts";
import { ApiFault } from "../../api/client.ts";
import type { Track } from "../../model/catalogue.ts";
import { hasEnds } from "../../model/ends.ts";
import { extentOf, type EventItem, type TrackItem } from "../../model/items.ts";
import type { Spot } from "../../model/spot.ts";
import type { Point } from "../../model/tip.ts";
import { Store } from "../../state/store.ts";
import { nanos } from "../../units/time.ts";
import type { Page } from "../page.ts";
import { sentence } from "./picker.ts";

/** The pointer rests for so long before there is a tooltip. */
const REST_MS = 350;
/** Items of an answer: more than one if several are at the same time. */
const LIMIT = 8;

/** The place under the pointer. */
export interface Target {
  readonly track: Track;
  /** `null`: there is nothing that could be told one by one. */
  readonly spot: Spot | null;
  /** The facts that are known without asking. */
  readonly words: string;
}

export interface Hint extends Target {
  /** Where the pointer is on the page, in CSS pixels. */
  readonly at: Point;
  /** The item there, once it is known. */
  readonly item: TrackItem | null;
  /** The event at its begin, whose fields are its arguments, once that is known and if it is one. */
  readonly begun: EventItem | null;
  /** How many more are there at the same time. */
  readonly others: number;
  readonly isAsking: boolean;
  /** Why no more is known. */
  readonly failure: string | null;
}

export class Hinter {
  readonly hint = new Store<Hint | null>(null);
  private readonly page: Pick<Page, "client">;
  private readonly tracks: () => readonly Track[];
  private timer: ReturnType<typeof setTimeout> | null = null;
  private asking = new AbortController();

  constructor(page: Pick<Page, "client">, tracks: () => readonly Track[]) {
    this.page = page;
    this.tracks = tracks;
  }

  /** The pointer, or the focus, is somewhere; the item there is found once it has rested. */
  rest(at: Point, find: () => Target | null): void {
    this.hide();
    this.timer = setTimeout(() => {
      this.timer = null;
      const target = find();
      if (target !== null) {
        this.show(at, target);
      }
    }, REST_MS);
  }

  /** The tooltip is not wanted any more. */
  hide(): void {
    if (this.timer !== null) {
      clearTimeout(this.timer);
      this.timer = null;
    }
    this.asking.abort();
    this.hint.update(() => null);
  }

  private show(at: Point, target: Target): void {
    const { track, spot } = target;
    const tells = spot !== null && track.kind !== "counter" && track.kind !== "heat";
    this.hint.update(() => ({ ...target, at, item: null, begun: null, others: 0, isAsking: tells, failure: null }));
    if (tells) {
      void this.ask(track, spot);
    }
  }

  private async ask(track: Track, { time, until }: Spot): Promise<void> {
    const asking = new AbortController();
    this.asking = asking;
    const tell = (more: Partial<Hint>): void => {
      if (!asking.signal.aborted) {
        this.hint.update((hint) => (hint === null ? null : { ...hint, isAsking: false, ...more }));
      }
    };
    try {
      const { items } = await askItems(this.page.client, track.number, { begin: time, end: nanos(until > time ? until : time + 1n) }, asking.signal, LIMIT);
      const [first] = items;
      const same = items.filter((item) => first !== undefined && extentOf(item).begin === extentOf(first).begin);
      tell({ item: first ?? null, others: Math.max(0, same.length - 1) });
      if (first !== undefined && hasEnds(first) && first.beginKnown && !asking.signal.aborted) {
        const end = await askEnd(this.page.client, first, "begin", track, this.tracks(), asking.signal);
        tell({ begun: end.kind === "event" ? end.item : null });
      }
    } catch (error) {
      tell({ failure: sentence(error instanceof ApiFault ? error.message : String(error)) });
    }
  }
}
