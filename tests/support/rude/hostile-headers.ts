import type { Random } from './random.ts';

/** Headers that the server reads, or hands on to what reads them. */
const NAMES = [
  ...['baggage', 'traceparent', 'tracestate', 'x-amzn-trace-id', 'accept', 'accept-encoding', 'range', 'if-range'],
  ...['if-match', 'if-none-match', 'if-modified-since', 'content-type', 'content-encoding', 'content-md5', 'cookie'],
  ...['origin', 'forwarded', 'x-forwarded-for', 'user-agent', 'te', 'trailer', 'authorization', 'content-length'],
  ...['x-amz-date', 'x-amz-content-sha256', 'x-amz-security-token', 'x-amz-decoded-content-length', 'x-amz-trailer'],
  ...['x-amz-copy-source', 'x-amz-copy-source-range', 'x-amz-meta-x', 'x-amz-target', 'x-amz-sdk-checksum-algorithm'],
  ...['x-amzn-bedrock-agentcore-runtime-session-id', 'x-amzn-bedrock-agentcore-runtime-user-id', 'mcp-session-id'],
  ...['sec-websocket-protocol', 'sec-websocket-extensions', 'sec-websocket-key', 'workloadaccesstoken'],
];

/** Up to more than a head may be long, which is 16 KiB. */
const LENGTHS = [1, 10, 300, 4000, 14_000, 20_000];

/** What patterns begin with that then come to a long run. */
const BEGINNINGS = [
  ...['', '', 'a', 'a=', 'a;b=', 'bytes=', 'bytes=0-', '00-', `00-${'a'.repeat(32)}-`, 'a/b;', 'a/b;c="', '"', 'W/"'],
  ...['Bearer ', 'Basic ', 'AWS4-HMAC-SHA256 Credential=', 'AWS4-HMAC-SHA256 Credential=a/b/c/d/e, SignedHeaders='],
  ...['Root=1-', '/bucket/', 'multipart/form-data; boundary='],
];
/** What a pattern may take in more ways than one. */
const UNITS = [
  ...[
    ' ',
    '\t',
    ' \t',
    ',',
    ';',
    '=',
    '-',
    '/',
    '.',
    '%',
    '"',
    '\\',
    '(',
    'a',
    '0',
    ', ',
    '; ',
    'a=b;',
    'a=b,',
    'a;b=c,',
  ],
  ...['0-,', '0-1,', '%20', '%zz', '%ff', '"\\', 'a/', '../', '*/*,', 'q=0.', ';q=1,', 'a ', ' a', '==', 'a.', 'a:'],
];
/** What makes it go back. */
const ENDS = ['', '!', 'x', '"', ' ', '\t!', '\x80', ','];

/** Values that are long, hardly text, or look as if a pattern could be made to go back over them again and again. */
export function hostileValue(random: Random): string {
  const length = random.pick(LENGTHS);
  const kind = random.below(4);
  // Bytes that a head may hold, and bytes that it may not; neither ends its line.
  if (kind === 0) return fromBytes(random.bytes(Math.min(length, 4000)), 0x21);
  if (kind === 1) return fromBytes(random.bytes(Math.min(length, 300)), 0x0e);
  const unit = random.pick(UNITS);
  return `${random.pick(BEGINNINGS)}${unit.repeat(Math.ceil(length / unit.length))}${random.pick(ENDS)}`;
}

function fromBytes(bytes: Buffer, lowest: number): string {
  return String.fromCharCode(...bytes.map((byte) => Math.max(byte, lowest)));
}

/** One hostile header, or one name again and again. */
export function hostileHeaders(random: Random): [name: string, value: string][] {
  const name = random.pick(NAMES);
  if (random.below(4) > 0) return [[name, hostileValue(random)]];
  return Array.from({ length: 2 + random.below(60) }, () => [name, hostileValue(random).slice(0, 100)]);
}
