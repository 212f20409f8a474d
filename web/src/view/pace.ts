// When the page takes the server's news: while traces are read, or events of a filter are looked for, versions follow each other many
// times a second, and a page that asks for all news at each of them keeps the server from reading.

export class Pace {
  private readonly late: () => void;
  private taken = 0;
  private takenAt = -Infinity;
  private heard = 0;
  private timer: ReturnType<typeof setTimeout> | null = null;

  /** `late` is told of a version that is taken later than it was heard. */
  constructor(late: () => void) {
    this.late = late;
  }

  /** The version that was taken last. */
  get version(): number {
    return this.taken;
  }

  /** The server has said its version. Whether it is a new one, and taken now: if none was for so long; else the last one that is heard until then is
   * taken then. */
  hear(version: number, pauseMs: number): boolean {
    this.heard = version;
    if (version === this.taken) {
      this.stop();
      return false;
    }
    const rest = this.takenAt + pauseMs - performance.now();
    if (rest > 0) {
      this.timer ??= setTimeout(() => this.takeLate(), rest);
      return false;
    }
    this.take();
    return true;
  }

  /** Another server counts versions anew. */
  reset(): void {
    this.stop();
    this.taken = 0;
    this.takenAt = -Infinity;
  }

  private takeLate(): void {
    this.take();
    this.late();
  }

  private take(): void {
    this.stop();
    this.taken = this.heard;
    this.takenAt = performance.now();
  }

  private stop(): void {
    if (this.timer !== null) {
      clearTimeout(this.timer);
      this.timer = null;
    }
  }
}
