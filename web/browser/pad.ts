// The file of notes of the stand-in. Each is kept as the text that came, so that a test sees the page's text to the last digit.

export interface PadAnswer {
  readonly status: number;
  readonly body: string;
}

export class Pad {
  /** By their ids. */
  readonly notes = new Map<string, string>();
  readonly problems: { readonly line: number; readonly message: string }[] = [];
  /** It refuses to keep and to remove with this status instead, as where the file may only be read. */
  refusal: number | null = null;
  /** The traces have no file of notes, as the sample has none. */
  isAbsent = false;
  /** The requests. */
  readonly asked: string[] = [];

  clear(): void {
    this.notes.clear();
    this.problems.length = 0;
    this.refusal = null;
    this.isAbsent = false;
    this.asked.length = 0;
  }

  /** `null`: this is not about notes. */
  answer(method: string, path: string, body: string): PadAnswer | null {
    const [name, id] = path.split("/").map(decodeURIComponent);
    if (name !== "notes") {
      return null;
    }
    this.asked.push(`${method} ${path}`);
    if (this.isAbsent) {
      return { status: 404, body: JSON.stringify({ error: { code: "absent", message: "there is no notes file: uploaded traces and the sample have none" } }) };
    }
    if (id === undefined) {
      const notes = [...this.notes.values()].join(",");
      return { status: 200, body: `{"file":"/traces/invented.kymo-notes","notes":[${notes}],"problems":${JSON.stringify(this.problems)}}` };
    }
    if (this.refusal !== null) {
      return { status: this.refusal, body: JSON.stringify({ error: { code: "notes", message: "the file of notes cannot be written: permission denied" } }) };
    }
    return method === "DELETE" ? this.removed(id) : this.kept(id, body);
  }

  private removed(id: string): PadAnswer {
    const isThere = this.notes.delete(id);
    return isThere ? { status: 204, body: "" } : { status: 404, body: JSON.stringify({ error: { code: "absent", message: `there is no note \`${id}\`` } }) };
  }

  private kept(id: string, body: string): PadAnswer {
    const isThere = this.notes.has(id);
    this.notes.set(id, body);
    return { status: isThere ? 200 : 201, body };
  }
}
