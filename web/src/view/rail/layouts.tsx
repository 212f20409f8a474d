// Layouts of tracks that are kept in this browser under a name.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { encodeLayouts, readLayouts, type Layout } from "../../model/layout.ts";
import { withLayout } from "../../state/viewer.ts";
import type { Page } from "../page.ts";

const KEY = "kymo-layouts";

export function Layouts({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const [kept, setKept] = useState(() => readLayouts(localStorage.getItem(KEY)));
  const [name, setName] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  const keep = (layouts: ReadonlyMap<string, Layout>): void => {
    try {
      localStorage.setItem(KEY, encodeLayouts(layouts));
      setKept(layouts);
      setFault(null);
    } catch {
      setFault("The browser has no room for it: forget another one first.");
    }
  };
  const choose = (chosen: string): void => {
    const layout = kept.get(chosen);
    if (layout !== undefined) {
      store.update((state) => withLayout(state, layout));
      setName(chosen);
    }
  };
  const trimmed = name.trim();
  return (
    <details class="layouts">
      <summary>Layouts {kept.size === 0 ? null : <span class="faint">{kept.size}</span>}</summary>
      <form
        class="rail-bar"
        onSubmit={(event) => {
          event.preventDefault();
          keep(new Map([...kept, [trimmed, store.state.layout]]));
        }}
      >
        <input class="field" aria-label="Name of the layout" placeholder="name" value={name} onInput={(event) => setName(event.currentTarget.value)} />
        <button type="submit" class="button small" disabled={trimmed === ""}>
          {kept.has(trimmed) ? "Replace" : "Save"}
        </button>
      </form>
      {fault === null ? null : (
        <p class="bad-text" role="alert">
          {fault}
        </p>
      )}
      <ul class="kept">
        {[...kept.keys()].map((one) => (
          <li key={one}>
            <button type="button" class="plain link" onClick={() => choose(one)}>
              {one}
            </button>
            <button type="button" class="plain" aria-label={`Forget layout ${one}`} title="Forget it" onClick={() => keep(new Map([...kept].filter(([other]) => other !== one)))}>
              ×
            </button>
          </li>
        ))}
      </ul>
    </details>
  );
}
