// The page: before traces are open the choice of them; then from top to bottom header, all of the traces, the timeline, a line that tells the place
// of the pointer and the window.

import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { isChoosing, isWaiting } from "../state/start.ts";
import { Awaited } from "./awaited.tsx";
import { Boundary } from "./boundary.tsx";
import { Header } from "./header.tsx";
import { Help } from "./help.tsx";
import { usePick } from "./hooks.ts";
import { later } from "./later.tsx";
import { commandFor, keyOf } from "./keys.ts";
import { PanelAt } from "./panel.tsx";
import { isModalOpen } from "./modal.tsx";
import { Notice } from "./notice.tsx";
import { Overview } from "./overview.tsx";
import type { Page } from "./page.ts";
import { StatusLine } from "./status.tsx";
import { Timeline } from "./timeline.tsx";

/** A user that names traces, as most do, does not wait for it. */
const Start = later(() => import("./start/start.tsx").then((found) => found.Start));

export function App({ page }: { readonly page: Page }): JSX.Element {
  const [mustChoose, mustWait, isOpen] = usePick(page.start.store, (state) => [isChoosing(state), isWaiting(state), state.isOpen] as const);
  if (mustChoose) {
    return (
      <Boundary what="The choice of traces">
        <Start page={page} />
      </Boundary>
    );
  }
  if (mustWait) {
    return <Waiting page={page} />;
  }
  // The parts of the page ask about traces as soon as they are there.
  return isOpen ? <Traces page={page} /> : <Unknown page={page} />;
}

/** The server has not said yet whether traces are open. */
function Unknown({ page }: { readonly page: Page }): JSX.Element {
  return (
    <main class="app">
      <Notice page={page} />
    </main>
  );
}

/** Traces are being recorded that have no event yet. */
function Waiting({ page }: { readonly page: Page }): JSX.Element {
  const [waiting] = usePick(page.start.store, (state) => [state.info?.waiting ?? null] as const);
  const [fault] = usePick(page.store, (state) => [state.fault] as const);
  return fault !== null ? <Unknown page={page} /> : <Awaited page={page} waiting={waiting} />;
}

/** The traces that are open. */
function Traces({ page }: { readonly page: Page }): JSX.Element {
  const [complete] = usePick(page.store, (state) => [state.complete && state.isCatalogued] as const);
  useKeys(page);
  // Tests and benchmarks wait until all tiles of the window are there.
  return (
    <main class="app" data-complete={String(complete)}>
      <Header page={page} />
      <Overview page={page} />
      <div class="middle">
        <PanelAt page={page} side="rail" />
        <Timeline page={page} />
        <PanelAt page={page} side="inspector" />
      </div>
      <PanelAt page={page} side="drawer" />
      <StatusLine page={page} />
      <Help page={page} />
    </main>
  );
}

function useKeys(page: Page): void {
  const { store } = page;
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const pressed = keyOf(event);
      const { key } = pressed;
      if (key === "Escape" && isTyping(event) && !isModalOpen() && !event.defaultPrevented) {
        leaveBox(event.target as HTMLElement);
        return;
      }
      const command = isTyping(event) && !pressed.alt ? null : commandFor(pressed);
      // A dialog has the keys while it is open; the one that lists them is closed by the key that opens it, too.
      const isMeant = !isModalOpen() || (store.state.help && key === "?");
      if (isMeant && command !== null && command.where?.(store.state, event.target instanceof Element ? event.target : null) !== false) {
        event.preventDefault();
        store.update((state) => command.act(state, pressed));
        command.run?.(page, pressed);
      }
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [page]);
}

/** Esc leaves a box, so that keys mean commands again. One to search in is cleared first, as browsers do. */
function leaveBox(box: HTMLElement): void {
  if (!(box instanceof HTMLInputElement && box.type === "search" && box.value !== "")) {
    box.blur();
  }
}

/** Whether keys mean letters: in a box for text, or a list of choices, but not in a box to tick. One of several to choose has the arrows alone. */
function isTyping(event: KeyboardEvent): boolean {
  const { target } = event;
  const isToTick = target instanceof HTMLInputElement && (target.type === "checkbox" || (target.type === "radio" && !event.key.startsWith("Arrow")));
  return (target instanceof HTMLInputElement && !isToTick) || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}
