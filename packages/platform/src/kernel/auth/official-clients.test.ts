import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { encodeError } from '@agentplatform/contract';
import { BedrockAgentCoreClient, InvokeAgentRuntimeCommand } from '@aws-sdk/client-bedrock-agentcore';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { AssumeRoleCommand, STSClient } from '@aws-sdk/nested-clients/sts';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testPython } from '../../../../../tests/support/python.ts';
import { stsRoutes } from '../../services/iam/sts-routes.ts';
import { systemClock } from '../clock.ts';
import { served } from '../http/testing/serve-routes.ts';
import { ToldChanges } from '../storage/testing/told-changes.ts';
import { gateBody } from './body-gate.ts';
import { type Iam, openIam } from './iam/iam.ts';
import { createMemoryIamStore } from './iam/iam-store.ts';
import { fakeSealer } from './iam/testing/fake-sealer.ts';
import { createAuthenticator } from './sigv4.ts';
import { createSpool } from './spool.ts';

const REGION = 'eu-test-1';

interface Seen {
  arn: string;
  kind: string;
  sha256: string;
  length: number;
  path: string;
}

let dir: string;
let iam: Iam;
let app: FastifyInstance;
let endpoint: string;
let root: { accessKeyId: string; secretAccessKey: string };
const seen: Seen[] = [];

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'official-clients-'));
  iam = await openIam({
    store: createMemoryIamStore(),
    sealer: fakeSealer(),
    clock: systemClock,
    random: randomBytes,
    region: REGION,
    changes: new ToldChanges(),
  });
  root = (await iam.rootCredentials()) ?? { accessKeyId: '', secretAccessKey: '' };
  const authenticator = createAuthenticator({ keys: iam.keys, clock: systemClock, region: REGION });
  const spool = await createSpool({ dir });
  app = Fastify({ forceCloseConnections: true });
  app.setErrorHandler((error, _request, reply) => {
    const { status, headers, body } = encodeError(error);
    return reply.code(status).headers(headers).send(body);
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  app.route({
    method: ['GET', 'PUT', 'POST'],
    url: '/*',
    async handler(request, reply) {
      const answer = await receive(request.raw);
      seen.push(answer);
      // botocore takes any 200 of S3 with a body that is no XML for a failure.
      if (request.url.startsWith('/bucket')) return reply.send();
      return reply.type('application/json').send(JSON.stringify(answer));
    },
  });
  async function receive(req: IncomingMessage): Promise<Seen> {
    const service = req.url?.startsWith('/bucket') ? 's3' : 'bedrock-agentcore';
    const { principal, body } = await authenticator.authenticate({
      method: req.method ?? '',
      rawUrl: req.url ?? '/',
      rawHeaders: req.rawHeaders,
      service,
    });
    const length = req.headers['content-length'];
    const contentLength = req.headers['transfer-encoding'] ? undefined : Number(length ?? 0);
    const gated = await gateBody(req, body, { contentLength, maxBytes: 100_000_000, spool, hold: () => undefined });
    const hash = createHash('sha256');
    let size = 0;
    for await (const part of gated.kind === 'buffer' ? [gated.data] : gated.stream) {
      hash.update(part as Buffer);
      size += (part as Buffer).length;
    }
    return { arn: principal.arn, kind: body.kind, sha256: hash.digest('hex'), length: size, path: req.url ?? '' };
  }
  await app.register(served([stsRoutes(iam)], { authenticator, spool }));
  await app.listen({ host: '127.0.0.1', port: 0 });
  endpoint = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await app.close();
  await rm(dir, { recursive: true });
});

const common = () => ({ endpoint, region: REGION, credentials: root, maxAttempts: 1 });
const sha = (data: Buffer): string => createHash('sha256').update(data).digest('hex');

describe('the AWS SDK for JavaScript', () => {
  const invoke = async (payload: Buffer | Readable, credentials = root): Promise<Seen> => {
    const client = new BedrockAgentCoreClient({ ...common(), credentials });
    try {
      const answer = await client.send(
        new InvokeAgentRuntimeCommand({
          agentRuntimeArn: `arn:aws:bedrock-agentcore:${REGION}:111122223333:runtime/a b-é`,
          qualifier: 'DEFAULT',
          runtimeSessionId: 's'.repeat(40),
          runtimeUserId: "o'brien (x)",
          payload: payload as Uint8Array,
        }),
      );
      return JSON.parse((await answer.response?.transformToString()) ?? '');
    } finally {
      client.destroy();
    }
  };

  it('sends bodies small and large', async () => {
    for (const size of [0, 1_000, 5_000_000]) {
      const data = randomBytes(size);
      expect(await invoke(data)).toMatchObject({
        sha256: sha(data),
        length: size,
        arn: `arn:aws:iam::${iam.accountId}:root`,
      });
    }
  });

  it('sends a stream, whose hash it cannot know', async () => {
    const data = randomBytes(300_000);
    expect(await invoke(Readable.from([data.subarray(0, 100_000), data.subarray(100_000)]))).toMatchObject({
      kind: 'unsigned',
      sha256: sha(data),
    });
  });

  it('with a wrong secret is refused with the class it knows', async () => {
    await expect(invoke(Buffer.from('{}'), { ...root, secretAccessKey: 'x' })).rejects.toMatchObject({
      name: 'InvalidSignatureException',
      $metadata: { httpStatusCode: 403 },
    });
    await expect(invoke(Buffer.from('{}'), { ...root, accessKeyId: 'AKIAX' })).rejects.toMatchObject({
      name: 'UnrecognizedClientException',
    });
  });

  it('assumes a role and invokes as it', async () => {
    const sts = new STSClient(common());
    const { Credentials: got } = await sts.send(
      new AssumeRoleCommand({ RoleArn: iam.defaultRoleArn, RoleSessionName: 'js' }),
    );
    const { AccessKeyId = '', SecretAccessKey = '', SessionToken = '' } = got ?? {};
    const credentials = { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: SessionToken };
    expect((await invoke(Buffer.from('{}'), credentials)).arn).toMatch(/assumed-role\/default\/js$/);
    await expect(
      invoke(Buffer.from('{}'), { ...credentials, sessionToken: `${SessionToken}x` } as typeof root),
    ).rejects.toMatchObject({
      name: 'UnrecognizedClientException',
    });
    expect(got?.Expiration?.getTime()).toBeGreaterThan(Date.now() + 3_500_000);
    const other = sts.send(new AssumeRoleCommand({ RoleArn: `${iam.defaultRoleArn}x`, RoleSessionName: 'js' }));
    await expect(other).rejects.toMatchObject({
      name: 'AccessDenied',
      message: expect.stringContaining('sts:AssumeRole'),
    });
    sts.destroy();
  });

  it('puts S3 objects, whole and as a stream', async () => {
    const s3 = new S3Client({ ...common(), forcePathStyle: true });
    const put = async (Body: Buffer | Readable, ContentLength: number): Promise<Seen | undefined> => {
      await s3.send(new PutObjectCommand({ Bucket: 'bucket', Key: "a b/ü+('1')*.txt", Body, ContentLength }));
      return seen.at(-1);
    };
    const data = randomBytes(200_000);
    expect(await put(data, data.length)).toMatchObject({ kind: 'declared', sha256: sha(data) });
    const parts = [data.subarray(0, 70_000), data.subarray(70_000)];
    expect(await put(Readable.from(parts), data.length)).toMatchObject({
      sha256: sha(data),
      kind: expect.stringMatching(/chunked|unsigned/),
    });
    s3.destroy();
  });
});

const python = await testPython();
if (!python) console.warn('SKIPPED: no Python packages here, so botocore was not tried against the authenticator');

it.skipIf(!python)(
  'boto3 and the botocore signers',
  async () => {
    const input = {
      endpoint,
      region: REGION,
      key: root.accessKeyId,
      secret: root.secretAccessKey,
      role: iam.defaultRoleArn,
    };
    const rootArn = `arn:aws:iam::${iam.accountId}:root`;
    const roleSession = `arn:aws:sts::${iam.accountId}:assumed-role/default/boto`;
    expect(await python?.run(join(import.meta.dirname, 'testing/boto_calls.py'), input)).toMatchObject({
      // botocore signs the hash of the body without sending it.
      small: { kind: 'undeclared', arn: rootArn, sha256: sha(Buffer.from('{"prompt":"hi"}')) },
      large: { kind: 'undeclared', sha256: sha(Buffer.alloc(3_000_000, 'x')) },
      wrong: 'InvalidSignatureException',
      not_ascii: {
        Code: 'ValidationException',
        Message: expect.stringMatching(/^The header x-amzn-bedrock-agentcore-runtime-session-id .* ASCII/),
      },
      identity: { Account: iam.accountId, Arn: rootArn, UserId: iam.accountId },
      session: roleSession,
      as_role: { arn: roleSession },
      denied: 'AccessDenied',
      refused: 'ValidationError',
      unknown: 'InvalidAction',
      stranger: 'InvalidClientTokenId',
      presigned: { arn: roleSession },
      presigned_altered: 403,
      s3_presigned: 200,
    });
  },
  300_000,
);
