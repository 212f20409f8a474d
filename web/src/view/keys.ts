// The keyboard: the command of each key. The help lists this table, so that it cannot be wrong.

import { allShown } from "../model/layout.ts";
import { isRecording } from "../model/live.ts";
import { openedPanel, toggledPanel, type Side } from "../model/panels.ts";
import { fixedHeight } from "../model/screen.ts";
import { everything, pan, partOf, type Viewport } from "../model/viewport.ts";
import { resumed, toggledFollow, zoomed } from "../state/live.ts";
import { shown, withItem, withItemSelected } from "../state/item.ts";
import { moved, recoloured, scrolledBy, toggleCurve, toggleFold, toggleHide, togglePin, wentBack, wentForward, wentTo, withLayout, withPanels, type State } from "../state/viewer.ts";
import { nanos } from "../units/time.ts";
import { saveImage } from "./image.ts";
import { pickAt } from "./item/point.ts";
import { copyLink } from "./link.tsx";
import { notesOf } from "./notes/desk.ts";
import { openOmnibox } from "./omnibox.tsx";
import type { Page } from "./page.ts";
import { TABS } from "./tabs.ts";

/** Something that keys do. */
export interface Command {
  /** As the help writes them. */
  readonly keys: string;
  readonly what: string;
  /** Matches the browser's event for the pressed key. */
  readonly on: (key: Key) => boolean;
  readonly act: (state: State, key: Key) => State;
  /** Further effects, when the state has changed: a request, or a move of the focus. */
  readonly run?: (page: Page, key: Key) => void;
  /** Elsewhere the key has its usual meaning for the browser. */
  readonly where?: (state: State, on: Pick<Element, "closest"> | null) => boolean;
}

/** A key that was pressed. Letters are known by their place on the keyboard, so that W, A, S, D lie together on every one. */
export interface Key {
  readonly key: string;
  readonly code: string;
  readonly shift: boolean;
  /** Ctrl, or the command key. */
  readonly control: boolean;
  readonly alt: boolean;
}

/** The browser's event for it. */
export interface Pressed extends Pick<KeyboardEvent, "key" | "code" | "shiftKey" | "ctrlKey" | "metaKey" | "altKey"> {
  getModifierState(name: string): boolean;
}

/** The key that was pressed. AltGr, which some systems call Ctrl and Alt together, is there to write signs: the written sign counts, not the
 * place of its key on the keyboard. */
export function keyOf(event: Pressed): Key {
  const { key, code, shiftKey: shift } = event;
  if (event.getModifierState("AltGraph")) {
    return { key, code: "", shift, control: false, alt: false };
  }
  return { key, code, shift, control: event.ctrlKey || event.metaKey, alt: event.altKey };
}

const ZOOM_STEP = 0.75;
const PAN_PART = 0.15;
const PAN_PART_FAST = 0.75;
const SCROLL_CSS_PX = 60;

function plain(...names: string[]): (key: Key) => boolean {
  return (key) => !key.control && !key.alt && (names.includes(key.code) || names.includes(key.key));
}

function inView(change: (view: Viewport, state: State, key: Key) => Viewport): Command["act"] {
  return (state, key) => (state.view === null ? state : moved(state, change(state.view, state, key)));
}

/** Zooming keeps the time below the pointer in its place, else the middle; while the window goes along with the traces, its end. */
function zooming(factor: number): Command["act"] {
  return (state) => (state.view === null ? state : zoomed(state, state.cursor?.time ?? nanos(state.view.begin + state.view.span / 2n), factor));
}

/** The elements with a use of their own for Space: buttons, boxes, trees and lists to choose of. */
const OWN_SPACE = "button, a, input, select, textarea, summary, [role=tree], [role=listbox], [role=tablist]";

function isSpaceFree(state: State, on: Pick<Element, "closest"> | null): boolean {
  return isRecording(state.status) && (on?.closest(OWN_SPACE) ?? null) === null;
}

/** The track below the pointer. */
function below(state: State): { readonly id: string | null; readonly group: string | null } {
  const row = state.rows.find((one) => one.key === state.cursor?.row);
  return { id: row?.track?.id ?? null, group: row?.group ?? null };
}

/** For keys that send requests. */
function stay(state: State): State {
  return state;
}

/** Where nothing is picked, the thing below the pointer is meant. Whether something is picked then. */
function pickedAtPointer(page: Page): boolean {
  const { item, cursor } = page.store.state;
  if (item === null && cursor?.row != null) {
    pickAt(page, cursor.row, cursor.time);
  }
  const isPicked = page.store.state.item !== null;
  if (!isPicked) {
    page.picker.note("Nothing is picked: click on something, or point at it.");
  }
  return isPicked;
}

function stepped(page: Page, by: 1 | -1): void {
  const wasPicked = page.store.state.item !== null;
  if (pickedAtPointer(page) && wasPicked) {
    page.picker.step(by);
  }
}

function followed(page: Page, where: "effect" | "cause"): void {
  if (pickedAtPointer(page)) {
    page.picker.follow(where);
  }
}

/** Shows or hides a panel; the sentence names its tabs. */
function panelKey(keys: string, side: Side, where: string): Command[] {
  const what = `the panel ${where}: ${TABS[side].map(({ title }) => title.toLowerCase()).join(", ")}`;
  const act: Command["act"] = (state) => withPanels(state, toggledPanel(state.panels, side));
  return TABS[side].length === 0 ? [] : [{ keys, what, on: plain(`Key${keys}`), act }];
}

/** So long it is waited for a tab that is being shown. */
const FRAMES_WAITED = 30;

/** Goes to where the keys of a tab are, once that tab is the one that is shown: until then the one before it stands there. */
function focusInDrawer(tab: string | null, frames: number): void {
  const goal = document.querySelector<HTMLElement>(`.drawer [aria-labelledby="tab-${tab}"] [data-focus]`);
  if (goal !== null) {
    goal.focus();
  } else if (frames > 0) {
    requestAnimationFrame(() => focusInDrawer(tab, frames - 1));
  }
}

/** Alt and a digit shows a tab of the panel below, by its place, and goes there. */
function tabKeys(): Command[] {
  const tabs = TABS.drawer;
  const tabOf = (key: Key): string | null => tabs[Number(/^Digit([1-9])$/.exec(key.code)?.[1] ?? 0) - 1]?.id ?? null;
  const act: Command["act"] = (state, key) => {
    const tab = tabOf(key);
    return tab === null ? state : withPanels(state, openedPanel(state.panels, "drawer", tab));
  };
  const run: Command["run"] = ({ store }) => focusInDrawer(store.state.panels.drawer.tab, FRAMES_WAITED);
  return tabs.length === 0 ? [] : [{ keys: "Alt 1…", what: "a tab of that panel", on: (key) => key.alt && !key.control && tabOf(key) !== null, act, run }];
}

/** Whether the list of events is shown, the first tab of its panel. */
function isListed({ panels }: State): boolean {
  return panels.drawer.isOpen && (panels.drawer.tab ?? TABS.drawer[0]?.id) === "events";
}

export const COMMANDS: readonly Command[] = [
  { keys: "W  +", what: "zoom in at the pointer", on: plain("KeyW", "+", "="), act: zooming(ZOOM_STEP) },
  { keys: "S  −", what: "zoom out", on: plain("KeyS", "-", "_"), act: zooming(1 / ZOOM_STEP) },
  {
    keys: "A  ←",
    what: "earlier; with Shift by most of the window",
    on: plain("KeyA", "ArrowLeft"),
    act: inView((view, _, key) => pan(view, partOf(view, key.shift ? -PAN_PART_FAST : -PAN_PART))),
  },
  {
    keys: "D  →",
    what: "later; with Shift by most of the window",
    on: plain("KeyD", "ArrowRight"),
    act: inView((view, _, key) => pan(view, partOf(view, key.shift ? PAN_PART_FAST : PAN_PART))),
  },
  { keys: "↑", what: "rows above", on: plain("ArrowUp"), act: (state) => scrolledBy(state, -SCROLL_CSS_PX) },
  { keys: "↓", what: "rows below", on: plain("ArrowDown"), act: (state) => scrolledBy(state, SCROLL_CSS_PX) },
  { keys: "PageUp", what: "a screen of rows up", on: plain("PageUp"), act: (state) => scrolledBy(state, fixedHeight(state) - state.size.height) },
  { keys: "PageDown", what: "a screen of rows down", on: plain("PageDown"), act: (state) => scrolledBy(state, state.size.height - fixedHeight(state)) },
  {
    keys: "Home",
    what: "all of the traces",
    on: plain("Home"),
    act: (state) => (state.status === null ? state : wentTo(state, everything(state.status.extent))),
  },
  { keys: "Space", what: "hold the window back while traces are recorded, and go on; the recorder goes on in any case", on: plain(" "), act: toggledFollow, where: isSpaceFree },
  { keys: "L", what: "follow what is recorded again", on: plain("KeyL"), act: resumed },
  {
    keys: "X",
    what: "select the window; with Shift what is picked, from its begin to its end",
    on: plain("KeyX"),
    act: (state, key) => (key.shift ? withItemSelected(state) : state.view === null ? state : { ...state, selection: state.view }),
  },
  { keys: "Z", what: "the selection", on: plain("KeyZ"), act: (state) => (state.selection === null ? state : wentTo(state, state.selection)) },
  { keys: "F", what: "what is picked, with some room around it", on: plain("KeyF"), act: shown },
  { keys: ",", what: "the thing before on the same track; where nothing is picked, the thing below the pointer", on: plain(","), act: stay, run: (page) => stepped(page, -1) },
  { keys: ".", what: "the next one", on: plain("."), act: stay, run: (page) => stepped(page, 1) },
  { keys: "]", what: "along an arrow, from what is picked to what it leads to", on: plain("]"), act: stay, run: (page) => followed(page, "effect") },
  { keys: "[", what: "back along an arrow, to what it comes from", on: plain("["), act: stay, run: (page) => followed(page, "cause") },
  { keys: "V", what: "arrows between rows, or none", on: plain("KeyV"), act: (state) => ({ ...state, arrows: !state.arrows }) },
  { keys: "C", what: "colours of applications where CPUs run their threads, or of threads", on: plain("KeyC"), act: recoloured },
  { keys: "K", what: "the legend: which colors mean what, and a filter by them", on: plain("KeyK"), act: (state) => ({ ...state, legend: !state.legend }) },
  { keys: "Backspace", what: "the window before; with Shift the one after", on: plain("Backspace"), act: (state, key) => (key.shift ? wentForward(state) : wentBack(state)) },
  { keys: "P", what: "pin the track below the pointer on top, with its calls and durations", on: plain("KeyP"), act: (state) => withTrack(state, togglePin) },
  { keys: "Y", what: "draw the counter below the pointer as a curve, or no more", on: plain("KeyY"), act: (state) => withCounter(state) },
  { keys: "H", what: "hide it", on: plain("KeyH"), act: (state) => withTrack(state, toggleHide) },
  { keys: "U", what: "show all that is hidden", on: plain("KeyU"), act: (state) => withLayout(state, allShown(state.layout)) },
  {
    keys: "E",
    what: "fold or unfold its group",
    on: plain("KeyE"),
    act: (state) => {
      const { group } = below(state);
      return group === null ? state : toggleFold(state, group);
    },
  },
  {
    keys: "T",
    what: "times of the day, or since the begin",
    on: plain("KeyT"),
    act: (state) => ({ ...state, timeStyle: state.timeStyle === "relative" ? "absolute" : "relative" }),
  },
  { keys: "M", what: "make a note about what is selected, or where the pointer is", on: plain("KeyM"), act: stay, run: (page) => notesOf(page).make() },
  ...panelKey("B", "rail", "at the left"),
  ...panelKey("Q", "drawer", "below"),
  ...tabKeys(),
  ...panelKey("I", "inspector", "at the right"),
  {
    keys: "Ctrl Shift S",
    what: "save an image of the timeline as PNG; the button above does so as SVG, too",
    on: (key) => key.control && key.shift && key.code === "KeyS",
    act: (state) => state,
    run: (page) => void saveImage(page, "png"),
  },
  {
    keys: "Ctrl Shift L",
    what: "copy a link to this view, with the token; the button above does so, too",
    on: (key) => key.control && key.shift && key.code === "KeyL",
    act: stay,
    run: (page) => void copyLink(page),
  },
  { keys: "/", what: "find tracks, threads, processes, events", on: plain("/"), act: stay, run: (page) => openOmnibox(page, "") },
  {
    keys: ">  Ctrl Shift P",
    what: "find a command by its name",
    on: (key) => (!key.control && !key.alt && key.key === ">") || (key.control && key.shift && key.code === "KeyP"),
    act: stay,
    run: (page) => openOmnibox(page, ">"),
  },
  {
    keys: "Ctrl F",
    what: "find events by an expression, while their list is open",
    on: (key) => key.control && !key.shift && !key.alt && key.code === "KeyF",
    act: stay,
    run: () => document.querySelector<HTMLInputElement>(".event-find input")?.select(),
    where: isListed,
  },
  { keys: "@", what: "go to a time", on: (key) => !key.control && key.key === "@", act: stay, run: (page) => openOmnibox(page, "@") },
  { keys: "Esc", what: "close a dialog or a menu, or leave a box; else select nothing", on: plain("Escape"), act: (state) => withItem({ ...state, selection: null, mark: null }, null) },
  { keys: "?", what: "this list", on: plain("?"), act: (state) => ({ ...state, help: !state.help }) },
];

/** The acts of the mouse, for the same list. */
export const GESTURES: ReadonlyArray<readonly [string, string]> = [
  ["wheel", "rows up and down"],
  ["Ctrl + wheel, pinch", "zoom at the pointer"],
  ["Shift + wheel", "earlier, later"],
  ["Ctrl + Shift + wheel", "higher or lower rows"],
  ["click", "pick what is there"],
  ["drag", "select a time and rows, which the panel at the right adds up; on the ruler a time of all rows; Z shows the selection"],
  ["drag an edge of the selection", "move it; edges snap to bars and events, with Ctrl they do not"],
  ["Shift + drag, middle button", "move the window"],
  ["double click", "zoom in there"],
  ["drag in the overview", "another window, or move the frame; a double click shows all"],
];

function withTrack(state: State, change: (state: State, id: string) => State): State {
  const { id } = below(state);
  return id === null ? state : change(state, id);
}

function withCounter(state: State): State {
  const track = state.rows.find((row) => row.key === state.cursor?.row)?.track;
  return track?.kind === "counter" ? toggleCurve(state, track.id) : state;
}

/** The command of a key; `null` if there is none here. */
export function commandFor(key: Key): Command | null {
  return COMMANDS.find((command) => command.on(key)) ?? null;
}
