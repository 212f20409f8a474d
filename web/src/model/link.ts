// A link to a view: the view and the token stand behind `#`, which browsers send to no server, and name to no other page.

/** The link to the view that `hash` holds, from the page's own address. */
export function linkTo(href: string, hash: string, token: string | null): string {
  const url = new URL(href);
  url.search = "";
  const parts = [...(token === null ? [] : [`token=${encodeURIComponent(token)}`]), ...(hash === "" ? [] : [hash])];
  url.hash = parts.join("&");
  return url.href;
}
