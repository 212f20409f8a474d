/** How long tests wait for a condition. It is long, because a machine that has much else to do takes its time; a test that waits for a condition
 * that never comes about fails all the same. */
export const PATIENCE_MS = 100_000;
