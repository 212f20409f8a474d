// Moves the window along with traces that grow, a picture of the screen at a time. If the user wants the screen to keep still, it goes in steps.

import type { Status } from "../model/catalogue.ts";
import type { Nanos } from "../units/time.ts";
import { edgeAt, headed, isMoving, resting, type Glide } from "../model/glide.ts";
import { arrived, goneAlong } from "../state/live.ts";
import type { Store } from "../state/store.ts";
import type { State } from "../state/viewer.ts";

/** The parts that only a page has: its clock in milliseconds, its pictures, the person's wish for motion. */
export interface Screen {
  now(): number;
  /** Calls back before the next picture. */
  next(act: () => void): void;
  /** The person wants nothing to move by itself. */
  isStill(): boolean;
}

export class Follower {
  private readonly store: Store<State>;
  private readonly screen: Screen;
  private glide: Glide | null = null;
  private isAsked = false;
  private before: State;

  constructor(store: Store<State>, screen: Screen) {
    this.store = store;
    this.screen = screen;
    this.before = store.state;
    store.subscribe(() => this.hear());
  }

  private hear(): void {
    const { store, before } = this;
    const { status, drawn, follow, size } = store.state;
    this.before = store.state;
    const isOther = status !== before.status || drawn !== before.drawn || follow !== before.follow;
    if (isOther && status !== null) {
      // A window cannot go where tiles are not drawn yet; one that follows anew is where the traces are, at once.
      this.head(follow.isOn && !before.follow.isOn ? status.extent.end : (drawn ?? status.extent.end), isNew(before.status, status));
    }
    if (follow.isOn && (isOther || size !== before.size)) {
      this.ask();
    }
  }

  private head(to: Nanos, isNewTrace: boolean): void {
    const now = this.screen.now();
    const { glide } = this;
    if (glide === null || isNewTrace) {
      this.glide = resting(to, now);
    } else if (to > glide.to) {
      this.glide = headed(glide, to, now);
    }
  }

  private ask(): void {
    if (!this.isAsked) {
      this.isAsked = true;
      this.screen.next(() => {
        this.isAsked = false;
        this.step();
      });
    }
  }

  private step(): void {
    const { glide, store, screen } = this;
    if (glide === null || !store.state.follow.isOn) {
      return;
    }
    const now = screen.now();
    const goesOn = isMoving(glide, now) && !screen.isStill();
    store.update((state) => goneAlong(state, goesOn ? edgeAt(glide, now) : glide.to));
    if (goesOn) {
      this.ask();
    } else if (glide.to >= (store.state.status?.extent.end ?? glide.to)) {
      store.update(arrived);
    }
  }
}

/** Whether other traces are shown than before. */
function isNew(before: Status | null, now: Status): boolean {
  return before === null || before.instance !== now.instance || before.extent.begin !== now.extent.begin || now.extent.end < before.extent.end;
}

/** As long as the page is there. */
export function keepFollowing(store: Store<State>): void {
  const reduced = matchMedia("(prefers-reduced-motion: reduce)");
  new Follower(store, { now: () => performance.now(), next: (act) => void requestAnimationFrame(act), isStill: () => reduced.matches });
}
