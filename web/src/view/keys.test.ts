import { expect, test } from "vitest";
import type { Status } from "../model/catalogue.ts";
import { cssPx } from "../units/screen.ts";
import { level } from "../units/tiles.ts";
import { nanos } from "../units/time.ts";
import { FIRST_STATE, resized, withCatalogue, withStatus, type State } from "../state/viewer.ts";
import { COMMANDS, commandFor, keyOf, type Key, type Pressed } from "./keys.ts";
import { wordsFor } from "./notice.tsx";
import { trackLike } from "../testing/tracks.ts";

const extent = { begin: nanos(0), end: nanos(10_000) };
const STATUS: Status = {
  extent,
  unix: true,
  levels: { min: level(0), max: level(62) },
  version: 1,
  doneBytes: 0,
  totalBytes: 1,
  etaMs: null,
  state: "building",
  failure: null,
  events: null,
  lost: 0n,
};
const TRACK = trackLike(0, { id: "a", name: "a" });

function keyAt(code: string, key = code, more: Partial<Key> = {}): Key {
  return { key, code, shift: false, control: false, alt: false, ...more };
}

function pressed(state: State, ...keys: Key[]): State {
  return keys.reduce((now, key) => commandFor(key)?.act(now, key) ?? now, state);
}

const sized = resized(withStatus(FIRST_STATE, STATUS), { width: cssPx(1_000), height: cssPx(100), ratio: 1 });
const ready: State = withCatalogue(sized, { tracks: [TRACK], values: [] });
const below: State = { ...ready, cursor: { time: nanos(2_500), row: "track a" } };

test("no key means two things", () => {
  const keys = ["KeyW", "KeyA", "KeyS", "KeyD", "KeyX", "KeyZ", "KeyP", "KeyH", "KeyU", "KeyE", "KeyT", "KeyF", "KeyV", "KeyL", "Home", "Escape", "Backspace", "PageUp", "PageDown"];
  const arrows = [" ", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "+", "-", "?", ",", ".", "[", "]"];
  for (const code of [...keys, ...arrows]) {
    expect(COMMANDS.filter((command) => command.on(keyAt(code))).length, code).toBe(1);
  }
  expect(new Set(COMMANDS.map((command) => command.keys)).size).toBe(COMMANDS.length);
});

test("keys of the browser and of the system are left alone", () => {
  expect(commandFor(keyAt("KeyW", "w", { control: true }))).toBeNull();
  expect(commandFor(keyAt("F5"))).toBeNull();
});

test("letters are known by where they are, signs by what they are", () => {
  // On a French keyboard the key that is W elsewhere writes z.
  expect(pressed(ready, keyAt("KeyW", "z")).view?.span).toBe(7_500n);
  expect(pressed(ready, keyAt("Slash", "-")).view?.span).toBe(10_000n);
  expect(pressed(ready, keyAt("BracketRight", "+")).view?.span).toBe(7_500n);
});

test("AltGr is neither Ctrl nor Alt, and means the sign that is written", () => {
  const pressOf = (code: string, key: string, ...modifiers: string[]): Pressed => {
    const [ctrlKey, altKey] = [modifiers.includes("Control"), modifiers.includes("Alt")];
    return { code, key, ctrlKey, altKey, shiftKey: false, metaKey: false, getModifierState: (name) => modifiers.includes(name) };
  };
  const keysFor = (event: Pressed): string | undefined => commandFor(keyOf(event))?.keys;
  // A German keyboard: Windows says Ctrl and Alt as well, others do not.
  for (const modifiers of [["AltGraph"], ["AltGraph", "Control", "Alt"]]) {
    expect([keysFor(pressOf("Digit8", "[", ...modifiers)), keysFor(pressOf("Digit9", "]", ...modifiers)), keysFor(pressOf("KeyQ", "@", ...modifiers))]).toEqual(["[", "]", "@"]);
    expect([keysFor(pressOf("KeyE", "€", ...modifiers)), keysFor(pressOf("Digit2", "²", ...modifiers))]).toEqual([undefined, undefined]);
  }
  expect(keysFor(pressOf("Digit2", "2", "Alt"))).toBe("Alt 1…");
  expect(keyOf(pressOf("KeyS", "s", "Control"))).toMatchObject({ control: true, alt: false, code: "KeyS" });
});

test("zooming keeps what is below the pointer, else the middle", () => {
  expect(pressed(ready, keyAt("KeyW")).view).toEqual({ begin: 1_250n, span: 7_500n });
  expect(pressed(below, keyAt("KeyW")).view).toEqual({ begin: 625n, span: 7_500n });
  expect(pressed(below, keyAt("KeyW"), keyAt("KeyS")).view).toEqual(ready.view);
});

test("the window moves, and ends where the traces end", () => {
  const near = pressed(ready, keyAt("KeyW"), keyAt("KeyW"));
  const later = pressed(near, keyAt("KeyD"));
  expect(later.view?.begin).toBeGreaterThan(near.view?.begin ?? 0n);
  expect(pressed(later, keyAt("ArrowLeft")).view).toEqual(near.view);
  const end = pressed(near, ...Array.from({ length: 9 }, () => keyAt("KeyD", "D", { shift: true })));
  expect(end.view?.begin).toBe(10_000n - (near.view?.span ?? 0n));
  expect(pressed(end, keyAt("Home")).view).toEqual({ begin: 0n, span: 10_000n });
});

test("the selection is shown, and one can go back", () => {
  const selected = { ...ready, selection: { begin: nanos(100), span: nanos(50) } };
  const there = pressed(selected, keyAt("KeyZ"));
  expect(there.view).toEqual(selected.selection);
  expect(pressed(there, keyAt("Backspace")).view).toEqual(ready.view);
  expect(pressed(there, keyAt("Backspace"), keyAt("Backspace", "Backspace", { shift: true })).view).toEqual(selected.selection);
  expect(pressed(there, keyAt("Escape")).selection).toBeNull();
  expect(pressed(ready, keyAt("KeyZ"))).toBe(ready);
});

test("what is picked is shown, and let go of", () => {
  const picked = { ...ready, item: { track: "a", time: nanos(5_000) }, itemExtent: { begin: nanos(5_000), end: nanos(5_200) } };
  expect(pressed(picked, keyAt("KeyF")).view).toEqual({ begin: 4_950n, span: 300n });
  expect(pressed(picked, keyAt("Escape"))).toMatchObject({ item: null, itemExtent: null });
  expect(pressed(ready, keyAt("KeyF"))).toBe(ready);
});

test("what is below the pointer is pinned, hidden, folded; without a pointer nothing is", () => {
  expect(pressed(below, keyAt("KeyP")).layout.pinned).toEqual(["a"]);
  expect(pressed(below, keyAt("KeyH")).layout.hidden).toEqual(["a"]);
  expect(pressed(below, keyAt("KeyH"), keyAt("KeyU")).layout.hidden).toEqual([]);
  expect(pressed(below, keyAt("KeyE")).layout.folded).toEqual(["G"]);
  expect(pressed(ready, keyAt("KeyP"), keyAt("KeyH"), keyAt("KeyE"))).toBe(ready);
});

test("C colours by application, and once more by thread", () => {
  const coloured = pressed(ready, keyAt("KeyC"));
  expect([ready.colouring, coloured.colouring, pressed(coloured, keyAt("KeyC")).colouring]).toEqual(["thread", "application", "thread"]);
  expect(pressed(ready, keyAt("KeyC", "C", { control: true }))).toBe(ready);
});

test("L follows what is recorded, Space holds it back and goes on, zooming keeps its end; where nothing is recorded Space is the browser's", () => {
  const live = { state: "recording", watermark: nanos(10_000), behindMs: 300, problem: null } as const;
  const following = withCatalogue(resized(withStatus(FIRST_STATE, { ...STATUS, live }), sized.size), { tracks: [TRACK], values: [] });
  expect(following.follow.isOn).toBe(true);
  const [space, l] = [keyAt("Space", " "), keyAt("KeyL")];
  expect(pressed(following, space).follow.isOn).toBe(false);
  expect([pressed(following, space, space).follow.isOn, pressed(following, space, l).follow.isOn]).toEqual([true, true]);
  expect(pressed(following, l)).toBe(following);
  expect(pressed({ ...following, cursor: { time: nanos(5), row: null } }, keyAt("KeyW"))).toMatchObject({ view: { begin: 2_500n, span: 7_500n }, follow: { isOn: true, span: 7_500n } });
  expect(pressed(following, keyAt("KeyW"), keyAt("KeyA")).follow.isOn).toBe(false);
  expect(pressed(pressed(following, keyAt("KeyW"), keyAt("KeyA")), keyAt("Home")).follow).toEqual({ isOn: true, span: null, left: null });
  const isFree = (state: State, on: string | null = null): boolean | undefined =>
    commandFor(space)?.where?.(state, { closest: (selectors: string) => (on !== null && selectors.split(", ").includes(on) ? {} : null) } as Pick<Element, "closest">);
  expect([isFree(following), isFree(ready), isFree(FIRST_STATE)]).toEqual([true, false, false]);
  expect(["button", "input", "summary", "[role=tree]", "[role=grid]"].map((on) => isFree(following, on))).toEqual([false, false, false, false, true]);
});

test("before the server says anything, keys do nothing", () => {
  for (const command of COMMANDS.filter(({ keys }) => !["T", "K", "?", "Esc", "U", "B", "Q", "I", "V", "C"].includes(keys))) {
    expect(command.act(FIRST_STATE, keyAt("x"))).toBe(FIRST_STATE);
  }
});

test.each<[string, Partial<State>, string | null]>([
  ["nothing is known", { status: null, rows: [] }, "The traces are being opened. This takes a moment."],
  ["nothing is known of tracks", { isCatalogued: false, rows: [] }, "The traces are being opened. This takes a moment."],
  ["nothing is read", { rows: [], catalogue: { tracks: [], values: [] } }, "Nothing is read yet. Tracks appear as soon as they are found."],
  ["there are rows", {}, null],
  ["all is hidden", { rows: [] }, "All tracks are hidden. Press U to show them again."],
  ["there is nothing", { status: { ...STATUS, state: "complete" }, rows: [], catalogue: { tracks: [], values: [] } }, "These traces contain nothing to draw. `kymo TRACE` summarizes them."],
  ["reading failed", { status: { ...STATUS, state: "failed", failure: "the disk is gone" } }, "The disk is gone. What was read before that is shown."],
  ["nothing new of what is recorded is seen", { status: { ...STATUS, live: { state: "recording", watermark: nanos(9), behindMs: 5, problem: "`metadata` cannot be read" } } }, "`metadata` cannot be read. What was recorded before is shown."],
  ["the server is gone", { fault: { kind: "unreachable", message: "the server does not answer" } }, "The server does not answer. Is `kymo view` still running? It is asked again until it answers."],
])("when %s, it is said why and what to do", (_, more, text) => {
  const words = wordsFor({ ...ready, ...more });
  expect(words === null ? null : `${words.why} ${words.todo}`).toBe(text);
});
