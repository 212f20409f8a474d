// The page from top to bottom: header, all of the traces, the timeline, a line that says what is where.

import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Header } from "./header.tsx";
import { Help } from "./help.tsx";
import { usePick } from "./hooks.ts";
import { commandFor } from "./keys.ts";
import { Overview } from "./overview.tsx";
import type { Page } from "./page.ts";
import { StatusLine } from "./status.tsx";
import { Timeline } from "./timeline.tsx";

export function App({ page }: { readonly page: Page }): JSX.Element {
  const [complete] = usePick(page.store, (state) => [state.complete && state.isCatalogued] as const);
  useKeys(page);
  // Tests and benchmarks wait until all tiles of the window are there.
  return (
    <main class="app" data-complete={String(complete)}>
      <Header page={page} />
      <Overview page={page} />
      <Timeline page={page} />
      <StatusLine page={page} />
      <Help page={page} />
    </main>
  );
}

function useKeys({ store }: Page): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const { key, code } = event;
      const pressed = { key, code, shift: event.shiftKey, control: event.ctrlKey || event.metaKey };
      const command = event.altKey || isTyping(event) ? null : commandFor(pressed);
      if (command !== null && (!store.state.help || key === "Escape" || key === "?")) {
        event.preventDefault();
        store.update((state) => command.act(state, pressed));
      }
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [store]);
}

/** Whoever types a text means letters. */
function isTyping(event: KeyboardEvent): boolean {
  return event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
}
