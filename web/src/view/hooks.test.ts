import { expect, test } from "vitest";
import { Store } from "../state/store.ts";
import { watch } from "./hooks.ts";

test("what has changed between drawing and watching is drawn, and so is what changes later", () => {
  const store = new Store(1);
  let drawn = store.state;
  store.update(() => 2);
  const end = watch(store, () => drawn === store.state, () => (drawn = store.state));
  expect(drawn).toBe(2);
  store.update(() => 3);
  expect(drawn).toBe(3);
  end();
  store.update(() => 4);
  expect(drawn).toBe(3);
});

test("what is drawn is not drawn again", () => {
  const store = new Store({ view: 1, status: 1 });
  let count = 0;
  watch(store, () => store.state.view === 1, () => count++);
  store.update((state) => ({ ...state, status: 2 }));
  expect(count).toBe(0);
});
