import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newUser } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

// Two users of one account, each of whom may use one repository: neither gets at what is in the other's by its digest.

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const SECRET = Buffer.from('what only red may read');
const CONFIG = Buffer.from(
  JSON.stringify({ architecture: 'amd64', os: 'linux', rootfs: { type: 'layers', diff_ids: [] } }),
);

type Call = (method: string, path: string, init?: { body?: Buffer; type?: string }) => Promise<Response>;

let platform: TestPlatform;
let red: Call;
let blue: Call;

function caller({ accessKeyId, secretAccessKey }: TestPlatform['credentials']): Call {
  const authorization = `Basic ${Buffer.from(`${accessKeyId}:${secretAccessKey}`).toString('base64')}`;
  return (method, path, { body, type = 'application/octet-stream' } = {}) =>
    fetch(new URL(path, platform.ready.endpoint), {
      method,
      headers: { authorization, ...(body ? { 'content-type': type } : {}) },
      body: body === undefined ? null : new Uint8Array(body),
    });
}

beforeAll(async () => {
  platform = await startTestPlatform();
  const only = (name: string) => [
    {
      Effect: 'Allow',
      Action: ['agentplatform:PullImage', 'agentplatform:PushImage'],
      Resource: `arn:aws:agentplatform::${platform.ready.accountId}:image/${name}`,
    },
  ];
  red = caller(await newUser(platform, 'red-user', only('red')));
  blue = caller(await newUser(platform, 'blue-user', only('blue')));
});
afterAll(() => platform.dispose());

const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

function push(as: Call, name: string, bytes: Buffer): Promise<Response> {
  return as('POST', `/v2/${name}/blobs/uploads/?digest=${digestOf(bytes)}`, { body: bytes });
}

function manifest(...layers: Buffer[]): Buffer {
  const part = (mediaType: string, bytes: Buffer) => ({ mediaType, digest: digestOf(bytes), size: bytes.length });
  return Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: part('application/vnd.oci.image.config.v1+json', CONFIG),
      layers: layers.map((layer) => part('application/vnd.oci.image.layer.v1.tar', layer)),
    }),
  );
}

describe('a blob of one repository', () => {
  it('is there for who may read that repository alone', async () => {
    for (const blob of [SECRET, CONFIG]) expect((await push(red, 'red', blob)).status).toBe(201);
    expect((await push(blue, 'blue', CONFIG)).status).toBe(201);
    const digest = digestOf(SECRET);

    // The channel: whoever may read the repository gets it by its digest, and may mount it and name it.
    expect(await (await red('GET', `/v2/red/blobs/${digest}`)).text()).toBe(SECRET.toString());
    expect((await red('POST', `/v2/red/blobs/uploads/?mount=${digest}&from=red`)).status).toBe(201);
    const put = { body: manifest(SECRET), type: MANIFEST };
    expect((await red('PUT', '/v2/red/manifests/v1', put)).status).toBe(201);

    // In the other's own repository, which he may read and write, it is not there.
    for (const method of ['GET', 'HEAD']) expect((await blue(method, `/v2/blue/blobs/${digest}`)).status).toBe(404);
    // Nor is it mounted: he is asked to send it.
    for (const from of ['&from=red', '', '&from=blue', '&from=base/x', '&from=../red', '&from=red%2F..%2Fred'])
      expect([from, (await blue('POST', `/v2/blue/blobs/uploads/?mount=${digest}${from}`)).status]).toEqual([
        from,
        202,
      ]);
    const named = await blue('PUT', '/v2/blue/manifests/v1', put);
    expect([named.status, await named.text()]).toEqual([404, expect.stringContaining('MANIFEST_BLOB_UNKNOWN')]);
    expect((await blue('GET', `/v2/red/blobs/${digest}`)).status).toBe(403);
    expect((await blue('GET', `/v2/blue/manifests/${digestOf(put.body)}`)).status).toBe(404);

    // Who has it may send it, and then it is his as well.
    expect((await push(blue, 'blue', SECRET)).status).toBe(201);
    expect((await blue('PUT', '/v2/blue/manifests/v1', put)).status).toBe(201);
  });

  it('is mounted by who may read where it comes from', async () => {
    const both = [
      { Effect: 'Allow', Action: 'agentplatform:*', Resource: '*' },
      { Effect: 'Deny', Action: 'agentplatform:PullImage', Resource: 'arn:aws:agentplatform::*:image/hidden' },
    ];
    const all = caller(await newUser(platform, 'all-but-hidden', both));
    const blob = Buffer.from('pushed where it may not be read');
    expect((await push(all, 'hidden', blob)).status).toBe(201);
    expect((await push(all, 'open', blob)).status).toBe(201);
    const mount = (from: string) => all('POST', `/v2/third/blobs/uploads/?mount=${digestOf(blob)}&from=${from}`);
    expect((await mount('hidden')).status).toBe(202);
    expect((await mount('open')).status).toBe(201);
  });
});

describe('an upload', () => {
  it('is its own principal’s, also for one who may push to the same repository', async () => {
    const also = caller(
      await newUser(platform, 'also-red', [
        { Effect: 'Allow', Action: 'agentplatform:*', Resource: 'arn:aws:agentplatform::*:image/red' },
      ]),
    );
    const begun = await red('POST', '/v2/red/blobs/uploads/');
    const location = begun.headers.get('location') ?? '';
    for (const method of ['GET', 'PATCH', 'PUT', 'DELETE'])
      expect([method, (await also(method, `${location}?digest=${digestOf(SECRET)}`)).status]).toEqual([method, 404]);
    expect((await red('GET', location)).status).toBe(204);
    expect((await red('PATCH', location, { body: SECRET })).status).toBe(202);
    expect((await red('PUT', `${location}?digest=${digestOf(SECRET)}`)).status).toBe(201);
  });
});

describe('an account', () => {
  it('keeps no more manifests, tags and layers than its quota', async () => {
    const small = await startTestPlatform({ args: ['--quotas-image-parts-per-account', '100'] });
    try {
      const { accessKeyId, secretAccessKey } = small.credentials;
      const authorization = `Basic ${Buffer.from(`${accessKeyId}:${secretAccessKey}`).toString('base64')}`;
      const call = (method: string, path: string, body: Buffer | null, type: string) =>
        fetch(new URL(path, small.ready.endpoint), {
          method,
          headers: { authorization, 'content-type': type },
          body: body && new Uint8Array(body),
        });
      const config = await call('POST', `/v2/many/blobs/uploads/?digest=${digestOf(CONFIG)}`, CONFIG, 'x/y');
      expect(config.status).toBe(201);
      const statuses: number[] = [];
      let last = '';
      for (let index = 0; index < 120; index++) {
        const body = Buffer.from(manifest().toString().replace('{', `{"annotations":{"n":"${index}"},`));
        const answer = await call('PUT', `/v2/many/manifests/${digestOf(body)}`, body, MANIFEST);
        statuses.push(answer.status);
        last = await answer.text();
      }
      expect(statuses.filter((status) => status === 201).length).toBe(99);
      expect(statuses.at(-1)).toBe(403);
      expect(last).toContain('quotas.imagePartsPerAccount');
    } finally {
      await small.dispose();
    }
  });
});
