// The list of all keyboard shortcuts.

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { LIST_COMMANDS } from "./events/keys.ts";
import { usePick } from "./hooks.ts";
import { COMMANDS, GESTURES } from "./keys.ts";
import type { Page } from "./page.ts";

export function Help({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const [open] = usePick(store, (state) => [state.help] as const);
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open && dialog.current?.open === false) {
      dialog.current.showModal();
      // The button at the end has the focus, and the text to read first stands at the begin.
      dialog.current.scrollTop = 0;
    } else if (!open) {
      dialog.current?.close();
    }
  }, [open]);
  const close = (): void => store.update((state) => ({ ...state, help: false }));
  return (
    <dialog class="help" ref={dialog} onClose={close} aria-labelledby="help-title">
      <h2 id="help-title">Keys</h2>
      <List entries={COMMANDS.map(({ keys, what }) => [keys, what] as const)} />
      <h2>Keys in the list of events</h2>
      <List entries={LIST_COMMANDS.map(({ keys, what }) => [keys, what] as const)} />
      <h2>Mouse</h2>
      <List entries={GESTURES} />
      <button type="button" class="button" onClick={close}>
        Close
      </button>
    </dialog>
  );
}

function List({ entries }: { readonly entries: ReadonlyArray<readonly [string, string]> }): JSX.Element {
  return (
    <dl>
      {entries.map(([keys, what]) => (
        <div key={keys}>
          <dt>
            {keys.split("  ").map((key) => (
              <kbd key={key}>{key}</kbd>
            ))}
          </dt>
          <dd>{what}</dd>
        </div>
      ))}
    </dl>
  );
}
