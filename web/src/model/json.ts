// JSON with whole numbers that may be larger than a double can hold: times of this century in nanoseconds are.

/** The value of a JSON text, with whole numbers of more than 15 digits as texts. Throws a `SyntaxError`. */
export function parseJson(text: string): unknown {
  // Most answers have none, also long ones.
  if (!/\d{16}/.test(text)) {
    return JSON.parse(text);
  }
  // A text in quotes is taken as a whole, so that digits inside of it stay as they are.
  const exact = text.replace(/"(?:[^"\\]|\\.)*"|-?\d+[\d.eE+-]*/g, (found) => (/^-?\d{16,}$/.test(found) ? `"${found}"` : found));
  return JSON.parse(exact);
}

/** A server's answer does not have the required shape. */
export class ShapeFault extends Error {}

/** An object from outside. Its members are read one by one, and faults are reported by path. */
export class Shape {
  private readonly value: unknown;
  private readonly name: string | number;
  private readonly within: Shape | null;

  /** `name` is the name of the value, or its place in a list, within its parent. */
  constructor(value: unknown, name: string | number, within: Shape | null = null) {
    this.value = value;
    this.name = name;
    this.within = within;
  }

  get(name: string): Shape {
    if (typeof this.value !== "object" || this.value === null) {
      throw this.fault("an object");
    }
    return new Shape((this.value as Record<string, unknown>)[name], name, this);
  }

  /** Whether there is anything: neither absent nor null. */
  get given(): boolean {
    return this.value !== undefined && this.value !== null;
  }

  /** Whether it is not even null: the writer does not know of it. */
  get unknown(): boolean {
    return this.value === undefined;
  }

  /** The members of an object, by names. */
  members(): [string, Shape][] {
    if (typeof this.value !== "object" || this.value === null) {
      throw this.fault("an object");
    }
    return Object.entries(this.value).map(([name, member]) => [name, new Shape(member, name, this)]);
  }

  list(): Shape[] {
    if (!Array.isArray(this.value)) {
      throw this.fault("a list");
    }
    return this.value.map((item: unknown, index) => new Shape(item, index, this));
  }

  /** How many items a list has. */
  get length(): number {
    if (!Array.isArray(this.value)) {
      throw this.fault("a list");
    }
    return this.value.length;
  }

  /** The value that is there, of any kind. */
  get written(): string {
    return JSON.stringify(this.value) ?? "";
  }

  text(): string {
    if (typeof this.value !== "string") {
      throw this.fault("a text");
    }
    return this.value;
  }

  /** A text, or a number as one. */
  label(): string {
    return typeof this.value === "number" ? String(this.value) : this.text();
  }

  flag(): boolean {
    if (typeof this.value !== "boolean") {
      throw this.fault("true or false");
    }
    return this.value;
  }

  number(): number {
    const found = typeof this.value === "string" ? Number(this.value) : this.value;
    if (typeof found !== "number" || !Number.isFinite(found)) {
      throw this.fault("a number");
    }
    return found;
  }

  /** A whole number of any size. */
  whole(): bigint {
    const isWhole = typeof this.value === "string" ? /^-?\d+$/.test(this.value) : Number.isSafeInteger(this.value);
    if (!isWhole) {
      throw this.fault("a whole number");
    }
    return BigInt(this.value as string | number);
  }

  /** Whether it has members, or items. */
  get isObject(): boolean {
    return typeof this.value === "object" && this.value !== null;
  }

  /** A number of any kind: exact if it is whole and written so, infinite if the server says so. */
  numeric(): bigint | number {
    if (this.value === "inf" || this.value === "-inf") {
      return this.value === "inf" ? Infinity : -Infinity;
    }
    return typeof this.value === "number" && !Number.isSafeInteger(this.value) ? this.number() : this.whole();
  }

  /** Where it is; answers have ten thousands of parts, and hardly ever is one wrong. */
  private get path(): string {
    const { name, within } = this;
    if (within === null) {
      return String(name);
    }
    return typeof name === "number" ? `${within.path}[${name}]` : `${within.path}.${name}`;
  }

  private fault(expected: string): ShapeFault {
    const found = this.value === undefined ? "nothing" : JSON.stringify(this.value).slice(0, 60);
    return new ShapeFault(`${this.path}: found ${found}, expected ${expected}`);
  }
}
