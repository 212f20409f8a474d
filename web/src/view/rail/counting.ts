// Has events counted while somebody looks at the counts: all of the traces once, the window whenever it has come to rest.

import { countByName } from "../../api/counts.ts";
import { ApiFault } from "../../api/client.ts";
import { FIRST_FACETS, counted, countedPart, counting, type FacetsState } from "../../state/facets.ts";
import { Store } from "../../state/store.ts";
import type { Viewport } from "../../model/viewport.ts";
import type { Page } from "../page.ts";

/** The window is counted once it has not moved for so long. */
const REST_MS = 400;

/** What the panel of filters knows, and who asks for it. */
export class Counting {
  readonly store = new Store<FacetsState>(FIRST_FACETS);
  private readonly page: Page;
  private viewers = 0;
  private ending: AbortController | null = null;
  private resting: ReturnType<typeof setTimeout> | null = null;
  /** What the counts are of; `undefined`: of nothing yet. */
  private of: Viewport | null | undefined = undefined;

  constructor(page: Page) {
    this.page = page;
    let view = page.store.state.view;
    page.store.subscribe(() => {
      if (page.store.state.view !== view) {
        view = page.store.state.view;
        this.moved();
      }
    });
  }

  /** Somebody looks at the counts, until what is returned is called. */
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

  /** Counts again what could not be counted. */
  again(): void {
    this.of = undefined;
    this.look();
  }

  private moved(): void {
    if (!this.store.state.inWindow || this.viewers === 0) {
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

  /** Begins to count what is not counted yet. */
  private look(): void {
    const { view } = this.page.store.state;
    const wanted = this.store.state.inWindow ? view : null;
    if (this.viewers === 0 || this.of === wanted) {
      return;
    }
    this.stop();
    this.of = wanted;
    void this.count(wanted);
  }

  private async count(window: Viewport | null): Promise<void> {
    const ending = new AbortController();
    this.ending = ending;
    this.store.update((state) => counting(state, window));
    try {
      const counts = await countByName(this.page.client, window, (part) => this.store.update((state) => countedPart(state, part)), ending.signal);
      this.store.update((state) => counted(state, counts, window));
    } catch (error) {
      if (!ending.signal.aborted) {
        const fault = error instanceof ApiFault ? error : new ApiFault("nonsense", error instanceof Error ? error.message : String(error));
        this.store.update((state) => ({ ...state, counting: null, fault: { kind: fault.kind, message: fault.message } }));
      }
    }
    if (this.ending === ending) {
      this.ending = null;
    }
  }

  /** Nobody wants any more what is being counted. */
  private stop(): void {
    if (this.ending !== null) {
      this.ending.abort();
      this.ending = null;
      this.of = undefined;
      this.store.update((state) => ({ ...state, counting: null }));
    }
  }
}

const all = new WeakMap<Page, Counting>();

/** What is counted for a page: once for all that shows it. */
export function countingOf(page: Page): Counting {
  let found = all.get(page);
  if (found === undefined) {
    found = new Counting(page);
    all.set(page, found);
  }
  return found;
}
