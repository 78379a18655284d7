import { createHash, createHmac, randomUUID } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';
import { Sha256 } from '../../../bench/support/signed-requests.ts';
import { operations } from '../../../packages/contract/src/index.ts';
import type { Ready } from '../../../packages/platform/src/announce.ts';
import type { TestPlatform } from '../platform-process.ts';
import { type DeclaredRoute, methodsOf, pathsOf } from './declared-routes.ts';
import { hostileHeaders, hostileValue } from './hostile-headers.ts';
import type { Random } from './random.ts';
import { inHttp1, inHttp2, type Piece, piece } from './wire-forms.ts';

/** What is sent on one connection. */
export interface Message {
  name: string;
  protocol: 'HTTP/1.1' | 'HTTP/2';
  /** Its body makes sense where it goes. */
  sound: boolean;
  pieces: Piece[];
}

/** What requests are made for: a platform, or what stands in for one. */
export type Target = Pick<TestPlatform, 'credentials'> & { ready: Pick<Ready, 'endpoint' | 'region'> };

export interface Route {
  method: string;
  path: string;
  /** What a request is signed for. */
  service: string;
  /** It asks to go on as a WebSocket. */
  upgrade?: boolean;
  /** What makes sense there; most messages have one of these. */
  bodies?: readonly string[];
  /** The same of headers, asked for with each message. */
  headers?: () => Readonly<Record<string, string>>;
  /** Who comes, where not just anybody does. */
  callers?: readonly Caller[];
}

const SESSION = 'x-amzn-bedrock-agentcore-runtime-session-id';
/** More than is read whole, so that it streams. */
const LARGE = 70_000;

/** Where nothing is served. */
const NOWHERE: readonly [string, string][] = [
  ['OPTIONS', '/'],
  ['DELETE', '/no/such/path'],
  ['QUERY', '/no/such/path'],
  ['PUT', `/${'x'.repeat(5000)}`],
];

/** Every route of the platform: the contract's, for each of the agents where they name one, and what it has declared beside them. */
export function routes(agents: readonly string[], declared: readonly DeclaredRoute[]): Route[] {
  const ofContract = Object.values(operations).flatMap(({ method, path }) =>
    // The hot path comes once for each agent.
    (path.includes('{agentRuntimeArn}') ? agents : ['zz']).map((agent): Route => {
      const filled = path.replace(/\{([^}]+)\}/g, (_all, label: string) =>
        label === 'agentRuntimeArn' ? encodeURIComponent(agent) : `zz_${label.toLowerCase().slice(0, 8)}-0123456789`,
      );
      return { method, path: filled, service: 'bedrock-agentcore' };
    }),
  );
  const streams = agents.flatMap((agent) =>
    ['ws', 'ws/shells'].map(
      (end): Route => ({
        method: 'GET',
        path: `/runtimes/${encodeURIComponent(agent)}/${end}`,
        service: 'bedrock-agentcore',
        upgrade: true,
      }),
    ),
  );
  const beside = declared.flatMap((route) =>
    methodsOf(route).flatMap((method) =>
      pathsOf(route).map((path): Route => ({ method, path, service: route.service ?? 'bedrock-agentcore' })),
    ),
  );
  const nowhere = NOWHERE.map(([method, path]): Route => ({ method, path, service: 'bedrock-agentcore' }));
  return [...ofContract, ...streams, ...beside, ...nowhere];
}

const BODIES = ['none', 'small', 'large', 'chunked', 'aws-chunked', 'promised'] as const;
const THERE = ['small', 'large', 'chunked', 'aws-chunked'] as const satisfies (typeof BODIES)[number][];
type Body = (typeof BODIES)[number] | 'sound';
const CALLERS = ['nobody', 'bearer', 'basic', 'signed', 'signed', 'signed', 'altered'] as const;
const UPGRADING = ['nobody', 'bearer', 'signed', 'signed'] as const;
export type Caller = (typeof CALLERS)[number];

/** Makes messages for a platform: any caller, any body, by either protocol, on any route, sound or with one thing wrong. */
export class Messages {
  readonly #target: Target;
  readonly #random: Random;
  readonly #sessions: readonly string[];

  constructor(target: Target, random: Random, sessions: readonly string[]) {
    this.#target = target;
    this.#random = random;
    this.#sessions = sessions;
  }

  /** With a body of some bytes where `withBody` says so. */
  async make(route: Route, withBody = false): Promise<Message> {
    const random = this.#random;
    const callers = route.upgrade ? UPGRADING : (route.callers ?? CALLERS);
    const caller = random.pick(callers);
    const sound = route.bodies !== undefined && !withBody && random.below(4) > 0;
    const body: Body = route.upgrade ? 'none' : sound ? 'sound' : random.pick(withBody ? THERE : BODIES);
    const content = sound ? Buffer.from(random.pick(route.bodies ?? [])) : bodyOf(body, random);
    const headers: Record<string, string> = { host: new URL(this.#target.ready.endpoint).host };
    // Without one each would begin a session of its own.
    headers[SESSION] = random.pick(this.#sessions);
    if (route.headers && random.below(8) > 0) Object.assign(headers, route.headers());
    else if (random.below(2) === 0)
      headers['content-type'] = random.pick(['application/json', 'text/plain', 'x/y; z=']);
    if (route.upgrade)
      Object.assign(headers, {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      });
    if (random.below(6) === 0) headers.expect = '100-continue';
    const hostile = random.below(3) === 0;
    // Signed as well as it can be, or put in on the way.
    if (hostile && random.below(2) === 0)
      headers[random.pick(['baggage', 'range', 'x-amz-meta-x'])] = hostileValue(random);
    const { authorized, chunks } = await this.#authorize(caller, route, headers, body, content);
    if (body === 'chunked' || (body === 'aws-chunked' && random.below(2) === 0))
      authorized['transfer-encoding'] = 'chunked';
    else if (body === 'promised') authorized['content-length'] = String(random.pick([1, LARGE, 1e9, 2 ** 53]));
    else if (body !== 'none')
      authorized['content-length'] = String(length(chunks ?? [{ kind: 'body', bytes: content }]));
    const parts = {
      method: route.method,
      path: route.path,
      headers: [...Object.entries(authorized), ...(hostile ? hostileHeaders(random) : [])],
      body: chunks ?? (content.length > 0 ? [{ kind: 'body', bytes: content }] : []),
    };
    // A WebSocket stays with HTTP/1.1.
    const protocol = route.upgrade || random.below(3) > 0 ? 'HTTP/1.1' : 'HTTP/2';
    const pieces = protocol === 'HTTP/2' ? inHttp2(parts, random) : inHttp1(parts);
    if (route.upgrade) pieces.push(...frames(random));
    const name = `${route.method} ${route.path.slice(0, 80)} (${protocol}, ${caller}, ${body}${hostile ? ', hostile headers' : ''})`;
    return { name, protocol, sound, pieces };
  }

  async #authorize(
    caller: string,
    { method, path, service }: Route,
    headers: Record<string, string>,
    body: Body,
    content: Buffer,
  ): Promise<{ authorized: Record<string, string>; chunks?: Piece[] }> {
    const random = this.#random;
    const { accessKeyId, secretAccessKey } = this.#target.credentials;
    if (caller === 'nobody') return { authorized: headers };
    if (caller === 'bearer') return { authorized: { ...headers, authorization: `Bearer ${random.pick(['x', JWT])}` } };
    if (caller === 'basic') {
      const login = Buffer.from(`${accessKeyId}:${secretAccessKey}`).toString('base64');
      return { authorized: { ...headers, authorization: `Basic ${login}` } };
    }
    const { region, endpoint } = this.#target.ready;
    const credentials = this.#target.credentials;
    const signer = new SignatureV4({ service, region, credentials, sha256: Sha256, uriEscapePath: service !== 's3' });
    const declared = caller === 'altered' ? Buffer.concat([content, Buffer.from('!')]) : content;
    const ofBody = createHash('sha256').update(declared).digest('hex');
    const streams = body === 'aws-chunked';
    const hash = streams ? 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD' : random.pick([ofBody, ofBody, 'UNSIGNED-PAYLOAD']);
    const [pathname = '/', query = ''] = path.split('?');
    const url = new URL(endpoint);
    const signed = await signer.sign({
      method,
      protocol: 'http:',
      hostname: url.hostname,
      port: Number(url.port),
      path: pathname,
      query: Object.fromEntries(new URLSearchParams(query)),
      headers: { ...headers, 'x-amz-content-sha256': hash },
    });
    if (!streams) return { authorized: signed.headers };
    const [, seed = ''] = /Signature=([0-9a-f]+)/.exec(signed.headers.authorization ?? '') ?? [];
    const date = signed.headers['x-amz-date'] ?? '';
    const key = { secretAccessKey, region, service, date, seed };
    return {
      authorized: signed.headers,
      chunks: signedChunks(content, key, random.pick(['no', 'no', 'first', 'last'])),
    };
  }
}

/** Three parts of no meaning. */
const JWT = ['{"alg":"RS256","kid":"x"}', '{"iss":"https://x.example","aud":"y"}', 'sig']
  .map((part) => Buffer.from(part).toString('base64url'))
  .join('.');

function bodyOf(body: Body, random: Random): Buffer {
  if (body === 'none' || body === 'promised') return Buffer.alloc(0);
  if (body === 'small')
    return Buffer.from(
      random.pick(['{}', '{', '[1]', '{"do":"count"}', `{"clientToken":"${randomUUID()}"}`, '\0', '"\\ud800"']),
    );
  return Buffer.alloc(LARGE, 'a');
}

function length(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { bytes }) => sum + bytes.length, 0);
}

interface ChunkKey {
  secretAccessKey: string;
  region: string;
  service: string;
  /** As in `x-amz-date`. */
  date: string;
  seed: string;
}

/** `aws-chunked`, each chunk signed after the one before; the signature of one may be wrong. */
function signedChunks(content: Buffer, key: ChunkKey, wrong: string): Piece[] {
  const hmac = (secret: string | Buffer, text: string): Buffer => createHmac('sha256', secret).update(text).digest();
  const sha = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
  const day = key.date.slice(0, 8);
  const scope = `${day}/${key.region}/${key.service}/aws4_request`;
  const signingKey = [key.region, key.service, 'aws4_request'].reduce<Buffer>(
    hmac,
    hmac(`AWS4${key.secretAccessKey}`, day),
  );
  const half = Math.ceil(content.length / 2);
  const chunks = [content.subarray(0, half), content.subarray(half), Buffer.alloc(0)];
  let previous = key.seed;
  return chunks.flatMap((chunk, index) => {
    const text = ['AWS4-HMAC-SHA256-PAYLOAD', key.date, scope, previous, sha(Buffer.alloc(0)), sha(chunk)].join('\n');
    previous = hmac(signingKey, text).toString('hex');
    const isWrong = (wrong === 'first' && index === 0) || (wrong === 'last' && index === chunks.length - 1);
    return [
      piece('chunk head', chunk.length.toString(16)),
      piece('chunk signature', `;chunk-signature=${isWrong ? '0'.repeat(64) : previous}\r\n`),
      { kind: 'body', bytes: chunk },
      piece('end of chunk', '\r\n'),
    ];
  });
}

/** Frames of a WebSocket's client: sound, unmasked, of an unknown kind, of a length that never comes, a goodbye. */
function frames(random: Random): Piece[] {
  return Array.from({ length: 1 + random.below(4) }, () => {
    const first = random.pick([0x81, 0x82, 0x01, 0x80, 0x89, 0x8a, 0x88, 0xf3, 0x83]);
    const payload = random.bytes(random.pick([0, 1, 2, 125]));
    const head = random.pick([
      Buffer.from([first, 0x80 | payload.length, 0, 0, 0, 0]),
      Buffer.from([first, 0x80 | payload.length, 0, 0, 0, 0]),
      Buffer.from([first, payload.length]),
      Buffer.from([first, 0xfe, 0xff, 0xff, 0, 0, 0, 0]),
      Buffer.from([first, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
    ]);
    return [
      { kind: 'frame head', bytes: head },
      { kind: 'frame', bytes: payload },
    ];
  }).flat();
}
