// Tests with a browser: slow enough to be asked for by name (`scripts/web.sh browser`).
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["browser/**/*.test.ts"],
    environment: "node",
    // Several runs at a time, also of other clones, share `node_modules`, where vitest would keep results.
    cache: false,
    globalSetup: "browser/absent.ts",
    testTimeout: 120_000,
    hookTimeout: 60_000,
    fileParallelism: false,
    // A machine that has much else to do takes its time; a test that waits for something that never comes fails all the same.
    expect: { poll: { timeout: 30_000 } },
  },
});
