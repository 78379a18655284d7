import { errors } from '@agentplatform/contract';
import fastify, { type FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { AnonymousPrincipal } from '../auth/index.ts';
import { systemClock } from '../clock.ts';
import { createMetrics } from '../telemetry/index.ts';
import { passThrough } from './pass-through.ts';
import { PushBody } from './push-body.ts';
import { bodies } from './testing/bodies.ts';

const ARN = 'arn:aws:bedrock-agentcore:us-east-1:111122223333:gateway/one';
const principal: AnonymousPrincipal = { kind: 'anonymous', accountId: '1', acceptedBy: ARN, address: undefined };
const take = vi.fn();
const audit = vi.fn();
let more: number;
let app: FastifyInstance;

beforeEach(async () => {
  for (const one of [take, audit]) one.mockReset();
  const service = {
    ...{ operation: 'InvokeGateway', urls: ['/mcp'] },
    read: () => ({
      ...{ operation: 'InvokeGateway', headersToVerify: [] },
      resources: (): [string] => [ARN],
      bearer: async () => principal,
      pass: async ({ countMore }: { countMore(requests: number): void }) => {
        countMore(more);
        return { status: 200, headers: {}, body: PushBody.of('done') };
      },
    }),
  };
  const plugin = passThrough(service, {
    authenticator: { authenticate: () => Promise.reject(new Error('nobody signs here')) },
    ...{
      bodies,
      authorize: () => undefined,
      rates: { take, refused: () => undefined },
      audit,
      needRecord: () => undefined,
    },
    spool: { take: () => Promise.reject(new Error('this test spools nothing')) },
    ...{ metrics: createMetrics({ process: false }), newRequestId: () => 'request', maxSpooledBytes: 0 },
    ...{ clock: systemClock, log: pino({ level: 'silent' }) },
  });
  app = fastify();
  await app.register(plugin(() => undefined));
});
afterEach(() => app.close());

it.each([0, 4])('what comes within a request counts, and has its record: %s more', async (requests) => {
  more = requests;
  expect((await app.inject({ method: 'POST', url: '/mcp' })).statusCode).toBe(200);
  expect(take).toHaveBeenCalledTimes(1 + requests);
  expect(audit).toHaveBeenCalledTimes(1 + requests);
});

it('what is more than a caller’s rate refuses the whole', async () => {
  more = 4;
  take.mockImplementation(() => {
    if (take.mock.calls.length > 3) throw errors.throttling('too many', {});
  });
  expect((await app.inject({ method: 'POST', url: '/mcp' })).statusCode).toBe(429);
});
