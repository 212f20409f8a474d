// The one place that changes. A state is a plain value; whoever wants another one gives a function from the old to the new.

export class Store<T> {
  private value: T;
  private readonly listeners = new Set<() => void>();

  constructor(value: T) {
    this.value = value;
  }

  get state(): T {
    return this.value;
  }

  /** Takes what `change` makes of the state; who listens hears of it if it is another one. */
  update(change: (state: T) => T): void {
    const next = change(this.value);
    if (next !== this.value) {
      this.value = next;
      this.listeners.forEach((listener) => listener());
    }
  }

  /** Calls `listener` after each change, until what is returned is called. */
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
