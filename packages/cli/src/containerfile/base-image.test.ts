import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Connection } from '../platform/connection.ts';
import { fetchBase, machineBase } from './base-image.ts';

const digest = `sha256:${'b'.repeat(64)}`;
const image = {
  digest,
  layers: [{ mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip', digest, size: 7 }],
  config: {
    architecture: 'amd64',
    os: 'linux',
    config: { Env: ['A=1'], Cmd: null, User: '', Labels: { by: 'x' } },
    rootfs: { diff_ids: [digest] },
  },
};

let server: Server;
let connection: Connection;
let asked: string[];
let answers: Record<string, unknown>;

beforeAll(async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIAEXAMPLE');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret');
  server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const wanted: string = JSON.parse(text).image;
    asked.push(`${request.url} ${wanted}`);
    response.end(JSON.stringify(answers[wanted] ?? { unreachable: 'no such host' }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  connection = {
    endpoint: `http://127.0.0.1:${port}`,
    region: 'us-east-1',
    credentialsFile: undefined,
    profile: undefined,
    accountId: undefined,
    defaultRoleArn: undefined,
    source: 'test',
  };
});
afterAll(() => {
  server.close();
  vi.unstubAllEnvs();
});
beforeEach(() => {
  asked = [];
  answers = {};
});

const fetchIt = (name: string, platform?: string) =>
  fetchBase({ line: 4, image: name, platform, globals: new Map() }, 'agent', connection, AbortSignal.timeout(10_000));

describe('the base of an image', () => {
  it('is what FROM names, if it can be had', async () => {
    answers = { 'node:24': image };
    const { base, standIn } = await fetchIt('node:24', 'linux/amd64');
    expect(standIn).toBeUndefined();
    expect(base).toMatchObject({
      layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', digest, size: 7 }],
      diffIds: [digest],
      settings: { Env: ['A=1'], Labels: { by: 'x' } },
    });
    expect(asked).toEqual(['/_platform/repositories/agent/base node:24']);
    await expect(fetchIt('node:24', 'linux/arm64')).rejects.toThrow(/^Line 4 .*linux\/amd64/);
  });

  it('of a language is the machine’s own where no registry can be reached, and that is said; another is refused', async () => {
    answers = { 'platform/base/python:3.12': image };
    const { base, standIn } = await fetchIt('docker.io/library/python:3.12-slim');
    expect(base.name).toBe('platform/base/python:3.12');
    expect(standIn).toMatch(/python:3\.12-slim .*platform\/base\/python:3\.12 instead/);
    await expect(fetchIt('debian:12')).rejects.toThrow(/^Line 4 .*debian:12 cannot be fetched\. no such host/);
  });

  it('is refused when a builder has to act on it, or when it is none', async () => {
    const trigger = { ...image, config: { ...image.config, config: { OnBuild: ['RUN x'] } } };
    answers = { 'a:1': trigger, 'b:1': { ...image, config: { ...image.config, rootfs: {} } }, 'c:1': 'nonsense' };
    await expect(fetchIt('a:1')).rejects.toThrow(/ONBUILD/);
    await expect(fetchIt('b:1')).rejects.toThrow(/numbers of layers/);
    await expect(fetchIt('c:1')).rejects.toThrow(TypeError);
  });

  it.each([
    ['node:24', 'platform/base/node:24'],
    ['docker.io/library/node:22.11.0-alpine3.20', 'platform/base/node:22'],
    ['public.ecr.aws/docker/library/python:3.13.1-slim-bookworm', 'platform/base/python:3.13'],
    ['library/node:20', 'platform/base/node:20'],
    ['node', undefined],
    ['node:latest', undefined],
    ['python:3', undefined],
    ['ghcr.io/someone/node:24', undefined],
    ['someone/node:24', undefined],
    [`node:24@${digest}`, undefined],
  ])('%s can be stood in for by %s', (name, own) => {
    expect(machineBase(name)).toBe(own);
  });
});
