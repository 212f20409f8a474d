// When the page takes the server's news: while traces are read, or recorded, versions follow each other many times a second, and a page that asks
// for all news at each of them keeps the server from reading. The next version is taken a pause after the answers in the last one have come: where
// answers take longer than versions, the page would else never have all that it asked for, and a window that follows a recording would stand still.

export class Pace {
  private readonly late: () => void;
  private taken = 0;
  /** Since when nothing is asked for in the version that was taken; `null`: answers are still to come. */
  private answeredAt: number | null = -Infinity;
  private heard = 0;
  private pauseMs = 0;
  private timer: ReturnType<typeof setTimeout> | null = null;

  /** `late` is told of a version that is taken later than it was heard. */
  constructor(late: () => void) {
    this.late = late;
  }

  /** The version that was taken last. */
  get version(): number {
    return this.taken;
  }

  /** The server has said its version. Whether it is a new one, and taken now: if the page has had its answers for so long; else the last one that is
   * heard until then is taken then. */
  hear(version: number, pauseMs: number): boolean {
    [this.heard, this.pauseMs] = [version, pauseMs];
    if (version === this.taken) {
      this.stop();
      return false;
    }
    if (this.answeredAt === null) {
      return false;
    }
    const rest = this.answeredAt + pauseMs - performance.now();
    if (rest > 0) {
      this.timer ??= setTimeout(() => this.takeLate(), rest);
      return false;
    }
    this.take();
    return true;
  }

  /** Everything that was to be asked for in the version that was taken is answered, or cannot be asked for now. */
  answered(): void {
    if (this.answeredAt !== null) {
      return;
    }
    this.answeredAt = performance.now();
    if (this.heard !== this.taken) {
      this.timer = setTimeout(() => this.takeLate(), this.pauseMs);
    }
  }

  /** Another server counts versions anew. */
  reset(): void {
    this.stop();
    [this.taken, this.heard, this.answeredAt] = [0, 0, -Infinity];
  }

  private takeLate(): void {
    this.take();
    this.late();
  }

  private take(): void {
    this.stop();
    [this.taken, this.answeredAt] = [this.heard, null];
  }

  private stop(): void {
    if (this.timer !== null) {
      clearTimeout(this.timer);
      this.timer = null;
    }
  }
}
