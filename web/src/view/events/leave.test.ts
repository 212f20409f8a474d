// Rows that leave the page, while somebody goes on using it.

import { afterEach, expect, test, vi } from "vitest";
import { Client } from "../../api/client.ts";
import { decodeUrl } from "../../model/url.ts";
import { Store } from "../../state/store.ts";
import { opened } from "../../state/viewer.ts";
import { Listing } from "../../testing/events.ts";
import type { Page } from "../page.ts";
import { EventsDesk } from "./desk.ts";
import { saveRows } from "./leave.ts";

/** More than are asked for at a time. */
const COUNT = 12_000;
const LISTING = new Listing(
  Array.from({ length: COUNT }, (_, index) => ({ time: BigInt(1_000 + index), name: index % 10 === 0 ? "jobs:begin" : "jobs:end", cpu: 0, id: BigInt(index) })),
);

afterEach(() => {
  vi.unstubAllGlobals();
});

/** A page that has no more than rows need to leave it. `heard` is told of each question. */
function pageOf(heard: (url: URL) => void): Page {
  const store = new Store(opened(decodeUrl(""), "UTC", "light"));
  const client = new Client("api/v1", null, (text) => {
    const url = new URL(text, "http://127.0.0.1/");
    heard(url);
    const { status, headers, body } = LISTING.answer(url.pathname.replace("/api/v1/", ""), url.searchParams);
    return Promise.resolve(new Response(body, { status, headers }));
  });
  return { store, events: new EventsDesk(store, client) } as Partial<Page> as Page;
}

test("a file has events of one question, whatever is listed meanwhile", async () => {
  const files: Blob[] = [];
  vi.stubGlobal("document", { createElement: () => ({ click: () => undefined }) });
  vi.spyOn(URL, "createObjectURL").mockImplementation((blob) => {
    files.push(blob as Blob);
    return "blob:";
  });
  const asked: string[] = [];
  const page = pageOf((url) => {
    if (url.searchParams.get("limit") === "10000") {
      asked.push(url.searchParams.getAll("event").join());
      page.events.setNames("jobs:begin");
    }
  });
  const said = await saveRows(page, "json", null, new AbortController().signal);
  page.events.close();
  expect(asked).toEqual(["", ""]);
  expect(said).toBe("12,000 rows saved as JSON lines.");
  const lines = (await files[0]?.text())?.trimEnd().split("\n") ?? [];
  expect([lines.length, lines.every((line) => line.includes('"jobs:'))]).toEqual([COUNT, true]);
});
