// The view in the address bar, and in the browser's history: Back goes to the window before, as long as there is one.
//
// Moves and zooms change the latest entry, once they rest. A jump to another window, which can be anywhere, makes a new entry; jumps that follow each
// other more quickly than a user looks are one. Back and Forward change the place alone: filters, panels and the arrangement stay as they are. A URL
// that the user enters is another view altogether.

import { takeToken } from "../api/token.ts";
import { decodeUrl, encode } from "../model/url.ts";
import { hasJumped, reopened, returned, seenIn, type State } from "../state/viewer.ts";
import type { Page } from "./page.ts";

/** The URL follows the window once it rests. */
const URL_PAUSE_MS = 200;
/** Quicker jumps are one entry: a key that is held steps through a trace. */
const JUMP_PAUSE_MS = 400;

/** Entries of this page have this state, those that the user makes by entering a URL have none. */
const OWN = "view";

/** The token of the address, which is taken out of it, or of this tab. */
export function ownToken(): string | null {
  return takeToken({ location, history, storage: sessionStorage });
}

/** Keeps the view in the address bar, and shows the view of a URL that the user enters there. */
export function keepUrl({ store, events, token }: Pick<Page, "store" | "events" | "token">): void {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let [before, jumpedAt, isReturning] = [store.state, -Infinity, false];
  // The browser changes the address before it says so: a view that was entered since would be lost if another were written over it.
  let known = location.hash;
  const isEntered = (): boolean => location.hash !== known && history.state !== OWN;
  const write = (state: State, how: "replaceState" | "pushState"): void => {
    if (isEntered()) {
      return;
    }
    const hash = encode(seenIn(state, events.listed));
    const isSame = hash === location.hash.replace(/^#/, "");
    if (!isSame) {
      history[how](OWN, "", hash === "" ? location.pathname + location.search : `#${hash}`);
      known = location.hash;
    }
  };
  const keep = (): void => {
    timer ??= setTimeout(() => {
      timer = null;
      write(store.state, "replaceState");
    }, URL_PAUSE_MS);
  };
  const jumped = (from: State, to: State): void => {
    const now = performance.now();
    const isOne = now - jumpedAt < JUMP_PAUSE_MS;
    jumpedAt = now;
    if (!isOne && !isEntered()) {
      history.replaceState(OWN, "", location.href);
      write(from, "replaceState");
      write(to, "pushState");
    }
    keep();
  };
  store.subscribe(() => {
    const [from, to] = [before, store.state];
    before = to;
    if (!isReturning && hasJumped(from, to)) {
      jumped(from, to);
    } else {
      keep();
    }
  });
  events.store.subscribe(keep);
  window.addEventListener("popstate", (event) => {
    if (event.state !== OWN) {
      return;
    }
    known = location.hash;
    isReturning = true;
    store.update((state) => returned(state, decodeUrl(location.hash)));
    isReturning = false;
  });
  window.addEventListener("hashchange", () => {
    if (history.state === OWN) {
      return;
    }
    // A link that is pasted here may have the token of a server that was started anew.
    if (ownToken() !== token) {
      location.reload();
      return;
    }
    const seen = decodeUrl(location.hash);
    known = location.hash;
    // The browser has made an entry for it.
    isReturning = true;
    store.update((state) => reopened(state, seen));
    isReturning = false;
    history.replaceState(OWN, "", location.href);
    events.reopen(seen.listed);
  });
}
