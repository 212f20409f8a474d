// Tests with a browser: slow enough to be asked for by name (`scripts/web.sh browser`).
import { defineConfig } from "vitest/config";
import { PATIENCE_MS } from "./patience.ts";

export default defineConfig({
  test: {
    include: ["browser/**/*.test.ts"],
    environment: "node",
    // Several runs at a time, also of other clones, share `node_modules`, where vitest would keep results.
    cache: false,
    globalSetup: "browser/absent.ts",
    testTimeout: 3 * PATIENCE_MS,
    hookTimeout: 2 * PATIENCE_MS,
    fileParallelism: false,
    expect: { poll: { timeout: PATIENCE_MS } },
  },
});
