import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { encodeError, encodeResponse, errors, type WireResponse } from '@agentplatform/contract';
import {
  BedrockAgentCoreClient,
  InvokeAgentRuntimeCommand,
  StopRuntimeSessionCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  BedrockAgentCoreControlClient,
  CreateAgentRuntimeCommand,
  GetAgentRuntimeCommand,
  ListAgentRuntimesCommand,
  ListAgentRuntimeVersionsCommand,
  ListMemoriesCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { healthRoutes } from '../../services/administration/health-routes.ts';
import { createAuthenticator, createSpool, formatTimestamp, type Principal } from '../auth/index.ts';
import { systemClock } from '../clock.ts';
import type { PeerClaims } from '../peers/index.ts';
import type { OperationHandlers } from '../service.ts';
import { HeldElsewhereError } from '../sessions/index.ts';
import { type Database, IdempotencyStore, migrate, openDatabase, storageMigrations } from '../storage/index.ts';
import { EMBEDDED_CACHE } from '../storage/testing/databases.ts';
import { createMetrics } from '../telemetry/index.ts';
import { Unhandled } from '../unhandled.ts';
import { type AuditRecord, nameOf } from './audit-record.ts';
import { Pipeline } from './pipeline.ts';
import { RoutePipeline } from './routes/route-pipeline.ts';
import { createHttpServer, type HttpServer } from './server.ts';
import { bodies } from './testing/bodies.ts';
import { TrustedAddresses } from './trusted-addresses.ts';

const MAX_CONNECTIONS = 16;
const secretAccessKey = 'a-secret-for-this-test-only';
const logged: { msg: string; err?: { message: string } }[] = [];
const log = pino({ level: 'warn' }, { write: (line) => logged.push(JSON.parse(line)) });
const audited: AuditRecord[] = [];
/** Whose rate each request counted for. */
const counted: string[] = [];
/** Whether the address of all has had its share of refusals. */
let crowded = false;
const denied = new Set<string>();
const nowhere = new Set<string>();
const trusted = new TrustedAddresses([]);
let created = 0;
let spooled = 0;
let waiting: (() => void) | undefined;
/** What the server answers that has the session, one after the other. */
const elsewhere: WireResponse[] = [];
/** What another server says that hands the next requests on. */
let handedOn: PeerClaims | undefined;
const askedFrom: (string | undefined)[] = [];

const handlers: OperationHandlers = {
  CreateAgentRuntime: {
    resource: () => 'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/*',
    async handle(input) {
      if (input.agentRuntimeName === 'defect') throw new TypeError('the secret cause');
      created += 1;
      return {
        agentRuntimeArn: `arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/${input.agentRuntimeName}-0123456789`,
        agentRuntimeId: `${input.agentRuntimeName}-0123456789`,
        agentRuntimeVersion: String(created),
        createdAt: new Date(0),
        status: 'CREATING',
      };
    },
  },
  GetAgentRuntime: {
    resource: (input) => `arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/${input.agentRuntimeId}`,
    handle: async () => Promise.reject(errors.resourceNotFound('There is none.')),
  },
  ListAgentRuntimes: {
    resource: () => 'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/*',
    handle: async () => Promise.reject(new TypeError('the secret cause')),
  },
  ListAgentRuntimeVersions: {
    resource: () => 'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/*',
    handle: (_input, ctx) =>
      new Promise((_, reject) => {
        ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason), { once: true });
        waiting?.();
      }),
  },
  StopRuntimeSession: {
    resource: (input) => input.agentRuntimeArn,
    bearer: async (_input, token) => {
      if (token !== 'good') throw errors.unauthorized('The token is not good.');
      return {
        kind: 'oauth',
        accountId: '123456789012',
        issuer: 'https://idp',
        vouchedBy: 'https://idp',
        subject: 'me',
        claims: {},
        token,
        digest: token,
      };
    },
    async handle({ runtimeSessionId, qualifier }) {
      if (qualifier === 'elsewhere') throw new HeldElsewhereError({ serverId: 'b', epoch: 1, address: 'b:1' });
      return { runtimeSessionId, statusCode: 200 };
    },
  },
  InvokeAgentRuntime: {
    resource: (input) => input.agentRuntimeArn,
    async handle(input) {
      return {
        contentType: 'application/octet-stream',
        runtimeSessionId: input.runtimeSessionId,
        response: input.qualifier === undefined ? input.payload : parts(input.qualifier),
      };
    },
  },
};

/** An answer that breaks after its first part, or one without an end. */
async function* parts(kind: string) {
  yield Buffer.from('begun');
  if (kind === 'breaks') throw new Error('the agent is gone');
  for (;;) {
    await sleep(10);
    yield Buffer.from('and on');
  }
}

let server: HttpServer;
let database: Database;
let directory: string;
let control: BedrockAgentCoreControlClient;
let data: BedrockAgentCoreClient;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'pipeline-'));
  database = await openDatabase({ dataDir: directory, cacheDir: EMBEDDED_CACHE, log });
  await migrate(database, storageMigrations, log);
  const spool = await createSpool({ dir: join(directory, 'spool') });
  const common = {
    authenticator: createAuthenticator({
      keys: {
        find: (id) => {
          const user = { AKIATEST: 'root', AKIAMATE: 'mate' }[id];
          const arn = `arn:aws:iam::123456789012:user/${user}`;
          const principal = { kind: 'iam', accountId: '123456789012', arn, accessKeyId: id, tags: {} } as const;
          return user === undefined ? undefined : { secretAccessKey, principal };
        },
      },
      clock: systemClock,
      region: 'us-east-1',
    }),
    authorize({ action, sourceIp }: { action: string; sourceIp: string | undefined }) {
      askedFrom.push(sourceIp);
      if (denied.has(action)) throw errors.accessDenied(`Not allowed: ${action}.`);
    },
    spool: {
      take(source: Readable, maxBytes: number) {
        spooled += 1;
        return spool.take(source, maxBytes);
      },
    },
    metrics: createMetrics({ process: false }),
    audit: (record: AuditRecord) => void audited.push(record),
    needRecord: () => undefined,
    bodies,
    rates: {
      take: (principal: Principal) => void counted.push(nameOf(principal)),
      refused: () => void counted.push('nobody'),
    },
    clock: systemClock,
    newRequestId: () => crypto.randomUUID(),
    log,
  };
  const pipeline = new Pipeline({
    ...common,
    handlers,
    forward: {
      sent: () => handedOn,
      async request() {
        const { body, ...answer } = elsewhere.shift() ?? encodeError(errors.internal('Nobody was to ask.'));
        return { ...answer, body: Readable.from([Buffer.from(String(body))]) };
      },
    },
    refuseEarly(_principal, action) {
      if (nowhere.has(action)) throw errors.accessDenied(`${action} nowhere.`);
    },
    idempotency: new IdempotencyStore({ database, clock: systemClock, newId: () => crypto.randomUUID() }),
    needRoom: () => undefined,
    cover: undefined,
    maxBodyBytes: (operation) => (operation === 'InvokeAgentRuntime' ? 2_000_000 : undefined),
    region: 'us-east-1',
  });
  const readiness = [{ name: 'database', check: () => database.health() }];
  server = await createHttpServer({
    unhandled: new Unhandled(log),
    pipeline,
    maxConnections: MAX_CONNECTIONS,
    caps: { perAddress: MAX_CONNECTIONS, trusted },
    headMs: 60_000,
    admit: () => (crowded ? errors.throttling('The address had too many requests refused.') : undefined),
    signedPass: true,
    probeMs: 60_000,
    routes: {
      sets: [healthRoutes({ readiness, proof: { of: () => undefined }, clock: systemClock, log })],
      pipeline: new RoutePipeline({
        ...common,
        keys: { find: () => undefined },
        refuseEarly: () => undefined,
        needRoom: () => undefined,
      }),
    },
    clock: systemClock,
    log,
  });
  const { origin } = await server.listen('127.0.0.1', 0);
  const options = {
    endpoint: origin,
    region: 'us-east-1',
    maxAttempts: 1,
    credentials: { accessKeyId: 'AKIATEST', secretAccessKey },
  };
  control = new BedrockAgentCoreControlClient(options);
  data = new BedrockAgentCoreClient(options);
});

afterAll(async () => {
  control.destroy();
  data.destroy();
  await server.close(1000);
  await database.close();
  await rm(directory, { recursive: true, force: true });
});

const runtime = (clientToken: string, name = 'agent') =>
  new CreateAgentRuntimeCommand({
    agentRuntimeName: name,
    roleArn: 'arn:aws:iam::123456789012:role/x',
    networkConfiguration: { networkMode: 'PUBLIC' },
    agentRuntimeArtifact: { containerConfiguration: { containerUri: 'platform/agent:1' } },
    clientToken,
  });

describe('pipeline, driven by the AWS SDK', () => {
  it('answers with a request id and audits what was done', async () => {
    const answer = await control.send(runtime('t'.repeat(33)));
    expect(answer.agentRuntimeId).toBe('agent-0123456789');
    expect(answer.$metadata.requestId).toMatch(/^[0-9a-f-]{36}$/);
    expect(audited.at(-1)).toMatchObject({
      operation: 'CreateAgentRuntime',
      status: 202,
      principal: 'arn:aws:iam::123456789012:user/root',
      requestId: answer.$metadata.requestId,
    });
  });

  it('gives the same clientToken the same answer, and refuses it for another input', async () => {
    const first = await control.send(runtime('u'.repeat(33)));
    const again = await control.send(runtime('u'.repeat(33)));
    expect(again.agentRuntimeVersion).toBe(first.agentRuntimeVersion);
    expect(again.createdAt).toEqual(first.createdAt);
    await expect(control.send(runtime('u'.repeat(33), 'other'))).rejects.toMatchObject({
      name: 'ValidationException',
      reason: 'IdempotentParameterMismatchException',
    });
  });

  it('keeps under a clientToken what another server has done, and no refusal of it', async () => {
    const runtimeSessionId = 's'.repeat(33);
    const stop = () =>
      data.send(
        new StopRuntimeSessionCommand({
          agentRuntimeArn: 'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/agent-0123456789',
          ...{ runtimeSessionId, qualifier: 'elsewhere', clientToken: 'd'.repeat(33) },
        }),
      );
    elsewhere.push(
      encodeError(errors.conflict('It is busy.')),
      encodeResponse('StopRuntimeSession', { runtimeSessionId, statusCode: 200 }),
    );
    await expect(stop()).rejects.toMatchObject({ name: 'ConflictException', message: 'It is busy.' });
    for (let times = 0; times < 2; times++) expect(await stop()).toMatchObject({ runtimeSessionId, statusCode: 200 });
    expect(elsewhere).toEqual([]);
  });

  it('asks policies of the address that a request came from, also where another server has handed it on', async () => {
    const stop = () =>
      data.send(
        new StopRuntimeSessionCommand({
          agentRuntimeArn: 'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/agent-0123456789',
          runtimeSessionId: 's'.repeat(33),
        }),
      );
    askedFrom.length = 0;
    await stop();
    const claims = { to: 'a', method: 'POST', url: '/', expires: 0 };
    for (const said of [{ ...claims, sourceIp: '192.0.2.7' }, claims]) {
      handedOn = said;
      await stop();
    }
    handedOn = undefined;
    // What no client asked for came from nowhere, and not from the other server.
    expect(askedFrom).toEqual(['127.0.0.1', '192.0.2.7', undefined]);
  });

  it('audits what callers write about themselves in bounded, storable form', async () => {
    const agentRuntimeArn = `arn:\0${'x'.repeat(100)}`;
    const client = new BedrockAgentCoreClient({
      endpoint: await endpointOf(control),
      region: 'us-east-1',
      maxAttempts: 1,
      credentials: { accessKeyId: 'AKIATEST', secretAccessKey },
      customUserAgent: 'y'.repeat(5000),
    });
    await client.send(new InvokeAgentRuntimeCommand({ agentRuntimeArn, payload: Buffer.from('{}') }));
    client.destroy();
    expect(audited.at(-1)).toMatchObject({ status: 200, resource: agentRuntimeArn.replace('\0', '\ufffd') });
    expect(audited.at(-1)?.userAgent).toHaveLength(256);
  });

  it('keeps a clientToken to the caller who used it', async () => {
    const mate = new BedrockAgentCoreControlClient({
      endpoint: await endpointOf(control),
      region: 'us-east-1',
      maxAttempts: 1,
      credentials: { accessKeyId: 'AKIAMATE', secretAccessKey },
    });
    const first = await control.send(runtime('v'.repeat(33)));
    const again = await control.send(runtime('v'.repeat(33)));
    const theirs = await mate.send(runtime('v'.repeat(33)));
    expect(again.agentRuntimeVersion).toBe(first.agentRuntimeVersion);
    expect(theirs.agentRuntimeVersion).not.toBe(first.agentRuntimeVersion);
    // Nor can they spoil it: with another input the token would be refused to whoever comes second.
    await mate.send(runtime('w'.repeat(33), 'theirs'));
    await expect(control.send(runtime('w'.repeat(33), 'ours'))).resolves.toMatchObject({ status: 'CREATING' });
    mate.destroy();
  });

  it('maps errors to the SDK’s classes', async () => {
    await expect(
      control.send(new GetAgentRuntimeCommand({ agentRuntimeId: 'agent-0123456789' })),
    ).rejects.toMatchObject({ name: 'ResourceNotFoundException', $fault: 'client' });
    await expect(control.send(new ListMemoriesCommand({}))).rejects.toMatchObject({
      name: 'NotImplementedException',
      $metadata: { httpStatusCode: 501 },
    });
    denied.add('bedrock-agentcore:GetAgentRuntime');
    await expect(
      control.send(new GetAgentRuntimeCommand({ agentRuntimeId: 'agent-0123456789' })),
    ).rejects.toMatchObject({ name: 'AccessDeniedException' });
    expect(audited.at(-1)).toMatchObject({ status: 403, errorCode: 'AccessDeniedException' });
    denied.clear();
  });

  it('audits a client that went away as such, and not as a failure', async () => {
    const leaving = new AbortController();
    waiting = () => leaving.abort();
    const call = new ListAgentRuntimeVersionsCommand({ agentRuntimeId: 'agent-0123456789' });
    await expect(control.send(call, { abortSignal: leaving.signal })).rejects.toMatchObject({ name: 'AbortError' });
    await vi.waitFor(() =>
      expect(audited.at(-1)).toMatchObject({
        operation: 'ListAgentRuntimeVersions',
        status: 499,
        errorCode: 'ClientLeft',
      }),
    );
  });

  it('tells nothing of a defect inside', async () => {
    const failure = await control.send(new ListAgentRuntimesCommand({})).catch((error: unknown) => error);
    expect(failure).toMatchObject({ name: 'InternalServerException' });
    expect(String(failure)).not.toContain('the secret cause');
  });

  it('refuses who may do it nowhere before his body is read, and anybody else for what is in it', async () => {
    const bad = () => control.send(runtime('a-token-of-a-bad-name-with-33-letters', 'not a name!'));
    await expect(bad()).rejects.toMatchObject({ name: 'ValidationException' });
    nowhere.add('bedrock-agentcore:CreateAgentRuntime');
    const before = audited.length;
    await expect(bad()).rejects.toMatchObject({ name: 'AccessDeniedException' });
    await vi.waitFor(() =>
      expect(audited.slice(before)).toMatchObject([{ errorCode: 'AccessDeniedException', status: 403 }]),
    );
    expect(audited.at(-1)?.principal).not.toBeNull();
    nowhere.clear();
  });

  it('counts each request once for whoever sent it, also what is refused early or is malformed', async () => {
    const root = 'arn:aws:iam::123456789012:user/root';
    const bad = () => control.send(runtime('a-token-of-a-bad-name-with-33-letters', 'not a name!'));
    counted.length = 0;
    await expect(bad()).rejects.toMatchObject({ name: 'ValidationException' });
    nowhere.add('bedrock-agentcore:CreateAgentRuntime');
    await expect(bad()).rejects.toMatchObject({ name: 'AccessDeniedException' });
    nowhere.clear();
    await expect(control.send(new ListMemoriesCommand({}))).rejects.toMatchObject({ name: 'NotImplementedException' });
    await control.send(runtime('z'.repeat(33)));
    await vi.waitFor(() => expect(counted).toEqual([root, root, root, root]));
  });

  it('counts and audits nothing for a caller whom a made-up signature beside a body names', async () => {
    const now = formatTimestamp(systemClock.now());
    const scope = `${now.slice(0, 8)}/us-east-1/bedrock-agentcore/aws4_request`;
    const send = async (): Promise<number> => {
      const answer = await fetch(`${await endpointOf(control)}/runtimes/`, {
        method: 'PUT',
        headers: {
          'x-amz-date': now,
          authorization: `AWS4-HMAC-SHA256 Credential=AKIATEST/${scope}, SignedHeaders=host;x-amz-date, Signature=${'0'.repeat(64)}`,
        },
        body: '{}',
      });
      return answer.status;
    };
    counted.length = 0;
    const before = audited.length;
    nowhere.add('bedrock-agentcore:CreateAgentRuntime');
    expect(await send()).toBe(403);
    nowhere.clear();
    expect(await send()).toBe(403);
    await vi.waitFor(() => expect(counted).toEqual(['nobody', 'nobody']));
    expect(
      audited.slice(before).map(({ principal, operation, errorCode }) => [principal, operation, errorCode]),
    ).toEqual(Array(2).fill([undefined, 'CreateAgentRuntime', 'InvalidSignatureException']));
  });

  it('serves whose signature fits behind an address that is refused too often, and nobody else', async () => {
    const origin = await endpointOf(control);
    const now = formatTimestamp(systemClock.now());
    const scope = `${now.slice(0, 8)}/us-east-1/bedrock-agentcore/aws4_request`;
    const signature = `AWS4-HMAC-SHA256 Credential=AKIATEST/${scope}, SignedHeaders=host;x-amz-date, Signature=${'0'.repeat(64)}`;
    const send = async (authorization: string, body: string | undefined): Promise<number> => {
      const headers = { 'x-amz-date': now, ...(authorization !== '' && { authorization }) };
      const answer = await fetch(`${origin}/runtimes/`, { method: body ? 'PUT' : 'POST', headers, body });
      return answer.status;
    };
    crowded = true;
    counted.length = 0;
    try {
      await expect(control.send(runtime('y'.repeat(33)))).resolves.toMatchObject({ status: 'CREATING' });
      // Nothing, a forged signature, one that only the body would prove, a token.
      expect(await send('', undefined)).toBe(429);
      expect(await send(signature, undefined)).toBe(429);
      expect(await send(signature, '{}')).toBe(429);
      expect(await send('Bearer good', undefined)).toBe(429);
    } finally {
      crowded = false;
    }
    const nobody = Array(4).fill('nobody');
    await vi.waitFor(() => expect(counted).toEqual(['arn:aws:iam::123456789012:user/root', ...nobody]));
  });

  it('logs a defect inside, also behind a body that was read to its end', async () => {
    const before = logged.length;
    await expect(control.send(runtime('a-token-of-a-defect-with-33-letters', 'defect'))).rejects.toMatchObject({
      name: 'InternalServerException',
    });
    expect(logged.slice(before)).toMatchObject([
      { msg: 'a request failed for a reason inside the platform', err: { message: 'the secret cause' } },
    ]);
  });

  it('refuses a wrong secret and an unknown key', async () => {
    const { origin } = new URL(await endpointOf(control));
    for (const credentials of [
      { accessKeyId: 'AKIATEST', secretAccessKey: 'wrong' },
      { accessKeyId: 'AKIAOTHER', secretAccessKey },
    ]) {
      const client = new BedrockAgentCoreControlClient({
        endpoint: origin,
        region: 'us-east-1',
        maxAttempts: 1,
        credentials,
      });
      await expect(client.send(new ListAgentRuntimesCommand({}))).rejects.toMatchObject({
        $metadata: { httpStatusCode: 403 },
      });
      client.destroy();
    }
  });

  it('streams payloads back unchanged, small and large, and refuses one over the limit', async () => {
    for (const size of [0, 1, 1024, 70_000, 1_500_000]) {
      const payload = Buffer.alloc(size, 'payload');
      const answer = await data.send(
        new InvokeAgentRuntimeCommand({
          agentRuntimeArn: 'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/agent-0123456789',
          payload,
        }),
      );
      expect(Buffer.from((await answer.response?.transformToByteArray()) ?? []).equals(payload)).toBe(true);
      expect(answer.runtimeSessionId).toMatch(/^[0-9a-f-]{36}$/);
    }
    const tooLarge = new InvokeAgentRuntimeCommand({
      agentRuntimeArn: 'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/agent-0123456789',
      payload: Buffer.alloc(2_000_001),
    });
    await expect(data.send(tooLarge)).rejects.toMatchObject({
      name: 'ValidationException',
      message: expect.stringContaining('larger than 2000000 bytes'),
    });
  });

  it('is heard by an SDK in another process when it refuses a large body', async () => {
    const script = `
      import { BedrockAgentCoreClient, InvokeAgentRuntimeCommand } from '@aws-sdk/client-bedrock-agentcore';
      const client = (accessKeyId) => new BedrockAgentCoreClient({
        endpoint: '${await endpointOf(control)}', region: 'us-east-1', maxAttempts: 1,
        credentials: { accessKeyId, secretAccessKey: '${secretAccessKey}' },
      });
      const agentRuntimeArn = 'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/agent-0123456789';
      const heard = {};
      for (let i = 0; i < 10; i += 1)
        for (const [key, bytes] of [['AKIAOTHER', 5_000_000], ['AKIATEST', 50_000_000]]) {
          const call = new InvokeAgentRuntimeCommand({ agentRuntimeArn, payload: Buffer.alloc(bytes) });
          const name = await client(key).send(call).then(() => 'no error', (error) => error.name + ' ' + error.code);
          heard[name] = (heard[name] ?? 0) + 1;
        }
      process.stdout.write(JSON.stringify(heard));`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
      cwd: import.meta.dirname,
    });
    expect(JSON.parse(stdout)).toEqual({
      'UnrecognizedClientException undefined': 10,
      'ValidationException undefined': 10,
    });
  });

  it('answers all that it refuses, and the next request behind a short body', async () => {
    const stop = '/runtimes/arn/stopruntimesession';
    const bearer = 'Authorization: Bearer good\r\n';
    const chunked = `${bearer}Transfer-Encoding: chunked\r\n`;
    expect(await sendAll('/nowhere', 'Content-Type: application/json\r\n', 5_000_000)).toEqual([404]);
    expect(await sendAll('/nowhere', '', 5_000_000)).toEqual([404]);
    expect(await sendAll('/runtimes/arn/invocations', '', 5_000_000)).toEqual([403]);
    expect(await sendAll(stop, bearer, 5_000_000)).toEqual([400]);
    expect(await sendAll(stop, chunked, 5_000_000)).toEqual([400]);
    expect(await sendAll(stop, `${bearer}Connection: close\r\n`, 700_000)).toEqual([400]);
    expect(await sendAll(stop, bearer, 700_000)).toEqual([400, 200]);
    expect(await sendAll('/healthz', '', 700_000)).toEqual([404, 200]);
  });

  it('refuses a bearer token where none is taken before the body is there', async () => {
    const head = (path: string) =>
      `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\nContent-Length: 15000000\r\n\r\n{`;
    expect(await answerTo(head('/runtimes/'))).toMatch(/^HTTP\/1.1 403 .*MissingAuthenticationToken/s);
    // Where one is taken, the answer waits for the body.
    expect(await answerTo(head('/runtimes/arn/stopruntimesession'))).toBe('');
  });

  it('spools a body whose sender is known only by it, and takes it only when it is small', async () => {
    const stop = async (token: string, filler = 200_000) => {
      const path = `/runtimes/${encodeURIComponent('arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/a')}/stopruntimesession`;
      return fetch(`${await endpointOf(control)}${path}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'x-amzn-bedrock-agentcore-runtime-session-id': 's'.repeat(33),
        },
        body: JSON.stringify({ clientToken: 'c'.repeat(33), filler: 'x'.repeat(filler) }),
      });
    };
    const before = spooled;
    expect((await stop('good')).status).toBe(200);
    expect((await stop('bad')).status).toBe(401);
    expect(spooled - before).toBe(2);
    expect((await stop('good', 300_000)).status).toBe(400);
  });

  it('logs why an answer broke, and not that its reader left', async () => {
    const ask = async (qualifier: string) => {
      const { response } = await data.send(
        new InvokeAgentRuntimeCommand({
          agentRuntimeArn: 'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/agent-0123456789',
          payload: Buffer.from('{}'),
          qualifier,
        }),
      );
      return response as unknown as Readable;
    };
    const about = () => logged.filter(({ msg }) => msg === 'an answer broke after it had begun');
    const endless = await ask('endless');
    await once(endless, 'data');
    const before = audited.length;
    endless.destroy();
    await vi.waitFor(() => expect(audited.length).toBeGreaterThan(before));
    expect(about()).toEqual([]);
    await expect((await ask('breaks')).toArray()).rejects.toThrow();
    await vi.waitFor(() => expect(about()).toMatchObject([{ err: { message: 'the agent is gone' } }]));
  });

  it('closes what is more than so many connections, and takes others again when some are gone', async () => {
    const { hostname, port } = new URL(await endpointOf(control));
    const dial = async () => {
      const socket = connect(Number(port), hostname);
      socket.on('error', () => undefined);
      await once(socket, 'connect');
      return socket;
    };
    const answered = async () => {
      const socket = await dial();
      socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      const parts = await socket.toArray().catch(() => []);
      return Buffer.concat(parts).toString().startsWith('HTTP/1.1 200');
    };
    control.destroy();
    data.destroy();
    const held = await Promise.all(Array.from({ length: MAX_CONNECTIONS }, dial));
    await vi.waitFor(async () => expect(await answered()).toBe(false));
    for (const socket of held) socket.destroy();
    await vi.waitFor(async () => expect(await answered()).toBe(true));
  });

  it('says how it is', async () => {
    const origin = await endpointOf(control);
    expect(await (await fetch(`${origin}/healthz`)).json()).toEqual({ status: 'ok' });
    expect(await (await fetch(`${origin}/readyz`)).json()).toMatchObject({
      status: 'ready',
      checks: { database: { ok: true } },
    });
    const nowhere = await fetch(`${origin}/nowhere`, { method: 'POST' });
    expect([nowhere.status, nowhere.headers.get('x-amzn-errortype')]).toEqual([404, 'UnknownOperationException']);
    const unsigned = await fetch(`${origin}/runtimes/`, { method: 'POST' });
    expect([unsigned.status, unsigned.headers.get('x-amzn-errortype')]).toEqual([
      403,
      'MissingAuthenticationTokenException',
    ]);
  });
});

/** What the server says within a moment to bytes of which the rest never comes. */
async function answerTo(bytes: string): Promise<string> {
  const { hostname, port } = new URL(await endpointOf(control));
  const socket = connect(Number(port), hostname).setEncoding('utf8');
  let answer = '';
  socket.on('data', (text) => {
    answer += text;
  });
  socket.write(bytes);
  await Promise.race([once(socket, 'data'), sleep(500)]);
  socket.destroy();
  return answer;
}

/** The statuses that a client is answered that sends a body and a second request before it looks for an answer. */
async function sendAll(path: string, headers: string, bytes: number): Promise<number[]> {
  const { hostname, port } = new URL(await endpointOf(control));
  const socket = connect(Number(port), hostname);
  const failed = once(socket, 'error').then(([error]) => Promise.reject(error));
  const chunked = headers.includes('chunked');
  const length = chunked ? `${bytes.toString(16)}\r\n` : '';
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: x\r\n${headers}${chunked ? '' : `Content-Length: ${bytes}\r\n`}\r\n${length}`,
  );
  socket.write(Buffer.alloc(bytes));
  socket.pause();
  const rest = `${chunked ? '\r\n0\r\n\r\n' : ''}GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
  await Promise.race([new Promise((resolve) => socket.write(rest, resolve)), failed]);
  const answer = Buffer.concat(await socket.toArray()).toString();
  return [...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
}

async function endpointOf(client: BedrockAgentCoreControlClient): Promise<string> {
  const endpoint = await client.config.endpoint?.();
  if (!endpoint) throw new Error('the client has an endpoint');
  return `${endpoint.protocol}//${endpoint.hostname}:${endpoint.port}`;
}
