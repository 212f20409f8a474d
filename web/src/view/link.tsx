// The button that copies a link to this view, which opens in another tab or browser: it holds the view and the token.

import type { JSX } from "preact";
import { linkTo } from "../model/link.ts";
import { encode } from "../model/url.ts";
import { Store } from "../state/store.ts";
import { seenIn } from "../state/viewer.ts";
import { usePick } from "./hooks.ts";
import { copyText } from "./leaving.ts";
import type { Page } from "./page.ts";

/** The button tells for so long whether the link was copied. */
const TOLD_MS = 3_000;

type Outcome = "copied" | "refused" | null;

/** The label of the button, and the shorter one where the screen is narrow. */
const LABELS = { copied: ["Copied", "✓"], refused: ["Not copied", "✗"], ready: ["Copy link", "Link"] } as const;

const outcome = new Store<{ readonly of: Outcome; readonly times: number }>({ of: null, times: 0 });

/** Copies a link to the view as it is now. */
export async function copyLink({ store, events, token }: Page): Promise<void> {
  const isCopied = await copyText(linkTo(location.href, encode(seenIn(store.state, events.listed)), token));
  outcome.update(({ times }) => ({ of: isCopied ? "copied" : "refused", times: times + 1 }));
  const { times } = outcome.state;
  setTimeout(() => outcome.update((now) => (now.times === times ? { ...now, of: null } : now)), TOLD_MS);
}

export function CopyLink({ page }: { readonly page: Page }): JSX.Element {
  const [told] = usePick(outcome, ({ of }) => [of] as const);
  const [label, sign] = LABELS[told ?? "ready"];
  const hint = "Copy a link to this view, with the token (Ctrl+Shift+L). Every user who has the link and reaches this server can read these traces.";
  return (
    <button type="button" class="button copy-link" title={hint} onClick={() => void copyLink(page)}>
      <span class="label-text" aria-live="polite">
        {label}
      </span>
      <span class="label-sign" aria-hidden="true">
        {sign}
      </span>
    </button>
  );
}
