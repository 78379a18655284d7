import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { encodeError, encodeResponse, errors, matchRoute } from '@agentplatform/contract';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { IamPrincipal } from '../auth/index.ts';
import { LowDiskError } from '../disk-room.ts';
import { FakeClock } from '../fake-clock.ts';
import { JournalFullError } from '../journal/index.ts';
import { PeerForwarder, PeerTokens } from '../peers/index.ts';
import type { OperationHandlers, RequestContext } from '../service.ts';
import { HeldElsewhereError } from '../sessions/index.ts';
import type { IdempotencyKey, IdempotentWork } from '../storage/index.ts';
import { silent } from '../storage/testing/databases.ts';
import { createMetrics, RecordedSpan, type SpanKeeper, TRACE_HEADERS } from '../telemetry/index.ts';
import { type Caller, OperationCalls, type OperationCallsDeps } from './calls.ts';
import { bodies } from './testing/bodies.ts';

const ACCOUNT = '123456789012';
const ARN = `arn:aws:bedrock-agentcore:us-east-1:${ACCOUNT}:runtime/a-0123456789`;
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SESSION = 'x-amzn-bedrock-agentcore-runtime-session-id';
const USER = 'x-amzn-bedrock-agentcore-runtime-user-id';
const principal: IamPrincipal = {
  kind: 'iam',
  accountId: ACCOUNT,
  arn: `arn:aws:iam::${ACCOUNT}:user/me`,
  accessKeyId: 'AKIAEXAMPLE',
  tags: {},
};
const input = { agentRuntimeArn: ARN, runtimeSessionId: 's'.repeat(33) };
const traced = {
  traceparent: `00-${TRACE}-b7ad6b7169203331-01`,
  tracestate: 'rojo=1',
  baggage: 'tenant=7',
  'x-amzn-trace-id': `Root=1-${TRACE.slice(0, 8)}-${TRACE.slice(8)}`,
};

/** What the handler was called with; absent while it was not. */
let seen: RequestContext | undefined;
const handle = vi.fn(async (_input: object, ctx: RequestContext) => {
  seen = ctx;
  return { runtimeSessionId: input.runtimeSessionId, statusCode: 200 };
});
const clock = new FakeClock();
/** What is kept under client tokens, as JSON. */
const kept = new Map<string, { fingerprint: string; answer: string }>();
const deps = {
  authenticator: { authenticate: () => Promise.reject(new Error('nobody signs a call')) },
  authorize: vi.fn(),
  bodies,
  rates: { take: vi.fn(), refused: vi.fn() },
  audit: vi.fn(),
  needRecord: vi.fn(),
  metrics: createMetrics({ process: false }),
  idempotency: {
    async run<T>(
      { operation, token, fingerprint }: IdempotencyKey,
      parse: (stored: unknown) => T,
      work: IdempotentWork<T>,
    ) {
      const known = kept.get(`${operation} ${token}`);
      if (known && known.fingerprint !== fingerprint) throw errors.idempotencyMismatch('Used before.');
      if (known) return parse(JSON.parse(known.answer));
      const answer = await work(async () => undefined);
      kept.set(`${operation} ${token}`, { fingerprint, answer: JSON.stringify(answer) });
      return answer;
    },
  },
  needRoom: vi.fn(),
  newRequestId: () => 'the-call',
  region: 'us-east-1',
  clock,
  log: silent,
} satisfies OperationCallsDeps;
const handlers: OperationHandlers = {
  StopRuntimeSession: { resource: ({ agentRuntimeArn }) => agentRuntimeArn, handle },
  CreateWorkloadIdentity: {
    resource: () => '*',
    handle: async ({ name }) => ({ name, workloadIdentityArn: `${ARN}/${name}` }),
  },
};
const calls = new OperationCalls(deps);
calls.serve(handlers);

const requestWith = (headers: IncomingHttpHeaders): NonNullable<Caller['request']> => ({
  requestId: 'the-request',
  headers,
  origin: 'https://platform.example',
  signal: new AbortController().signal,
  sourceIp: '192.0.2.7',
});
const stop = (caller: Partial<Caller> = {}) => calls.call('StopRuntimeSession', input, { principal, ...caller });

beforeEach(() => {
  seen = undefined;
  kept.clear();
  vi.clearAllMocks();
  for (const mock of [deps.authorize, deps.rates.take, deps.needRoom, deps.needRecord]) mock.mockReset();
});

it('asks as the caller: his rate, his rights, his record and his address', async () => {
  await expect(stop({ request: requestWith({}) })).resolves.toMatchObject({ statusCode: 200 });
  expect(handle).toHaveBeenCalledWith(input, seen);
  expect(seen).toMatchObject({
    ...{ principal, accountId: ACCOUNT, region: 'us-east-1', requestId: 'the-call' },
    ...{ origin: 'https://platform.example', sourceIp: '192.0.2.7' },
  });
  expect(deps.rates.take).toHaveBeenCalledWith(principal, '192.0.2.7', 'StopRuntimeSession');
  const asked = { principal, action: 'bedrock-agentcore:StopRuntimeSession', resource: ARN, sourceIp: '192.0.2.7' };
  expect(deps.authorize).toHaveBeenCalledExactlyOnceWith({ ...asked, conditions: {} });
  await seen?.require('iam:PassRole', 'arn:aws:iam::1:role/x');
  expect(deps.authorize).toHaveBeenLastCalledWith({
    ...{ principal, action: 'iam:PassRole', resource: 'arn:aws:iam::1:role/x' },
    ...{ conditions: {}, sourceIp: '192.0.2.7' },
  });
  expect(deps.audit).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({
      ...{ requestId: 'the-call', operation: 'StopRuntimeSession', accountId: ACCOUNT, principal: principal.arn },
      ...{ resource: ARN, status: 200, sourceIp: '192.0.2.7', userAgent: 'agentplatform' },
    }),
  );
});

it('hands on of the headers those of the trace alone: no credentials, no session and no user of another request', async () => {
  const theirs = {
    authorization: 'AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/…',
    'x-amz-security-token': 'token',
    workloadaccesstoken: 'token',
    'x-amzn-bedrock-agentcore-runtime-custom-x': '1',
    cookie: 'a=1',
    'user-agent': 'theirs',
    [SESSION]: 'another session',
    [USER]: 'another user',
  };
  await stop({ request: requestWith({ ...theirs, ...traced }) });
  expect(seen?.headers).toEqual({ ...traced, 'user-agent': 'agentplatform' });
  expect(Object.keys(traced).toSorted()).toEqual(TRACE_HEADERS.toSorted());
});

it('says in whose session and for which user the call is, where it is told so', async () => {
  await stop({ request: requestWith({ [USER]: 'another user' }), sessionId: 'mine', userId: 'jane' });
  expect(seen?.headers).toEqual({ [SESSION]: 'mine', [USER]: 'jane', 'user-agent': 'agentplatform' });
  await stop({ userId: 'jane' });
  expect(seen?.headers).toEqual({ [USER]: 'jane', 'user-agent': 'agentplatform' });
});

it('works in the background, too: nobody goes away, and there is no address', async () => {
  await stop();
  expect(seen).toMatchObject({ origin: '', sourceIp: undefined, headers: { 'user-agent': 'agentplatform' } });
  expect([seen?.signal.aborted, seen?.span.traced]).toEqual([false, false]);
});

it('ends with the request that it is made for', async () => {
  const client = new AbortController();
  await stop({ request: { ...requestWith({}), signal: client.signal } });
  const [gone, calledOff] = [vi.fn(), vi.fn()];
  seen?.onGone(gone);
  seen?.onGone(calledOff)();
  expect(gone).not.toHaveBeenCalled();
  client.abort();
  expect([gone.mock.calls.length, calledOff.mock.calls.length]).toEqual([1, 0]);
  expect(seen?.signal.aborted).toBe(true);
  const late = vi.fn();
  seen?.onGone(late);
  expect(late).toHaveBeenCalledOnce();
});

it('is a part of the span of the request, and says how it ended', async () => {
  const kept: RecordedSpan[] = [];
  const keeper: SpanKeeper = {
    now: () => clock.monotonic() + 1,
    samples: () => true,
    handTo: () => () => undefined,
    keep: (span) => kept.push(span),
  };
  const parent = { traceId: TRACE, spanId: 'b7ad6b7169203331', sampled: true };
  const span = new RecordedSpan(keeper, { name: 'GetGateway', kind: 'server', parent, baggage: 'tenant=7' });
  await stop({ request: { ...requestWith(traced), span } });
  expect(seen?.span.context).toMatchObject({ traceId: TRACE, spanId: kept[0]?.spanId, baggage: 'tenant=7' });
  deps.authorize.mockImplementation(() => {
    throw errors.accessDenied('He may not.');
  });
  await expect(stop({ request: { ...requestWith(traced), span } })).rejects.toThrow('He may not.');
  expect(kept).toMatchObject([
    { name: 'StopRuntimeSession', parentId: span.spanId, attributes: { 'http.response.status_code': 200 } },
    { attributes: { 'http.response.status_code': 403, 'error.type': 'AccessDeniedException' } },
  ]);
});

it.each([
  ['who asks too often', deps.rates.take, errors.throttling('Too often.'), 429],
  ['who may not', deps.authorize, errors.accessDenied('He may not.'), 403],
])('does nothing for a caller %s, and records that', async (_who, stage, refusal, status) => {
  stage.mockImplementation(() => {
    throw refusal;
  });
  await expect(stop()).rejects.toBe(refusal);
  expect(handle).not.toHaveBeenCalled();
  expect(deps.audit).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ status, errorCode: refusal.code }));
});

it('says what a client would have been told: of wrong input, of nothing served, of a full disk, of a defect', async () => {
  await expect(
    calls.call('StopRuntimeSession', { ...input, runtimeSessionId: 'short' }, { principal }),
  ).rejects.toMatchObject({ code: 'ValidationException' });
  await expect(calls.call('ListGateways', {}, { principal })).rejects.toMatchObject({ status: 501 });
  expect(handle).not.toHaveBeenCalled();

  const create = () => calls.call('CreateWorkloadIdentity', { name: 'agent' }, { principal });
  await expect(create()).resolves.toMatchObject({ name: 'agent' });
  deps.needRoom.mockImplementation(() => {
    throw new LowDiskError({ free: 1 }, 1);
  });
  await expect(create()).rejects.toMatchObject({ status: 503 });
  // Whoever ends something needs no room for it, but a record.
  await expect(stop()).resolves.toMatchObject({ statusCode: 200 });
  deps.needRecord.mockImplementationOnce(() => {
    throw new JournalFullError('/data/journal', 'its disk is full');
  });
  handle.mockClear();
  await expect(stop()).rejects.toMatchObject({ status: 503, message: expect.stringContaining('unrecorded') });
  expect(handle).not.toHaveBeenCalled();

  handle.mockRejectedValueOnce(new TypeError('the secret cause'));
  const failure = await stop().catch((error: unknown) => error);
  expect(failure).toMatchObject({ status: 500, message: expect.not.stringContaining('secret') });
  const { body } = await deps.metrics.render();
  expect(body).toMatch(/requests_in_flight\{operation="StopRuntimeSession"\} 0/);
  expect(body).toMatch(/request_duration_seconds_count\{operation="StopRuntimeSession",status="500"\} 1/);
});

it('does once what a repeated clientToken asks for, of each caller', async () => {
  const token = { ...input, clientToken: 't'.repeat(33) };
  const once = (more: object = {}, arn = principal.arn) =>
    calls.call('StopRuntimeSession', { ...token, ...more }, { principal: { ...principal, arn } });
  const first = await once();
  expect(first).toEqual({ runtimeSessionId: input.runtimeSessionId, statusCode: 200 });
  expect(await once()).toEqual(first);
  expect(handle).toHaveBeenCalledTimes(1);
  await expect(once({ runtimeSessionId: 'o'.repeat(33) })).rejects.toMatchObject({ code: 'ValidationException' });
  await once({}, `${principal.arn}-too`);
  expect(handle).toHaveBeenCalledTimes(2);
});

describe('a call whose session another server has', () => {
  /** Calls that go there. */
  async function elsewhere(serve: RequestListener): Promise<OperationCalls> {
    const other = createServer(serve);
    await once(other.listen(0, '127.0.0.1'), 'listening');
    const forward = new PeerForwarder(new PeerTokens({ serverId: 'a', key: new Uint8Array(32).fill(1), clock }));
    onTestFinished(async () => {
      await forward.close();
      other.closeAllConnections();
      await new Promise((resolve) => other.close(resolve));
    });
    const address = `127.0.0.1:${(other.address() as AddressInfo).port}`;
    const moved = async () => {
      throw new HeldElsewhereError({ serverId: 'b', epoch: 1, address });
    };
    const made = new OperationCalls({ ...deps, forward });
    made.serve({
      StopRuntimeSession: { resource: ({ agentRuntimeArn }) => agentRuntimeArn, handle: moved },
      InvokeCodeInterpreter: { resource: () => '*', handle: moved },
    });
    return made;
  }
  const peerOf = ({ headers, method = '', url = '' }: IncomingMessage) =>
    new PeerTokens({ serverId: 'b', key: new Uint8Array(32).fill(1), clock }).verify(
      String(headers['x-agentplatform-peer']),
      { method, url },
    );

  it('goes there in its caller’s name, and a repeated clientToken does not go again', async () => {
    const came: IncomingMessage[] = [];
    const there = await elsewhere((req, res) => {
      came.push(req);
      if (came.length === 1) {
        const { status, headers, body } = encodeError(errors.conflict('It is busy.'));
        return void res.writeHead(status, headers).end(body);
      }
      const { status, headers, body } = encodeResponse('StopRuntimeSession', { ...input, statusCode: 200 });
      res.writeHead(status, headers).end(body);
    });
    const stop = () =>
      there.call(
        'StopRuntimeSession',
        { ...input, clientToken: 't'.repeat(33) },
        { principal, userId: 'jane', request: requestWith(traced) },
      );
    await expect(stop()).rejects.toMatchObject({ code: 'ConflictException', message: 'It is busy.' });
    for (let times = 0; times < 2; times++)
      expect(await stop()).toEqual({ runtimeSessionId: input.runtimeSessionId, statusCode: 200 });
    expect(came).toHaveLength(2);
    for (const req of came) {
      expect(matchRoute(req.method ?? '', (req.url ?? '').split('?')[0] ?? '')).toMatchObject({
        operation: 'StopRuntimeSession',
        labels: { agentRuntimeArn: encodeURIComponent(ARN) },
      });
      expect(peerOf(req)).toMatchObject({ to: 'b', principal, sourceIp: '192.0.2.7' });
      expect(req.headers).toMatchObject({ ...traced, [SESSION]: input.runtimeSessionId, [USER]: 'jane' });
    }
    expect(deps.audit).toHaveBeenCalledTimes(3);
  });

  it('streams its events here, and ends there with the request that it is made for', async () => {
    const client = new AbortController();
    let ended: Promise<unknown> | undefined;
    const there = await elsewhere((_req, res) => {
      ended = once(res, 'close');
      async function* events() {
        yield { result: { content: [{ type: 'text' as const, text: '42' }] } };
        await ended;
      }
      const { status, headers, body } = encodeResponse('InvokeCodeInterpreter', { sessionId: 'one', stream: events() });
      res.writeHead(status, headers);
      void (async () => {
        for await (const part of body as AsyncIterable<Uint8Array>) res.write(part);
      })();
    });
    const { sessionId, stream } = await there.call(
      'InvokeCodeInterpreter',
      { codeInterpreterIdentifier: 'aws.codeinterpreter.v1', name: 'executeCode', arguments: {} },
      { principal, request: { ...requestWith({}), signal: client.signal } },
    );
    expect(sessionId).toBe('one');
    const events = stream[Symbol.asyncIterator]();
    expect((await events.next()).value).toEqual({ result: { content: [{ type: 'text', text: '42' }] } });
    client.abort();
    await expect(events.next()).rejects.toThrow('has ended');
    await ended;
  });

  it('is told to come again where no other server is known', async () => {
    const alone = new OperationCalls(deps);
    alone.serve({
      StopRuntimeSession: {
        resource: () => ARN,
        handle: () => Promise.reject(new HeldElsewhereError({ serverId: 'b', epoch: 1, address: undefined })),
      },
    });
    await expect(alone.call('StopRuntimeSession', input, { principal })).rejects.toMatchObject({
      code: 'RetryableConflictException',
    });
  });
});
