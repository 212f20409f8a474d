// The one place that changes. A state is a plain value; code that wants another one gives a function from the old to the new.

export class Store<T> {
  private value: T;
  private readonly listeners = new Set<() => void>();

  constructor(value: T) {
    this.value = value;
  }

  get state(): T {
    return this.value;
  }

  /** Replaces the state by the result of `change`; listeners hear of it if it is another one. */
  update(change: (state: T) => T): void {
    const next = change(this.value);
    if (next !== this.value) {
      this.value = next;
      this.listeners.forEach((listener) => listener());
    }
  }

  /** Calls `listener` after each change, until the caller calls the returned function. */
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
