// Numbers as runs of neighbors, which is how they are written briefly.

/** The numbers in their order, each once, as runs from the first to the last of it. */
export function ranges(numbers: readonly number[]): readonly (readonly [number, number])[] {
  const sorted = [...new Set(numbers)].sort((one, other) => one - other);
  const runs: [number, number][] = [];
  for (const number of sorted) {
    const last = runs.at(-1);
    if (last !== undefined && last[1] + 1 === number) {
      last[1] = number;
    } else {
      runs.push([number, number]);
    }
  }
  return runs;
}
