// The tab of tracks: a tree of groups and tracks, of which some are shown, pinned, moved, made higher; several at a time, and by keys.

import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { allShown } from "../../model/layout.ts";
import { plain } from "../../model/plain.ts";
import { nameOf } from "../../model/rows.ts";
import { thingsIn } from "../../model/things.ts";
import { between, levelOf, placesOf, tracksOf, treeOf, type Place, type TreeLine } from "../../model/tree.ts";
import { groupMoved, groupMovedTo, pinMoved, pinMovedTo, rowsSized, trackSeen, tracksPinned, tracksShown, tracksSized } from "../../state/tracks.ts";
import { toggleFold, withLayout, type State } from "../../state/viewer.ts";
import { usePick } from "../hooks.ts";
import type { Page } from "../page.ts";
import { Layouts } from "./layouts.tsx";
import { VirtualList } from "./virtual.tsx";
import "./rail.css";

const LINE_HEIGHT = 24;

export function Tracks({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const [layout, catalogue, idle, isCatalogued] = usePick(store, (state) => [state.layout, state.catalogue, state.idle, state.isCatalogued] as const);
  const [query, setQuery] = useState("");
  const leave = layout.active && idle !== null ? idle : null;
  const lines = useMemo(
    () => treeOf(catalogue, layout, { query, leave: leave === null ? null : (track) => leave.has(track.number) }),
    [catalogue.tracks, layout, query, leave],
  );
  return (
    <div class="rail-tab filled">
      <input class="field wide" type="search" placeholder="Search tracks: name, process, thread" aria-label="Search tracks" value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
      <div class="rail-bar">
        <label title="Leaves out tracks in which nothing happens in the window, as soon as that is known">
          <input type="checkbox" checked={layout.active} onChange={(event) => store.update((state) => withLayout(state, { ...state.layout, active: event.currentTarget.checked }))} /> only active
        </label>
        <button type="button" class="button small" title="Shows everything that is hidden (U)" onClick={() => store.update((state) => withLayout(state, allShown(state.layout)))}>
          Show all
        </button>
        <span class="sizes" role="group" aria-label="Height of rows">
          <button type="button" class="button small" aria-label="Lower rows" title="Lower rows (Ctrl+Shift+wheel)" disabled={layout.size === "small"} onClick={() => store.update((state) => rowsSized(state, -1))}>
            −
          </button>
          <button type="button" class="button small" aria-label="Higher rows" title="Higher rows (Ctrl+Shift+wheel)" disabled={layout.size === "large"} onClick={() => store.update((state) => rowsSized(state, 1))}>
            +
          </button>
        </span>
      </div>
      <Layouts page={page} />
      {lines.length === 0 ? <p class="hint">{emptyWords(isCatalogued, query)}</p> : <Tree page={page} lines={lines} />}
      <p class="hint">
        <kbd>Space</kbd>shows or hides, <kbd>P</kbd>pins, <kbd>+</kbd>
        <kbd>−</kbd>height, <kbd>Alt ↑ ↓</kbd>moves groups and pinned tracks, <kbd>Enter</kbd>goes there.
      </p>
    </div>
  );
}

function emptyWords(isCatalogued: boolean, query: string): string {
  if (query.trim() !== "") {
    return "No track is called like that.";
  }
  return isCatalogued ? "Nothing happens in the window. Move it, or show all tracks." : "The traces are being opened. This takes a moment.";
}

/** The choice in the tree: some lines by their keys, and the one that has the focus. */
interface Marks {
  readonly keys: ReadonlySet<string>;
  readonly anchor: string | null;
  readonly focus: string | null;
}

function Tree({ page, lines }: { readonly page: Page; readonly lines: readonly TreeLine[] }): JSX.Element {
  const { store } = page;
  const [marks, setMarks] = useState<Marks>({ keys: new Set(), anchor: null, focus: null });
  const [shown, setShown] = useState(-1);
  const box = useRef<HTMLDivElement>(null);
  const dragged = useRef<TreeLine | null>(null);
  const update = (change: (state: State) => State): void => store.update(change);
  /** All marked lines, if this is one of them; else this one. */
  const meant = (line: TreeLine): readonly TreeLine[] => (marks.keys.has(line.key) ? lines.filter((one) => marks.keys.has(one.key)) : [line]);
  // Where Tab leads to, also before anything has been chosen: keys mean that line.
  const first = marks.focus !== null && lines.some((line) => line.key === marks.focus) ? marks.focus : (lines[0]?.key ?? null);
  const stop = lines.findIndex((line) => line.key === first);
  const focusOn = (index: number, extends_: boolean): void => {
    const line = lines[Math.min(lines.length - 1, Math.max(0, index))];
    if (line === undefined) {
      return;
    }
    const anchor = extends_ ? (marks.anchor ?? line.key) : line.key;
    setMarks({ keys: new Set(between(lines, anchor, line.key).map((one) => one.key)), anchor, focus: line.key });
    setShown(lines.indexOf(line));
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>(`[data-key="${CSS.escape(line.key)}"]`)?.focus());
  };
  const mark = (line: TreeLine, event: MouseEvent): void => {
    if (event.shiftKey && marks.anchor !== null) {
      setMarks({ ...marks, keys: new Set(between(lines, marks.anchor, line.key).map((one) => one.key)), focus: line.key });
    } else if (event.ctrlKey || event.metaKey) {
      const keys = new Set(marks.keys);
      if (!keys.delete(line.key)) {
        keys.add(line.key);
      }
      setMarks({ keys, anchor: line.key, focus: line.key });
    } else {
      setMarks({ keys: new Set([line.key]), anchor: line.key, focus: line.key });
    }
  };
  const show = (line: TreeLine, isShown: boolean): void => update((state) => tracksShown(state, tracksOf(meant(line)), isShown));
  const press = (event: KeyboardEvent): void => {
    const line = lines[stop];
    if (event.key === "a" && (event.ctrlKey || event.metaKey)) {
      setMarks({ ...marks, keys: new Set(lines.map((one) => one.key)) });
    } else if (event.altKey && line !== undefined && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      update((state) => lineMoved(state, line, event.key === "ArrowUp" ? -1 : 1));
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      focusOn(stop + (event.key === "ArrowDown" ? 1 : -1), event.shiftKey);
    } else if (event.key === "Home" || event.key === "End") {
      focusOn(event.key === "Home" ? 0 : lines.length - 1, event.shiftKey);
    } else if (line === undefined || event.ctrlKey || event.metaKey || !acted(page, line, event, meant(line), show)) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
  const drop = (line: TreeLine): void => {
    const from = dragged.current;
    dragged.current = null;
    if (from !== null) {
      update((state) => droppedOn(state, from, line));
    }
  };
  const places = useMemo(() => placesOf(lines), [lines]);
  return (
    <div class="tree" ref={box} onKeyDown={press}>
      <VirtualList
        items={lines}
        height={LINE_HEIGHT}
        keyOf={(line) => line.key}
        role="tree"
        label="Tracks"
        shown={shown}
        kept={stop}
        more={{ "aria-multiselectable": true }}
        render={(line, index) => (
          <Line
            line={line}
            place={places[index] ?? null}
            isMarked={marks.keys.has(line.key)}
            isFirst={line.key === first}
            show={(isShown) => show(line, isShown)}
            fold={() => update((state) => toggleFold(state, line.group))}
            pin={() => update((state) => tracksPinned(state, tracksOf(meant(line)), line.kind === "track" && !line.isPinned))}
            mark={(event) => mark(line, event)}
            go={() => line.kind === "track" && update((state) => trackSeen(state, line.track))}
            drag={() => {
              dragged.current = line;
            }}
            drop={() => drop(line)}
          />
        )}
      />
    </div>
  );
}

/** The acts of keys about one line, or about all that are marked; false: none. */
function acted({ store }: Page, line: TreeLine, event: KeyboardEvent, meant: readonly TreeLine[], show: (line: TreeLine, isShown: boolean) => void): boolean {
  switch (event.key) {
    case " ":
      show(line, line.kind === "group" ? line.share !== "all" : !line.isShown);
      return true;
    case "Enter":
      store.update((state) => (line.kind === "group" ? toggleFold(state, line.group) : trackSeen(state, line.track)));
      return true;
    case "ArrowLeft":
    case "ArrowRight":
      if (line.kind === "group" && line.isFolded === (event.key === "ArrowRight")) {
        store.update((state) => toggleFold(state, line.group));
      }
      return true;
    case "p":
    case "P":
      store.update((state) => tracksPinned(state, tracksOf(meant), line.kind === "track" ? !line.isPinned : true));
      return true;
    case "+":
    case "=":
      store.update((state) => tracksSized(state, tracksOf(meant), sizeFor(state, meant, 1)));
      return true;
    case "-":
      store.update((state) => tracksSized(state, tracksOf(meant), sizeFor(state, meant, -1)));
      return true;
    default:
      return false;
  }
}

/** The size that is a step higher or lower than that of the first track that is meant. */
function sizeFor({ layout }: State, meant: readonly TreeLine[], by: 1 | -1): "small" | "plain" | "large" {
  const id = tracksOf(meant)[0]?.id ?? "";
  const now = layout.large.includes(id) ? 1 : layout.small.includes(id) ? -1 : 0;
  return (["small", "plain", "large"] as const)[Math.min(2, Math.max(0, now + by + 1))] ?? "plain";
}

function lineMoved(state: State, line: TreeLine, by: number): State {
  if (line.kind === "group") {
    return groupMoved(state, line.group, by);
  }
  return line.key.startsWith("pinned ") ? pinMoved(state, line.track.id, by) : state;
}

function droppedOn(state: State, from: TreeLine, to: TreeLine): State {
  const [one, other] = [from.key.startsWith("pinned "), to.key.startsWith("pinned ")];
  if (from.kind === "track" && to.kind === "track" && one && other) {
    return pinMovedTo(state, from.track.id, to.track.id);
  }
  return from.kind === "group" ? groupMovedTo(state, from.group, to.group) : state;
}

interface LineOptions {
  readonly line: TreeLine;
  readonly place: Place | null;
  readonly isMarked: boolean;
  /** It is where the focus goes when it comes into the tree. */
  readonly isFirst: boolean;
  readonly show: (isShown: boolean) => void;
  readonly fold: () => void;
  readonly pin: () => void;
  readonly mark: (event: MouseEvent) => void;
  readonly go: () => void;
  readonly drag: () => void;
  readonly drop: () => void;
}

function Line(options: LineOptions): JSX.Element {
  const { line, place, isMarked, isFirst, show, fold, pin, mark, go, drag, drop } = options;
  const isGroup = line.kind === "group";
  const name = isGroup ? plain(line.group) : nameOf(line.track);
  const count = isGroup ? thingsIn(line.group, line.tracks).toLocaleString("en") : "";
  const share = isGroup ? line.share : line.isShown ? "all" : "none";
  const canMove = isGroup || line.key.startsWith("pinned ");
  return (
    <div
      class={`tree-line${isGroup ? " head" : ""}${!isGroup && line.isNested ? " nested" : ""}${isMarked ? " marked" : ""}${share === "none" ? " out" : ""}`}
      role="treeitem"
      data-key={line.key}
      tabIndex={isFirst ? 0 : -1}
      aria-level={levelOf(line)}
      {...(place === null ? {} : { "aria-posinset": place.position, "aria-setsize": place.size })}
      aria-selected={isMarked}
      aria-label={`${name}${isGroup ? ` ${count}` : ""}${share === "none" ? ", hidden" : ""}${!isGroup && line.isPinned ? ", pinned" : ""}`}
      {...(isGroup ? { "aria-expanded": !line.isFolded } : {})}
      title={isGroup ? name : `${name}\n${line.track.id}`}
      draggable={canMove}
      onClick={mark}
      onDblClick={go}
      onDragStart={drag}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        drop();
      }}
    >
      {isGroup ? (
        <button type="button" class={`plain arrow${line.isFolded ? " shut" : ""}`} tabIndex={-1} aria-label={line.isFolded ? `Unfold ${name}` : `Fold ${name}`} onClick={fold} />
      ) : null}
      <input
        type="checkbox"
        tabIndex={-1}
        aria-label={`Show ${name}`}
        checked={share === "all"}
        ref={(element) => {
          if (element !== null) {
            element.indeterminate = share === "some";
          }
        }}
        onClick={(event) => event.stopPropagation()}
        onChange={(event) => show(event.currentTarget.checked)}
      />
      <span class="tree-name">{name}</span>{" "}
      {isGroup ? (
        <span class="count">{count}</span>
      ) : (
        <button
          type="button"
          class={`plain tree-pin${line.isPinned ? " on" : ""}`}
          tabIndex={-1}
          aria-label={line.isPinned ? `Unpin ${name}` : `Pin ${name} on top`}
          onClick={(event) => {
            event.stopPropagation();
            pin();
          }}
        />
      )}
    </div>
  );
}
