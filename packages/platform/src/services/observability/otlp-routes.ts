import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { errors } from '@agentplatform/contract';
import type { FastifyReply } from 'fastify';
import { addressKey, type OpenCall, type RouteSet } from '../../kernel/http/index.ts';
import { BrokenMessageError, spansInJson, spansInProtobuf } from './otlp/index.ts';
import type { SpanIntake, Taken } from './span-intake.ts';
import type { Sender } from './span-row.ts';

export interface OtlpRoutesDeps {
  intake: SpanIntake;
  /** Whose sandbox is at that address; undefined where it is none, or where it cannot be told. */
  atAddress(address: string | undefined): Sender | undefined;
}

/** Of a body, packed or not. */
const MOST_BYTES = 16 * 1024 * 1024;
const PATH = '/v1/traces';
const unpack = promisify(gunzip);

/** OTLP over HTTP as sandboxes send it: the address says whose the spans are, so that exporters need no credentials. */
export function sandboxOtlpRoutes({ intake, atAddress }: OtlpRoutesDeps): RouteSet {
  const senderOf = ({ socket }: IncomingMessage): Sender | undefined => atAddress(addressKey(socket.remoteAddress));
  return {
    name: 'otlp',
    untraced: true,
    listeners: ['sandboxes'],
    routes: [
      {
        method: 'POST',
        url: PATH,
        open: (request) => senderOf(request) !== undefined,
        because: 'whoever asks comes from the address of a sandbox, and can say something of its own session alone',
        async answer(call) {
          const sender = senderOf(call.request.raw);
          if (!sender) throw errors.missingAuthentication('This address is that of no sandbox.');
          return take(intake, call, sender);
        },
      },
    ],
  };
}

/** The same for agents elsewhere, by an access key as user and password: `OTEL_EXPORTER_OTLP_HEADERS=authorization=Basic …`. */
export function otlpRoutes({ intake }: Pick<OtlpRoutesDeps, 'intake'>): RouteSet {
  return {
    name: 'otlp',
    untraced: true,
    routes: [
      {
        method: 'POST',
        url: PATH,
        credentials: { kind: 'access-key' },
        ask: (call) => ({
          rights: { action: 'agentplatform:PutSpans', resource: '*' },
          answer: () => take(intake, call, { accountId: call.accountId, agent: '', sessionId: '' }),
        }),
      },
    ],
  };
}

async function take(intake: SpanIntake, { request, reply }: OpenCall, sender: Sender): Promise<FastifyReply> {
  const { 'content-type': type = '', 'content-encoding': coding = 'identity' } = request.headers;
  const json = type.startsWith('application/json');
  if (!json && !type.startsWith('application/x-protobuf')) {
    intake.refuse();
    throw errors.validation('OTLP comes as application/x-protobuf or application/json.');
  }
  const body = await unpacked(await whole(request.raw), coding);
  let taken: Taken;
  try {
    taken = await intake.take(json ? spansInJson(body.toString('utf8')) : spansInProtobuf(body), sender);
  } catch (error) {
    if (!(error instanceof BrokenMessageError)) throw error;
    intake.refuse();
    throw errors.validation(`The body is no OTLP request for spans: ${error.message}.`, { cause: error });
  }
  if (taken.accepted === 0 && taken.rejected > 0 && taken.why.includes('per second'))
    throw errors.throttling(`${taken.why}.`, { retryAfterSeconds: 1 });
  return json
    ? reply.type('application/json').send(JSON.stringify(partialOf(taken)))
    : reply.type('application/x-protobuf').send(partialMessage(taken));
}

async function whole(req: IncomingMessage): Promise<Buffer> {
  if (Number(req.headers['content-length'] ?? 0) > MOST_BYTES) throw tooLong();
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of req as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > MOST_BYTES) throw tooLong();
    parts.push(part);
  }
  return Buffer.concat(parts, length);
}

async function unpacked(body: Buffer, coding: string): Promise<Buffer> {
  if (coding === 'identity' || coding === '') return body;
  if (coding !== 'gzip') throw errors.validation('The body of an OTLP request may be packed by gzip alone.');
  return unpack(body, { maxOutputLength: MOST_BYTES }).catch((cause: unknown) => {
    throw cause instanceof RangeError ? tooLong() : errors.validation('The body is not packed by gzip.', { cause });
  });
}

const tooLong = (): Error =>
  errors.tooLarge(`A request with spans has at most ${MOST_BYTES} bytes.`, { remedy: 'Send smaller batches.' });

const partialOf = ({ rejected, why }: Taken): object =>
  rejected === 0 ? {} : { partialSuccess: { rejectedSpans: String(rejected), errorMessage: why } };

/** `ExportTraceServiceResponse` (opentelemetry-proto): field 1 is the partial success, of which 1 is the number and 2 the reason. */
function partialMessage({ rejected, why }: Taken): Buffer {
  if (rejected === 0) return Buffer.alloc(0);
  const text = Buffer.from(why);
  const partial = Buffer.concat([
    Buffer.from([0x08]),
    varint(rejected),
    Buffer.from([0x12]),
    varint(text.length),
    text,
  ]);
  return Buffer.concat([Buffer.from([0x0a]), varint(partial.length), partial]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest % 128) + 128);
  }
}
