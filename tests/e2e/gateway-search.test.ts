import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  CreateGatewayCommand,
  CreateGatewayTargetCommand,
  DeleteGatewayTargetCommand,
  GetGatewayCommand,
  UpdateGatewayTargetCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { embeddingModel } from '../support/embedding-model.ts';
import { connectMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const model = await embeddingModel();
const closing: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closing.reverse()) await close();
});

/** An API whose operations say what these summaries say. */
const document = (summaries: Record<string, string>): string =>
  JSON.stringify({
    openapi: '3.0.3',
    info: { title: 'Shop', version: '1' },
    servers: [{ url: 'https://shop.example.com' }],
    paths: Object.fromEntries(
      Object.entries(summaries).map(([operationId, summary]) => [
        `/${operationId}`,
        { post: { operationId, summary, responses: { 200: { description: 'ok' } } } },
      ]),
    ),
  });
const SHOP = {
  refundPayment: 'Returns the money of a purchase to the buyer',
  listWarehouses: 'Shows all places where goods are stored',
  sendNewsletter: 'Mails an announcement to subscribers',
  getExchangeRate: 'Converts between two currencies',
};

async function started(options: Parameters<typeof startTestPlatform>[0]) {
  const platform = await startTestPlatform(options);
  const clients = clientsOf(platform);
  closing.push(async () => {
    clients.close();
    await platform.end();
  });
  return { platform, clients };
}

async function searching({ control }: Clients, { ready }: TestPlatform) {
  const made = await control.send(
    new CreateGatewayCommand({
      ...{ name: 'shop', roleArn: ready.defaultRoleArn, authorizerType: 'AWS_IAM' },
      protocolConfiguration: { mcp: { searchType: 'SEMANTIC' } },
    }),
  );
  return { gatewayIdentifier: made.gatewayId ?? '', url: made.gatewayUrl ?? '' };
}

async function addShop(clients: Clients, gatewayIdentifier: string, summaries: Record<string, string>) {
  const targetConfiguration = { mcp: { openApiSchema: { inlinePayload: document(summaries) } } };
  const { targetId = '' } = await clients.control.send(
    new CreateGatewayTargetCommand({ gatewayIdentifier, name: 'shop', targetConfiguration }),
  );
  await settledTarget(clients, gatewayIdentifier, targetId);
  return targetId;
}

/** What `GetGateway` says of search; undefined when there is nothing to say. */
async function reasons({ control }: Clients, gatewayIdentifier: string): Promise<string | undefined> {
  return (await control.send(new GetGatewayCommand({ gatewayIdentifier }))).statusReasons?.join();
}

async function find(platform: TestPlatform, url: string, query: string): Promise<{ names: string[]; note?: string }> {
  const client = await connectMcp(url, { fetch: signingFetch(platform) });
  try {
    const { structuredContent } = await client.callTool({ name: 'x_agentplatform_search', arguments: { query } });
    const { tools, ...rest } = structuredContent as { tools: { name: string }[]; note?: string };
    return { names: tools.map(({ name }) => name.replace('shop___', '')), ...rest };
  } finally {
    await client.close();
  }
}

describe('search with a model', () => {
  it.skipIf(!model)('finds what shares no word with the task, and follows what targets become', async () => {
    const { platform, clients } = await started({
      args: ['--sandbox', 'process', '--embeddings-directory', model ?? ''],
    });
    closing.push(() => platform.dispose());
    const { gatewayIdentifier, url } = await searching(clients, platform);
    const targetId = await addShop(clients, gatewayIdentifier, SHOP);
    const ready = () => expect.poll(() => reasons(clients, gatewayIdentifier), { timeout: 60_000 }).toBeUndefined();
    await ready();
    const refund = await find(platform, url, 'give a customer their cash back');
    expect(refund).toMatchObject({
      names: ['refundPayment', expect.any(String), expect.any(String), expect.any(String)],
    });
    expect(refund.note).toBeUndefined();
    expect((await find(platform, url, 'how many euros are ten dollars')).names[0]).toBe('getExchangeRate');

    const { refundPayment: _, ...fewer } = SHOP;
    const more = { ...fewer, bookFlight: 'Reserves a seat in an airplane' };
    await clients.control.send(
      new UpdateGatewayTargetCommand({
        ...{ gatewayIdentifier, targetId, name: 'shop' },
        targetConfiguration: { mcp: { openApiSchema: { inlinePayload: document(more) } } },
      }),
    );
    await settledTarget(clients, gatewayIdentifier, targetId);
    await ready();
    await expect.poll(async () => (await find(platform, url, 'I want to fly to Rome')).names[0]).toBe('bookFlight');
    expect((await find(platform, url, 'give a customer their cash back')).names).not.toContain('refundPayment');
    await clients.control.send(new DeleteGatewayTargetCommand({ gatewayIdentifier, targetId }));
    await expect.poll(async () => (await find(platform, url, 'I want to fly to Rome')).names).toEqual([]);
  });

  it('is by words where none is set up, and says so', async () => {
    const { platform, clients } = await started({ args: ['--sandbox', 'process'] });
    closing.push(() => platform.dispose());
    const { gatewayIdentifier, url } = await searching(clients, platform);
    await addShop(clients, gatewayIdentifier, SHOP);
    expect(await reasons(clients, gatewayIdentifier)).toContain('no embedding model is set up');
    const found = await find(platform, url, 'stored goods');
    expect(found).toEqual({ names: ['listWarehouses'], note: expect.stringContaining('no embedding model is set up') });
    expect((await find(platform, url, 'depot')).names).toEqual([]);
  });

  it('goes on after a restart with what is left, and answers by words until then', async () => {
    const endpoint = await embeddingServer();
    closing.push(() => endpoint.close());
    const dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-test-'));
    closing.push(() => rm(dataDir, { recursive: true, force: true }));
    const args = ['--sandbox', 'process', '--embeddings-url', endpoint.url, '--embeddings-model', 'lengths'];
    const first = await started({ dataDir, args });
    const { gatewayIdentifier } = await searching(first.clients, first.platform);
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`op${n}`, `Does the thing of number ${n}`]));
    endpoint.allow(2);
    await addShop(first.clients, gatewayIdentifier, many);
    const told = /^.*: 128 of 200 tools/;
    await expect.poll(() => reasons(first.clients, gatewayIdentifier), { timeout: 60_000 }).toMatch(told);
    const { gatewayUrl: url = '' } = await first.clients.control.send(new GetGatewayCommand({ gatewayIdentifier }));
    // Its vector does not come now; what the words find does.
    const found = await find(first.platform, url, 'number 150');
    expect(found).toMatchObject({ note: expect.stringMatching(/does not answer|128 of 200/) });
    expect(found.names).toContain('op150');
    await first.platform.end('SIGKILL');

    endpoint.allow(Number.POSITIVE_INFINITY);
    const before = endpoint.texts().length;
    const second = await started({ dataDir, args });
    await expect.poll(() => reasons(second.clients, gatewayIdentifier), { timeout: 60_000 }).toBeUndefined();
    const since = endpoint.texts().slice(before);
    expect(since.filter((text) => text.includes('Does the thing'))).toHaveLength(72);
  });
});

/** An OpenAI-compatible service that answers so many requests for tools, and leaves the others without an answer until it is allowed more. */
async function embeddingServer() {
  const texts: string[] = [];
  let allowed = 0;
  const server = createServer(async (req, res) => {
    const parts: Buffer[] = [];
    for await (const part of req) parts.push(part as Buffer);
    const { input } = JSON.parse(Buffer.concat(parts).toString()) as { input: string[] };
    if (input.join() !== 'dimension' && allowed-- <= 0) return;
    texts.push(...input);
    const data = input.map((text) => ({ embedding: [1, text.length / 100] }));
    res.setHeader('content-type', 'application/json').end(JSON.stringify({ data }));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    texts: () => texts,
    allow: (count: number) => {
      allowed = count;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
