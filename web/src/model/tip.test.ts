import { expect, test } from "vitest";
import { placeTip } from "./tip.ts";

const SCREEN = { x: 1_000, y: 600 };

test.each<[string, number, number, number, number]>([
  ["at the right below the pointer", 100, 100, 114, 114],
  ["at the left where there is no room at the right", 900, 100, 586, 114],
  ["further up where there is no room below", 100, 500, 114, 394],
])("a tooltip is %s", (_, x, y, left, top) => {
  expect(placeTip({ x, y }, { x: 300, y: 200 }, SCREEN)).toEqual({ x: left, y: top, heightMax: 588 });
});

test("on a narrow screen it is above or below, as high as there is room", () => {
  const narrow = { x: 400, y: 600 };
  expect(placeTip({ x: 200, y: 100 }, { x: 300, y: 200 }, narrow)).toEqual({ x: 94, y: 114, heightMax: 480 });
  expect(placeTip({ x: 200, y: 500 }, { x: 300, y: 200 }, narrow)).toEqual({ x: 94, y: 286, heightMax: 480 });
  expect(placeTip({ x: 200, y: 500 }, { x: 300, y: 900 }, narrow)).toEqual({ x: 94, y: 6, heightMax: 480 });
});

test("wherever the pointer is and however large it is: it is on the screen, and not below the pointer", () => {
  for (const screen of [SCREEN, { x: 400, y: 700 }]) {
    for (let x = 0; x <= screen.x; x += 37) {
      for (let y = 0; y <= screen.y; y += 41) {
        for (const size of [{ x: 60, y: 20 }, { x: 320, y: 200 }, { x: 380, y: 500 }, { x: 300, y: 5_000 }]) {
          const place = placeTip({ x, y }, size, screen);
          const [right, bottom] = [place.x + size.x, place.y + Math.min(size.y, place.heightMax)];
          expect(place.x >= 0 && right <= screen.x && place.y >= 0 && bottom <= screen.y).toBe(true);
          expect(x > place.x && x < right && y > place.y && y < bottom).toBe(false);
        }
      }
    }
  }
});
