// The page from top to bottom: header, timeline, status line.

import type { JSX } from "preact";
import { Header } from "./header.tsx";
import type { Page } from "./page.ts";

export function App({ page }: { readonly page: Page }): JSX.Element {
  return (
    <div class="app">
      <Header store={page.store} />
    </div>
  );
}
