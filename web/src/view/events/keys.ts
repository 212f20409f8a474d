// The keyboard while the list of events has the focus. The help lists this table, too.

import { endOf, firstOf } from "../../model/reel.ts";
import type { EventsDesk } from "./desk.ts";

/** The effects of keys that only the component can have. */
export interface ListActs {
  readonly copy: () => void;
  readonly search: () => void;
}

export interface ListKey {
  readonly key: string;
  readonly shift: boolean;
  readonly control: boolean;
  readonly alt: boolean;
}

interface ListCommand {
  readonly keys: string;
  readonly what: string;
  /** The browser's names of the keys; with Ctrl or without. */
  readonly names: readonly string[];
  readonly control?: boolean;
  readonly act: (desk: EventsDesk, key: ListKey, acts: ListActs) => void;
}

const UP: ReadonlySet<string> = new Set(["ArrowUp", "PageUp"]);

export const LIST_COMMANDS: readonly ListCommand[] = [
  {
    keys: "↑  ↓",
    what: "the row before, the next one; with Shift rows are chosen",
    names: ["ArrowUp", "ArrowDown"],
    act: (desk, key) => desk.step(UP.has(key.key) ? -1 : 1, key.shift),
  },
  {
    keys: "PageUp  PageDown",
    what: "as many rows as are on the screen",
    names: ["PageUp", "PageDown"],
    act: (desk, key) => desk.step(UP.has(key.key) ? -desk.store.state.room : desk.store.state.room, key.shift),
  },
  { keys: "Home", what: "the first event", names: ["Home"], act: (desk, key) => (key.shift ? desk.choose(firstOf(desk.store.state.reel), true) : desk.toBegin()) },
  { keys: "End", what: "the last event", names: ["End"], act: (desk, key) => (key.shift ? desk.choose(endOf(desk.store.state.reel) - 1, true) : desk.toEnd()) },
  { keys: "Ctrl F", what: "find events by an expression", names: ["f"], control: true, act: (_desk, _key, acts) => acts.search() },
  { keys: "F3", what: "the next match; with Shift the one before", names: ["F3"], act: (desk, key) => desk.find(key.shift ? "before" : "from") },
  { keys: "Ctrl C", what: "copy the chosen rows as text", names: ["c"], control: true, act: (_desk, _key, acts) => acts.copy() },
];

/** Does the act of a key in the list; whether it has one. */
export function pressed(desk: EventsDesk, key: ListKey, acts: ListActs): boolean {
  // Without a search under way, Escape has its usual meaning.
  if (key.key === "Escape" && desk.store.state.find.state === "searching") {
    desk.stopFinding();
    return true;
  }
  const name = key.control ? key.key.toLowerCase() : key.key;
  const command = key.alt ? undefined : LIST_COMMANDS.find(({ names, control }) => names.includes(name) && (control ?? false) === key.control);
  command?.act(desk, key, acts);
  return command !== undefined;
}
