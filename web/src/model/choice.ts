// Some of many: those that were named, less those that were taken out. Both lists hold only the clicked items, also where there
// are ten thousands to choose from. `null` stands for no choice: all.

/** The chosen items. `only` is `null` where all but `but` are. */
export interface Choice<T> {
  readonly only: readonly T[] | null;
  readonly but: readonly T[];
}

/** Nothing but these; all, if there are none. */
export function only<T>(items: readonly T[]): Choice<T> | null {
  return items.length === 0 ? null : { only: items, but: [] };
}

/** All but these. */
export function allBut<T>(items: readonly T[]): Choice<T> | null {
  return items.length === 0 ? null : { only: null, but: items };
}

/** The meaning of names, where one may mean several items. */
export interface Naming<T> {
  readonly matches: (named: T, item: T) => boolean;
  /** All items that a name means. */
  readonly expand: (named: T) => readonly T[];
}

/** Whether an item is chosen. */
export function isChosen<T>(choice: Choice<T> | null, item: T, matches: Naming<T>["matches"] = Object.is): boolean {
  if (choice === null) {
    return true;
  }
  const isNamed = choice.only === null || choice.only.some((named) => matches(named, item));
  return isNamed && !choice.but.some((named) => matches(named, item));
}

/** The same question for many items. */
export function tester<T>(choice: Choice<T> | null): (item: T) => boolean {
  if (choice === null) {
    return () => true;
  }
  const [named, but] = [choice.only === null ? null : new Set(choice.only), new Set(choice.but)];
  return (item) => (named === null || named.has(item)) && !but.has(item);
}

/** The choice with an item in it, or without it. Taking out the last named item chooses all of them again. */
export function withItem<T>(choice: Choice<T> | null, item: T, isIn: boolean, naming: Naming<T> = plainNaming()): Choice<T> | null {
  const { matches, expand } = naming;
  if (isChosen(choice, item, matches) === isIn) {
    return choice;
  }
  const { only: named, but } = choice ?? { only: null, but: [] };
  if (!isIn && named !== null && named.every((one) => one === item)) {
    return null;
  }
  const others = (list: readonly T[]): readonly T[] => list.filter((other) => other !== item);
  const back = (): readonly T[] => but.flatMap((one) => (matches(one, item) ? others(expand(one)) : [one]));
  const next: Choice<T> = isIn ? { only: named, but: back() } : { only: named === null ? null : others(named), but };
  if (isChosen(next, item, matches) !== isIn) {
    return isIn ? { ...next, only: [...(next.only ?? []), item] } : { ...next, but: [...next.but, item] };
  }
  return next.only === null && next.but.length === 0 ? null : next;
}

function plainNaming<T>(): Naming<T> {
  return { matches: Object.is, expand: (named) => [named] };
}
