// Numbers of things, in words.

/** A number of things with the word for them: "1 row", "2 rows". */
export function counted(count: number | bigint, one: string, several = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 || count === 1n ? one : several}`;
}
