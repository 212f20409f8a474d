// The secret with which the page may ask the server. It comes in the URL that `kymo view` prints, as `?token=` or `#token=`, and is
// taken out of it at once, so that it is neither in the history nor in a copy of the address bar.

/** The parts of a browser that the page needs here; tests have their own. */
export interface Place {
  readonly location: { readonly href: string };
  readonly history: { replaceState(state: unknown, unused: string, url: string): void };
  readonly storage: { getItem(name: string): string | null; setItem(name: string, value: string): void };
}

const NAME = "kymo token";

/** The token of the URL, else the one that this tab had before it was reloaded. */
export function takeToken(place: Place): string | null {
  const url = new URL(place.location.href);
  const hash = new URLSearchParams(url.hash.replace(/^#/, ""));
  const token = url.searchParams.get("token") ?? hash.get("token");
  if (token === null) {
    return place.storage.getItem(NAME);
  }
  place.storage.setItem(NAME, token);
  url.searchParams.delete("token");
  if (hash.has("token")) {
    hash.delete("token");
    url.hash = hash.toString();
  }
  place.history.replaceState(null, "", url.href);
  return token;
}
