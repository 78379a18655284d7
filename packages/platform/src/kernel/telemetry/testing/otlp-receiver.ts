import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** A span as it came over the wire. */
export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  /** Empty for the first of its trace. */
  parentId: string;
  name: string;
  /** As OTLP numbers them: 1 internal, 2 server, 3 client, 5 consumer. */
  kind: number;
  /** Nanoseconds since the epoch. */
  start: bigint;
  end: bigint;
  /** 2 where it failed. */
  status: number;
  attributes: Record<string, unknown>;
  resource: Record<string, unknown>;
}

/** A metric as it came over the wire. */
export interface ReceivedMetric {
  name: string;
  unit: string;
  kind: 'gauge' | 'sum' | 'histogram';
  points: {
    attributes: Record<string, unknown>;
    /** Of a gauge or a sum. */
    value: number | undefined;
    /** Of a histogram: of each bucket by itself, and the upper bounds of all but the last. */
    counts: number[];
    bounds: number[];
    sum: number | undefined;
  }[];
  resource: Record<string, unknown>;
}

/** Takes spans and metrics as a collector does: OTLP over HTTP, in protobuf, decoded here by hand. */
export class OtlpReceiver {
  readonly #server: Server;
  readonly spans: ReceivedSpan[] = [];
  /** Of each request, as a map by their names. */
  readonly metrics: Map<string, ReceivedMetric>[] = [];
  /** All bodies, one after the other. */
  readonly bytes: Buffer[] = [];
  readonly requests: { path: string; headers: IncomingHttpHeaders; spans: number }[] = [];
  /** What each request is answered with. */
  status = 200;
  /** Says how many spans it refuses of each request that it takes. */
  refuses = 0;

  readonly port: number;

  private constructor(server: Server) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
  }

  /** `port` 0 picks a free one. */
  static async start(port = 0): Promise<OtlpReceiver> {
    const server = createServer();
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    const receiver = new OtlpReceiver(server);
    server.on('request', async (req, res) => {
      const body = await buffer(req).catch(() => undefined);
      if (!body) return;
      const taken = receiver.status === 200 ? body : Buffer.alloc(0);
      const isMetrics = req.url?.endsWith('/v1/metrics') === true;
      if (isMetrics && receiver.status === 200) receiver.metrics.push(metricsOf(taken));
      const spans = isMetrics ? [] : spansOf(taken);
      receiver.spans.push(...spans);
      receiver.bytes.push(body);
      receiver.requests.push({ path: req.url ?? '', headers: req.headers, spans: spans.length });
      res.writeHead(receiver.status, { 'content-type': 'application/x-protobuf' });
      res.end(receiver.refuses > 0 ? Buffer.from([0x0a, 2, 0x08, receiver.refuses]) : '');
    });
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  named(name: string | RegExp): ReceivedSpan[] {
    return this.spans.filter((span) => (typeof name === 'string' ? span.name === name : name.test(span.name)));
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

/** The fields of one protobuf message, by their numbers. */
type Fields = Map<number, (Buffer | bigint)[]>;

function fieldsOf(message: Buffer): Fields {
  const fields: Fields = new Map();
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number): Buffer => {
    at += length;
    return message.subarray(at - length, at);
  };
  while (at < message.length) {
    const tag = Number(varint());
    const wire = tag & 7;
    const value = wire === 0 ? varint() : wire === 1 ? take(8) : wire === 5 ? take(4) : take(Number(varint()));
    fields.set(tag >> 3, [...(fields.get(tag >> 3) ?? []), value]);
  }
  return fields;
}

function messages(fields: Fields, number: number): Fields[] {
  return (fields.get(number) ?? []).map((value) => fieldsOf(value as Buffer));
}

function bytesOf(fields: Fields, number: number): Buffer {
  return (fields.get(number)?.[0] as Buffer | undefined) ?? Buffer.alloc(0);
}

function spansOf(body: Buffer): ReceivedSpan[] {
  return messages(fieldsOf(body), 1).flatMap((one) => {
    const resource = Object.assign({}, ...messages(one, 1).map((fields) => attributesOf(fields, 1)));
    return messages(one, 2).flatMap((scope) => messages(scope, 2).map((span) => spanOf(span, resource)));
  });
}

function spanOf(span: Fields, resource: Record<string, unknown>): ReceivedSpan {
  return {
    traceId: bytesOf(span, 1).toString('hex'),
    spanId: bytesOf(span, 2).toString('hex'),
    parentId: bytesOf(span, 4).toString('hex'),
    name: bytesOf(span, 5).toString('utf8'),
    kind: Number(span.get(6)?.[0] ?? 0),
    start: bytesOf(span, 7).readBigUInt64LE(),
    end: bytesOf(span, 8).readBigUInt64LE(),
    status: Number(messages(span, 15)[0]?.get(3)?.[0] ?? 0),
    attributes: attributesOf(span, 9),
    resource,
  };
}

function metricsOf(body: Buffer): Map<string, ReceivedMetric> {
  const all = messages(fieldsOf(body), 1).flatMap((one) => {
    const resource = Object.assign({}, ...messages(one, 1).map((fields) => attributesOf(fields, 1)));
    return messages(one, 2).flatMap((scope) => messages(scope, 2).map((metric) => metricOf(metric, resource)));
  });
  return new Map(all.map((metric) => [metric.name, metric]));
}

/** Of a metric 5 is a gauge, 7 a sum and 9 a histogram; their points are their field 1. */
const KINDS = new Map([
  [5, 'gauge'],
  [7, 'sum'],
  [9, 'histogram'],
] as const);

function metricOf(metric: Fields, resource: Record<string, unknown>): ReceivedMetric {
  const [number, kind] = [...KINDS].find(([field]) => metric.has(field)) ?? [5, 'gauge'];
  const of = { name: bytesOf(metric, 1).toString('utf8'), unit: bytesOf(metric, 3).toString('utf8') };
  const points = messages(fieldsOf(bytesOf(metric, number)), 1).map(kind === 'histogram' ? distributionOf : singleOf);
  return { ...of, kind, points, resource };
}

function singleOf(point: Fields): ReceivedMetric['points'][number] {
  const value = bytesOf(point, 4).readDoubleLE();
  return { attributes: attributesOf(point, 7), value, counts: [], bounds: [], sum: undefined };
}

function distributionOf(point: Fields): ReceivedMetric['points'][number] {
  const counts = eights(bytesOf(point, 6)).map((eight) => Number(eight.readBigUInt64LE()));
  const bounds = eights(bytesOf(point, 7)).map((eight) => eight.readDoubleLE());
  return {
    attributes: attributesOf(point, 9),
    value: undefined,
    counts,
    bounds,
    sum: bytesOf(point, 5).readDoubleLE(),
  };
}

/** A packed field of fixed numbers. */
function eights(packed: Buffer): Buffer[] {
  return Array.from({ length: Math.floor(packed.length / 8) }, (_, at) => packed.subarray(at * 8, at * 8 + 8));
}

function attributesOf(fields: Fields, number: number): Record<string, unknown> {
  return Object.fromEntries(
    messages(fields, number).map((one) => [bytesOf(one, 1).toString('utf8'), anyOf(fieldsOf(bytesOf(one, 2)))]),
  );
}

function anyOf(value: Fields): unknown {
  const [[kind, [first]] = [0, []]] = value as Map<number, (Buffer | bigint)[]>;
  if (kind === 1) return (first as Buffer).toString('utf8');
  if (kind === 2) return first === 1n;
  if (kind === 3) return Number(BigInt.asIntN(64, first as bigint));
  if (kind === 4) return (first as Buffer).readDoubleLE();
  return kind === 5 ? messages(fieldsOf(first as Buffer), 1).map(anyOf) : undefined;
}
