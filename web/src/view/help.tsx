// The list of all keyboard shortcuts.

import type { JSX } from "preact";
import { LIST_COMMANDS } from "./events/keys.ts";
import { usePick } from "./hooks.ts";
import { COMMANDS, GESTURES } from "./keys.ts";
import { Modal } from "./modal.tsx";
import type { Page } from "./page.ts";

export function Help({ page }: { readonly page: Page }): JSX.Element | null {
  const { store } = page;
  const [open] = usePick(store, (state) => [state.help] as const);
  if (!open) {
    return null;
  }
  return (
    <Modal title="Keys" name="keys" closed={() => store.update((state) => ({ ...state, help: false }))}>
      {() => (
        <>
          <List entries={COMMANDS.map(({ keys, what }) => [keys, what] as const)} />
          <h2>Keys in the list of events</h2>
          <List entries={LIST_COMMANDS.map(({ keys, what }) => [keys, what] as const)} />
          <h2>Mouse</h2>
          <List entries={GESTURES} />
        </>
      )}
    </Modal>
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
