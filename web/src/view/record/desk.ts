// Sends the requests of the tab that controls the recorder, one after the other, and tells the results.

import { ApiFault } from "../../api/client.ts";
import { addTrigger, setLimit, stopRecording, switchEvents, takeSnapshot, turnTrigger } from "../../api/recording.ts";
import type { Recording, Switching, TriggerEffect, TriggerTurn } from "../../model/recording.ts";
import { FIRST_RECORD, answered, asking, refused, switchingTo, withRecording, type Place, type RecordState } from "../../state/record.ts";
import { Store } from "../../state/store.ts";
import type { Page } from "../page.ts";

export class RecordDesk {
  readonly store = new Store<RecordState>(FIRST_RECORD);
  private readonly page: Pick<Page, "store" | "client">;
  /** The latest request; it is answered before the next is sent. */
  private last: Promise<void> = Promise.resolve();

  constructor(page: Pick<Page, "store" | "client">) {
    this.page = page;
  }

  /** Switches all events that patterns mean, or puts a filter on them. */
  change(act: Switching, events: readonly string[], filter: string | null): Promise<void> {
    return this.ask("box", async () => {
      const { matched, recording } = await switchEvents(this.page.client, act, events, filter);
      this.take(recording);
      this.store.update((state) => answered(state, { switched: { act, matched } }));
    });
  }

  /** Adds a trigger. */
  trigger(effect: TriggerEffect, events: readonly string[], filter: string | null, repeat: boolean): Promise<void> {
    return this.ask("box", async () => {
      const { matched, recording } = await addTrigger(this.page.client, effect, events, filter, repeat);
      this.take(recording);
      this.store.update((state) => answered(state, { switched: { act: "trigger", matched } }));
    });
  }

  /** Arms or removes a trigger, or starts and stops the session now. */
  turn(turn: TriggerTurn): Promise<void> {
    return this.ask("triggers", async () => {
      this.take(await turnTrigger(this.page.client, turn));
      this.store.update((state) => answered(state));
    });
  }

  /** Sets the limit of a rule; `null`: that of its words again. */
  limit(rule: string, limit: string | null): Promise<void> {
    return this.ask("rules", async () => {
      this.take(await setLimit(this.page.client, rule, limit));
      this.store.update((state) => answered(state));
    });
  }

  /** Switches one class. */
  async toggle(name: string, isOn: boolean): Promise<void> {
    this.store.update((state) => switchingTo(state, name, isOn));
    await this.ask("classes", async () => {
      const { recording } = await switchEvents(this.page.client, isOn ? "enable" : "disable", [name], null);
      this.take(recording);
      this.store.update((state) => answered(state));
    });
    this.store.update((state) => switchingTo(state, name, null));
  }

  snapshot(): Promise<void> {
    return this.ask("session", async () => {
      const { snapshot, recording } = await takeSnapshot(this.page.client);
      this.take(recording);
      this.store.update((state) => answered(state, { snapshot }));
    });
  }

  /** The user wants to stop the session, or does not any more. */
  mayStop(isStopping: boolean): void {
    this.store.update((state) => ({ ...state, isStopping }));
  }

  stop(): Promise<void> {
    return this.ask("session", async () => {
      this.take(await stopRecording(this.page.client));
      this.store.update((state) => answered(state, { isStopping: false }));
    });
  }

  /** A recorder that could not be asked again after it did something is asked by the code that listens to it. */
  private take(recording: Recording | null): void {
    this.page.store.update((state) => (recording === null ? state : withRecording(state, recording)));
  }

  private ask(place: Place, act: () => Promise<void>): Promise<void> {
    const next = this.last.then(async () => {
      this.store.update((state) => asking(state, place));
      try {
        await act();
      } catch (error) {
        const fault = error instanceof ApiFault ? error : new ApiFault("nonsense", error instanceof Error ? error.message : String(error));
        this.store.update((state) => refused(state, place, fault.kind, fault.message));
      }
    });
    this.last = next;
    return next;
  }
}

const all = new WeakMap<Page, RecordDesk>();

/** The desk of a page: one, so that its messages stay there while other tabs are shown. */
export function recordOf(page: Page): RecordDesk {
  let found = all.get(page);
  if (found === undefined) {
    found = new RecordDesk(page);
    all.set(page, found);
  }
  return found;
}
