/** Names that are looked for below each other, each with the pointer that ends there. */
interface Wanted {
  pointer?: string;
  below: Map<string, Wanted>;
}

interface Frame {
  /** Names of the object so far; undefined for a list. */
  names?: Set<string>;
  index: number;
  wanted?: Wanted;
}

/** What JSON.parse does not tell about a text that it reads. */
export interface JsonFacts {
  depth: number;
  /** Values in it. */
  nodes: number;
  /** Names that one object has twice, with their offset; the first of them. */
  repeated: { name: string; offset: number }[];
}

const MOST_REPEATED = 20;

/** Walks a text that JSON.parse accepts, without recursion. */
export function scanJson(text: string): JsonFacts {
  const facts: JsonFacts = { depth: 0, nodes: 0, repeated: [] };
  walk(
    text,
    { below: new Map() },
    {
      value: (depth) => {
        facts.nodes += 1;
        facts.depth = Math.max(facts.depth, depth);
      },
      repeated: (name, offset) => {
        if (facts.repeated.length < MOST_REPEATED) facts.repeated.push({ name, offset });
      },
    },
  );
  return facts;
}

/** Offsets of the values at these pointers (each by its tokens), in one pass. */
export function locateInJson(text: string, pointers: ReadonlyMap<string, readonly string[]>): Map<string, number> {
  const root: Wanted = { below: new Map() };
  for (const [pointer, tokens] of pointers) {
    let at = root;
    for (const token of tokens) {
      const next: Wanted = at.below.get(token) ?? { below: new Map() };
      at.below.set(token, next);
      at = next;
    }
    at.pointer = pointer;
  }
  const found = new Map<string, number>();
  walk(text, root, { found: (pointer, offset) => void found.set(pointer, offset) });
  return found;
}

interface Heard {
  value?(depth: number): void;
  repeated?(name: string, offset: number): void;
  found?(pointer: string, offset: number): void;
}

function walk(text: string, root: Wanted, heard: Heard): void {
  const frames: Frame[] = [];
  let at = 0;
  let wanted: Wanted | undefined = root;
  /** Where a name began, if the value that follows has one. */
  let begun: number | undefined;
  while (at < text.length) {
    const char = text.charCodeAt(at);
    const top = frames.at(-1);
    if (char === QUOTE && top?.names && begun === undefined) {
      const end = endOfString(text, at);
      const name = nameOf(text.slice(at, end));
      if (top.names.has(name)) heard.repeated?.(name, at);
      top.names.add(name);
      wanted = top.wanted?.below.get(name);
      begun = at;
      at = end;
      continue;
    }
    if (char <= SPACE || char === COLON) {
      at += 1;
      continue;
    }
    if (char === COMMA || char === CLOSE_OBJECT || char === CLOSE_LIST) {
      if (char !== COMMA) frames.pop();
      else if (top) top.index += 1;
      at += 1;
      continue;
    }
    if (top && !top.names) wanted = top.wanted?.below.get(String(top.index));
    heard.value?.(frames.length);
    if (wanted?.pointer !== undefined) heard.found?.(wanted.pointer, begun ?? at);
    begun = undefined;
    if (char === OPEN_OBJECT) frames.push({ names: new Set(), index: 0, wanted });
    else if (char === OPEN_LIST) frames.push({ index: 0, wanted });
    at =
      char === OPEN_OBJECT || char === OPEN_LIST
        ? at + 1
        : char === QUOTE
          ? endOfString(text, at)
          : endOfWord(text, at);
  }
}

const [QUOTE, SPACE, COLON, COMMA, BACKSLASH] = [0x22, 0x20, 0x3a, 0x2c, 0x5c];
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_LIST, CLOSE_LIST] = [0x7b, 0x7d, 0x5b, 0x5d];

function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return end + 1;
  }
  return text.length;
}

function nameOf(quoted: string): string {
  return quoted.includes('\\') ? String(JSON.parse(quoted)) : quoted.slice(1, -1);
}

/** A number, true, false or null. */
function endOfWord(text: string, start: number): number {
  let end = start + 1;
  for (
    let char = text.charCodeAt(end);
    char > COMMA && char !== COLON && char !== CLOSE_LIST && char !== CLOSE_OBJECT;
  )
    char = text.charCodeAt(++end);
  return end;
}
