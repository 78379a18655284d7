/**
 * Whether the names of a path fit a pattern, both in their parts: `*` and `?` stand for letters of one name, `[a-c]` for one of
 * those, `\` takes the next letter as it is, and the part `**` for any number of names, none included. Not exponential in anything.
 */
export function pathPattern(pattern: readonly string[]): (names: readonly string[]) => boolean {
  const parts = pattern.map((part) => (part === '**' ? undefined : namePattern(part)));
  return (names) => {
    // Which parts of the pattern may come next, after each name: as many as there are parts, however often ** occurs.
    let open = reachable(new Set([0]), parts);
    for (const name of names) {
      const next = new Set<number>();
      for (const at of open) {
        if (at >= parts.length) continue;
        const part = parts[at];
        if (part === undefined) next.add(at);
        else if (part(name)) next.add(at + 1);
      }
      open = reachable(next, parts);
    }
    return open.has(parts.length);
  };
}

function reachable(from: Set<number>, parts: readonly (NameTest | undefined)[]): Set<number> {
  // A set that grows while it is walked hands out what was added, too.
  for (const at of from) if (at < parts.length && parts[at] === undefined) from.add(at + 1);
  return from;
}

type NameTest = (name: string) => boolean;
type Letter = ((letter: string) => boolean) | 'any number';

function namePattern(part: string): NameTest {
  const letters = readLetters([...part]);
  return (name) => {
    let open = skipAny(new Set([0]), letters);
    for (const letter of name) {
      const next = new Set<number>();
      for (const at of open) {
        const test = letters[at];
        if (test === 'any number') next.add(at);
        else if (test?.(letter)) next.add(at + 1);
      }
      open = skipAny(next, letters);
    }
    return open.has(letters.length);
  };
}

function skipAny(from: Set<number>, letters: readonly Letter[]): Set<number> {
  for (const at of from) if (letters[at] === 'any number') from.add(at + 1);
  return from;
}

function readLetters(part: readonly string[]): Letter[] {
  const letters: Letter[] = [];
  for (let at = 0; at < part.length; at += 1) {
    const letter = part[at] ?? '';
    if (letter === '*') letters.push('any number');
    else if (letter === '?') letters.push(() => true);
    else if (letter === '[' && part.indexOf(']', at + 2) !== -1) {
      const end = part.indexOf(']', at + 2);
      letters.push(oneOf(part.slice(at + 1, end)));
      at = end;
    } else {
      if (letter === '\\' && at + 1 < part.length) at += 1;
      const literal = part[at];
      letters.push((other) => other === literal);
    }
  }
  return letters;
}

function oneOf(inside: readonly string[]): (letter: string) => boolean {
  const not = inside[0] === '^' || inside[0] === '!';
  const set = not ? inside.slice(1) : inside;
  const ranges: [string, string][] = [];
  for (let at = 0; at < set.length; at += 1) {
    const first = set[at] ?? '';
    const last = set[at + 1] === '-' ? set[at + 2] : undefined;
    ranges.push([first, last ?? first]);
    if (last !== undefined) at += 2;
  }
  return (letter) => ranges.some(([first, last]) => first <= letter && letter <= last) !== not;
}
