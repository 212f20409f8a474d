// A canvas that writes down what is drawn on it.

import type { Box, Pen, Tools } from "../draw/pen.ts";

/** Calls in their order, as short texts. */
export class RecordingPen implements Pen {
  readonly calls: string[] = [];
  fillStyle: Pen["fillStyle"] = "";
  strokeStyle: Pen["strokeStyle"] = "";
  lineWidth = 1;
  font = "";
  textBaseline: CanvasTextBaseline = "alphabetic";
  textAlign: CanvasTextAlign = "start";
  globalAlpha = 1;

  fillRect(x: number, y: number, width: number, height: number): void {
    this.calls.push(`rect ${x} ${y} ${width} ${height} ${this.fillStyle}${this.globalAlpha === 1 ? "" : ` ${this.globalAlpha}`}`);
  }

  clearRect(x: number, y: number, width: number, height: number): void {
    this.calls.push(`clear ${x} ${y} ${width} ${height}`);
  }

  fillText(text: string, x: number, y: number): void {
    this.calls.push(`text ${text} ${x} ${y} ${this.fillStyle}`);
  }

  /** Every letter is six pixels wide. */
  measureText(text: string): TextMetrics {
    return { width: text.length * 6 } as TextMetrics;
  }

  beginPath(): void {
    this.calls.push("path");
  }

  moveTo(x: number, y: number): void {
    this.calls.push(`move ${round(x)} ${round(y)}`);
  }

  lineTo(x: number, y: number): void {
    this.calls.push(`line ${round(x)} ${round(y)}`);
  }

  stroke(): void {
    this.calls.push(`stroke ${this.strokeStyle}`);
  }

  /** Calls that begin with a word. */
  of(word: string): string[] {
    return this.calls.filter((call) => call.startsWith(`${word} `));
  }
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

/** Tools that write down what they put where. */
export function recordingTools(pen: RecordingPen): Tools {
  return {
    seal: () => pen.calls.push("seal"),
    blit: (top: number, rows: number, { x, y, width, height }: Box) => pen.calls.push(`blit ${top} ${rows} to ${x} ${y} ${width} ${height}`),
    hatch: { building: "building", unknown: "unknown" },
  };
}
