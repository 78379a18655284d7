import { readFileSync } from 'node:fs';
import { CreateGatewayCommand, CreateGatewayTargetCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { CreateBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Samples } from '../../packages/platform/src/services/gateway/openapi/testing/sample-arguments.ts';
import { isObject } from '../../packages/platform/src/services/gateway/tools/json-pointer.ts';
import type { JsonSchema } from '../../packages/platform/src/services/gateway/tools/tool.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { type Judged, startOpenApiServer } from '../support/openapi-server.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { type DocumentPath, publicDocument } from '../support/public-documents.ts';

const SOURCES: [name: string, path: DocumentPath][] = [
  ['github', 'generated/api.github.com.json'],
  ['stripe', 'api/stripe.com.json'],
  ['jira', 'api/atlassian.com/jira.json'],
];
/** Of what is called, what the server does not hold against its document. */
const UNJUDGED: Record<string, string[]> = { github: [], stripe: [], jira: [] };
/** Of each document. */
const CALLED = 40;
const BUCKET = 'documents';

const documents: [name: string, file: string][] = [];
for (const [name, path] of SOURCES) {
  const published = await publicDocument(path);
  if (published) documents.push([name, published.file]);
}

let platform: TestPlatform;
let clients: Clients;
beforeAll(async () => {
  // The client tells of each format in a schema that it does not know.
  vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  await clients.s3.send(new CreateBucketCommand({ Bucket: BUCKET }));
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

/** The document behind a gateway; resolves with the gateway's address. */
async function register(name: string, text: string): Promise<string> {
  await clients.s3.send(new PutObjectCommand({ Bucket: BUCKET, Key: name, Body: text }));
  const { gatewayId: gatewayIdentifier = '', gatewayUrl = '' } = await clients.control.send(
    new CreateGatewayCommand({ name, roleArn: platform.ready.defaultRoleArn, authorizerType: 'AWS_IAM' }),
  );
  const targetConfiguration = { mcp: { openApiSchema: { s3: { uri: `s3://${BUCKET}/${name}` } } } };
  const { targetId = '' } = await clients.control.send(
    new CreateGatewayTargetCommand({ gatewayIdentifier, name, targetConfiguration }),
  );
  const { status, statusReasons } = await settledTarget(clients, gatewayIdentifier, targetId);
  expect(status, statusReasons?.join('\n')).toBe('READY');
  return gatewayUrl;
}

/** The same of them in each run. */
function chosenOf<One>(all: readonly One[], count: number): One[] {
  return all
    .map((one, index) => ({ one, at: Math.imul(index + 7, 2654435761) >>> 0 }))
    .sort((a, b) => a.at - b.at)
    .slice(0, count)
    .map(({ one }) => one);
}

describe.each(documents)('operations of %s at random, by the official client through a gateway', (name, file) => {
  it(`send what the document allows: ${CALLED} of them`, async () => {
    const document = JSON.parse(readFileSync(file, 'utf8'));
    await using server = await startOpenApiServer(document);
    const url = await register(name, JSON.stringify({ ...document, servers: [{ url: server.url }] }));
    const client = await connectMcp(url, { fetch: signingFetch(platform) });
    const { tools } = await client.listTools();
    const wrong: (Judged & { arguments: unknown })[] = [];
    for (const [index, tool] of chosenOf(tools, CALLED).entries()) {
      const args = new Samples(tool.inputSchema as JsonSchema, index).of(tool.inputSchema as never);
      if (!isObject(args)) throw new Error(`No arguments for ${tool.name}`);
      const result = await client.callTool({ name: tool.name, arguments: args });
      const judged = server.judged[index];
      if (result.isError || !judged)
        throw new Error(`${tool.name} ${JSON.stringify(args)}: ${JSON.stringify(result).slice(0, 1_000)}`);
      if (judged.problems.length > 0) wrong.push({ ...judged, arguments: args });
    }
    await client.close();
    expect(wrong).toEqual([]);
    expect(server.judged.flatMap(({ unjudged }) => unjudged)).toEqual(UNJUDGED[name]);
    expect(new Set(server.judged.map(({ operationId }) => operationId)).size).toBe(CALLED);
  }, 300_000);
});

it('no document is left out: each of them could be had', () => {
  const there = documents.map(([name]) => name);
  expect(SOURCES.map(([name]) => name).filter((name) => !there.includes(name))).toEqual([]);
});

it('the server refuses what its document does not allow', async () => {
  const parameters = [
    { name: 'id', in: 'path', required: true, schema: { type: 'integer' } },
    { name: 'size', in: 'query', required: true, schema: { enum: ['small', 'large'] } },
  ];
  const schema = { type: 'object', required: ['item'], properties: { item: { type: 'string' } } };
  const requestBody = { required: true, content: { 'application/json': { schema } } };
  const operation = { operationId: 'order', parameters, requestBody, responses: { 200: { description: 'ok' } } };
  await using server = await startOpenApiServer({ openapi: '3.0.3', paths: { '/orders/{id}': { post: operation } } });
  const headers = { 'content-type': 'application/json' };
  await fetch(`${server.url}/orders/7?size=small`, {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: '?',
  });
  expect(server.judged).toMatchObject([{ unjudged: ['a body of text/plain'] }]);
  const send = async (target: string, body: string): Promise<string[]> => {
    await fetch(`${server.url}${target}`, { method: 'POST', headers, body });
    return server.judged.at(-1)?.problems ?? [];
  };
  expect(await send('/orders/7?size=small', '{"item":"tea"}')).toEqual([]);
  expect(await send('/orders/seven?size=small', '{"item":"tea"}')).toEqual([expect.stringContaining('path id')]);
  expect(await send('/orders/7?size=huge', '{"item":"tea"}')).toEqual([expect.stringContaining('query size')]);
  expect(await send('/orders/7', '{"item":"tea"}')).toEqual(['query size is missing']);
  expect(await send('/orders/7?size=small&more=1', '{"item":"tea"}')).toEqual([expect.stringContaining('has more')]);
  expect(await send('/orders/7?size=small', '{"item":7}')).toEqual([expect.stringContaining('/item')]);
  expect(await send('/orders/7?size=small', '')).toEqual(['the body is missing']);
  expect(await send('/carts', '{}')).toEqual([expect.stringContaining('no operation')]);
});
