// How the pages are built: one script, one style sheet, one page, no file that is fetched from elsewhere.
import { defineConfig } from "vitest/config";

/** A `kymo view` that runs: `KYMO_URL=http://127.0.0.1:PORT npm run serve` shows the pages as they are being written, with its traces. */
const target = process.env["KYMO_URL"];
/** It answers no page of another origin; this one is trusted by whoever starts it. */
const asOwn = ["origin", "sec-fetch-site"];

export default defineConfig({
  base: "./",
  server: {
    proxy: target === undefined ? {} : { "/api": { target, changeOrigin: true, configure: (proxy) => proxy.on("proxyReq", (request) => asOwn.forEach((name) => request.removeHeader(name))) } },
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
  },
  test: {
    include: ["src/**/*.test.ts"],
    environment: "node",
    // Several runs at a time, also of other clones, share `node_modules`, where vitest would keep results.
    cache: false,
  },
});
