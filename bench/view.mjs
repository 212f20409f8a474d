// What a browser sees of `kymo view TRACE`: node view.mjs KYMO TRACE, with an empty cache. One JSON object:
//
//   first_s    from the start of `kymo view` to the first tiles that are drawn
//   keys_ms    from a key that moves the window to the frame behind the last tile that it needs, for each key
//   screen_ms  from frame to frame while the timeline is dragged by the middle button, on a screen of 60 Hz
//   frames_ms  the same without a screen to wait for, each frame at another place: how long one takes, with all that draws it
//   renderer   what draws

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(new URL("../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");

const [kymo, trace] = process.argv.slice(2);
const VIEW = { width: 1920, height: 1080 };
const KEYS = ["KeyW", "KeyW", "KeyW", "KeyD", "KeyD", "KeyW", "KeyW", "KeyA", "KeyW", "KeyD", "KeyW", "KeyW", "KeyS", "KeyA", "KeyS", "KeyS"];
const ROUNDS = 4;
const FRAMES = 360;
const COMPLETE_MS = 300_000;

// A browser that waits for no screen draws the next frame as soon as there was one.
const UNBOUND = ["--disable-gpu-vsync", "--disable-frame-rate-limit"];

const launched = (...more) => chromium.launch({ executablePath: process.env.KYMO_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", ...more] });
const browser = await launched();
const page = await browser.newPage({ viewport: VIEW });
// The browser is there already where somebody opens a trace.
const began = performance.now();
const server = spawn(kymo, ["view", "--no-browser", trace], { stdio: ["ignore", "pipe", "inherit"] });
try {
  const lines = createInterface({ input: server.stdout });
  const url = (await new Promise((done) => lines.once("line", done))).trim();
  await page.addInitScript(() => {
    // The first tiles that arrive are drawn in the next frame.
    const original = window.fetch;
    window.fetch = async (...request) => {
      const answer = await original(...request);
      if (String(request[0]?.url ?? request[0]).includes("/tiles") && answer.ok && window.drawn === undefined) {
        answer.clone().arrayBuffer().then(() => requestAnimationFrame(() => requestAnimationFrame(() => (window.drawn = true))));
      }
      return answer;
    };
  });
  await page.goto(url);
  await page.waitForFunction(() => window.drawn === true, undefined, { polling: "raf", timeout: COMPLETE_MS });
  const first = (performance.now() - began) / 1000;
  await completed(page);
  await built(url);
  // A hand and a machine that rest.
  await page.waitForTimeout(1000);
  const keys = await moved();
  const screen = await dragged();
  const renderer = await page.evaluate(() => {
    const gl = document.createElement("canvas").getContext("webgl2");
    const told = gl?.getExtension("WEBGL_debug_renderer_info");
    return told ? gl.getParameter(told.UNMASKED_RENDERER_WEBGL) : "canvas, in software";
  });
  await page.close();
  const frames = await unbound(url);
  console.log(JSON.stringify({ first_s: first, keys_ms: keys, screen_ms: screen, frames_ms: frames, renderer }));
} finally {
  server.kill("SIGTERM");
  await browser.close();
}

/** Waits until all that is seen is there. */
function completed(page) {
  return page.waitForFunction(() => document.querySelector("main.app")?.dataset.complete === "true", undefined, { timeout: COMPLETE_MS });
}

/** Waits until the pyramid is complete. */
async function built(url) {
  const address = new URL(url);
  const token = address.searchParams.get("token");
  for (const until = Date.now() + COMPLETE_MS; Date.now() < until; ) {
    const answer = await fetch(new URL("/api/v1/timeline", address.origin), { headers: { Authorization: `Bearer ${token}` } });
    if ((await answer.json()).state === "complete") {
      return;
    }
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error("the pyramid is not complete");
}

/** Milliseconds from each key to the frame that shows all that it needs. */
async function moved() {
  const taken = [];
  await page.mouse.move(VIEW.width / 2, VIEW.height / 2);
  for (let round = 0; round < ROUNDS; round++) {
    await page.mouse.move(VIEW.width * (0.35 + 0.1 * round), VIEW.height / 2);
    for (const code of KEYS) {
      // The page listens before the key comes.
      await page.evaluate(() => {
        window.taken = new Promise((done) => {
          const press = () => {
            const began = performance.now();
            // The page says in the next frame whether something is missing.
            const look = () => {
              const isComplete = document.querySelector("main.app").dataset.complete === "true";
              requestAnimationFrame(isComplete ? () => done(performance.now() - began) : look);
            };
            requestAnimationFrame(() => requestAnimationFrame(look));
          };
          window.addEventListener("keydown", press, { once: true });
        });
      });
      await page.keyboard.press(code);
      taken.push(await page.evaluate(() => window.taken));
    }
    await page.keyboard.press("Home");
    await page.waitForTimeout(500);
  }
  return taken;
}

/** Milliseconds between frames while the timeline is dragged to and fro by a mouse. */
async function dragged() {
  const frames = page.evaluate(
    (count) =>
      new Promise((done) => {
        const times = [];
        const look = (now) => {
          times.push(now);
          times.length < count ? requestAnimationFrame(look) : done(times.slice(1).map((time, place) => time - times[place]));
        };
        requestAnimationFrame(look);
      }),
    FRAMES,
  );
  const [left, right, height] = [VIEW.width * 0.4, VIEW.width * 0.8, VIEW.height * 0.5];
  let isDone = false;
  frames.then(() => (isDone = true));
  await page.mouse.move(right, height);
  await page.mouse.down({ button: "middle" });
  for (let step = 0; !isDone; step++) {
    const part = Math.abs(((step / 60) % 2) - 1);
    await page.mouse.move(left + part * (right - left), height);
    await new Promise((done) => setTimeout(done, 8));
  }
  await page.mouse.up({ button: "middle" });
  return await frames;
}

/** The same in a browser that draws as fast as it can: in each frame the pointer is at another place. */
async function unbound(url) {
  const browser = await launched(...UNBOUND);
  try {
    const page = await browser.newPage({ viewport: VIEW });
    await page.goto(url);
    await completed(page);
    for (const code of ["KeyW", "KeyW", "KeyW"]) {
      await page.keyboard.press(code);
    }
    await completed(page);
    await page.waitForTimeout(1000);
    const [x, y] = [VIEW.width * 0.8, VIEW.height * 0.5];
    await page.mouse.move(x, y);
    await page.mouse.down({ button: "middle" });
    const frames = await page.evaluate(
      ([count, x, y]) =>
        new Promise((done) => {
          const timeline = document.elementFromPoint(x, y);
          const times = [];
          const look = (now) => {
            times.push(now);
            if (times.length === count) {
              done(times.slice(1).map((time, place) => time - times[place]));
              return;
            }
            const place = x * (0.75 - 0.25 * Math.cos(times.length / 20));
            timeline.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: place, clientY: y, buttons: 4, pointerId: 1 }));
            requestAnimationFrame(look);
          };
          requestAnimationFrame(look);
        }),
      [FRAMES, x, y],
    );
    await page.mouse.up({ button: "middle" });
    return frames;
  } finally {
    await browser.close();
  }
}
