/*
 * Keys as paths. A key is cut at `/` into segments. The last one is a file `NAME.o`, those before it are directories
 * `NAME.d`, so that the keys `a` and `a/b` do not meet. A segment of 80 bytes or more gives off directories of exactly
 * 80 bytes, `NAME.c`, until less is left. In NAME every byte but a-z 0-9 _ - and a dot that is not first stands as %hh:
 * upper case too, for file systems that fold it.
 */
const CHUNK = 80;

/** The directories and, last, the file of a key. */
export function keyToPath(key: string): string[] {
  const segments = splitBytes(Buffer.from(key), SLASH);
  return segments.flatMap((segment, index) => {
    const names: string[] = [];
    let rest = segment;
    for (; rest.length >= CHUNK; rest = rest.subarray(CHUNK)) names.push(`${encode(rest.subarray(0, CHUNK))}.c`);
    names.push(`${encode(rest)}.${index === segments.length - 1 ? 'o' : 'd'}`);
    return names;
  });
}

export interface KeyEntry {
  kind: 'object' | 'directory';
  /** What the entry adds to the key: for a directory all keys below begin with it. */
  bytes: Buffer;
}

/** Reads one name of a directory; undefined for what `keyToPath` never makes. */
export function readName(name: string): KeyEntry | undefined {
  const bytes = decode(name.slice(0, -2));
  if (!bytes || `${encode(bytes)}${name.slice(-2)}` !== name) return undefined;
  if (name.endsWith('.o')) return { kind: 'object', bytes };
  if (name.endsWith('.c')) return { kind: 'directory', bytes };
  return name.endsWith('.d') ? { kind: 'directory', bytes: Buffer.concat([bytes, Buffer.from([SLASH])]) } : undefined;
}

const SLASH = 0x2f;
const DOT = 0x2e;

function splitBytes(bytes: Buffer, separator: number): Buffer[] {
  const parts: Buffer[] = [];
  let start = 0;
  for (let at = bytes.indexOf(separator); at >= 0; at = bytes.indexOf(separator, start)) {
    parts.push(bytes.subarray(start, at));
    start = at + 1;
  }
  return [...parts, bytes.subarray(start)];
}

function encode(bytes: Buffer): string {
  let name = '';
  for (const [index, byte] of bytes.entries()) {
    const char = String.fromCharCode(byte);
    const plain = /[a-z0-9_-]/.test(char) || (byte === DOT && index > 0);
    name += plain ? char : `%${byte.toString(16).padStart(2, '0')}`;
  }
  return name;
}

function decode(name: string): Buffer | undefined {
  if (!/^(?:[a-z0-9_.-]|%[0-9a-f]{2})*$/.test(name)) return undefined;
  return Buffer.from(
    name.replace(/%([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  );
}
