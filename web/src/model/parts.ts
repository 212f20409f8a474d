// JSON as it stands there, part by part: members of an object that a page does not know go back as they came, to the last digit.

const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],]/g;
const MEMBER = /^("(?:[^"\\]|\\.)*")\s*:\s*([^]*)$/;

/** The texts of a list's items. The text is JSON, and a list. */
export function itemTexts(text: string): string[] {
  return parts(text);
}

/** The names of an object's members, with the texts of their values. The text is JSON, and an object. */
export function memberTexts(text: string): [string, string][] {
  return parts(text).flatMap((part): [string, string][] => {
    const [, name = '""', value = ""] = MEMBER.exec(part) ?? [];
    return [[JSON.parse(name) as string, value]];
  });
}

/** The text between the outermost brackets, and the commas there. */
function parts(text: string): string[] {
  const found: string[] = [];
  let [depth, begin] = [0, 0];
  for (const { 0: sign, index } of text.matchAll(TOKENS)) {
    const isIn = sign === "{" || sign === "[";
    const isOut = sign === "}" || sign === "]";
    depth -= isOut ? 1 : 0;
    if ((isOut && depth === 0) || (sign === "," && depth === 1)) {
      found.push(text.slice(begin, index).trim());
      begin = index + 1;
    }
    depth += isIn ? 1 : 0;
    if (isIn && depth === 1) {
      begin = index + 1;
    }
  }
  return found.filter((part) => part !== "");
}
