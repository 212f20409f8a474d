import { expect, test } from "vitest";
import { takeToken } from "../api/token.ts";
import { linkTo } from "./link.ts";

test.each([
  ["http://127.0.0.1:8000/", "at=1~2&pin=a%2Fb", "abc", "http://127.0.0.1:8000/#token=abc&at=1~2&pin=a%2Fb"],
  ["http://127.0.0.1:8000/?token=old#at=7~8", "", "abc", "http://127.0.0.1:8000/#token=abc"],
  ["http://[::1]:8000/x/", "at=1~2", null, "http://[::1]:8000/x/#at=1~2"],
])("the link from %s to %s holds view and token, both behind #", (href, hash, token, link) => {
  expect(linkTo(href, hash, token)).toBe(link);
});

test("a page takes the token out of a link again, and the view stays", () => {
  let shown = "";
  const place = {
    location: { href: linkTo("http://127.0.0.1:8000/?token=old", "at=1~2&filter=a+%26+b", "abc") },
    history: { replaceState: (_: unknown, __: string, url: string) => void (shown = url) },
    storage: { getItem: () => null, setItem: () => undefined },
  };
  expect(takeToken(place)).toBe("abc");
  expect(new URLSearchParams(new URL(shown).hash.slice(1)).get("filter")).toBe("a & b");
  expect(shown).not.toContain("token");
});
