import { CreateGatewayCommand, CreateGatewayTargetCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type Backend,
  startBackend,
} from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/backends.ts';
import { clientsOf } from '../support/clients.ts';
import { postMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { startTestPlatform } from '../support/platform-process.ts';

const METADATA = 'http://169.254.169.254/latest/meta-data/';

/** Serves part of a document to everybody. */
let server: Backend;

beforeAll(async () => {
  server = await startBackend((_req, res) => res.end('{"get":{"operationId":"inner"}}'));
});
afterAll(() => server?.close());

/** What became of a document that refers to those addresses, on a platform with that way out. */
async function registered(args: string[], references: string[]) {
  const platform = await startTestPlatform({ args: ['--sandbox', 'process', ...args] });
  const clients = clientsOf(platform);
  try {
    const paths = Object.fromEntries(references.map(($ref, at) => [`/referred/${at}`, { $ref }]));
    const document = {
      ...{ openapi: '3.0.3', info: { title: 'Pets', version: '1' }, servers: [{ url: 'https://pets.example.com' }] },
      paths: { '/pets': { get: { operationId: 'listPets', responses: { 200: { description: 'ok' } } } }, ...paths },
    };
    const { gatewayId: gatewayIdentifier = '', gatewayUrl = '' } = await clients.control.send(
      new CreateGatewayCommand({ name: 'g', roleArn: platform.ready.defaultRoleArn, authorizerType: 'AWS_IAM' }),
    );
    const inlinePayload = JSON.stringify(document, null, 1);
    const lines = references.map((_, at) => inlinePayload.split(`"/referred/${at}"`)[0]?.split('\n').length);
    const targetConfiguration = { mcp: { openApiSchema: { inlinePayload } } };
    const { targetId = '' } = await clients.control.send(
      new CreateGatewayTargetCommand({ gatewayIdentifier, name: 'pets', targetConfiguration }),
    );
    const { status, statusReasons = [] } = await settledTarget(clients, gatewayIdentifier, targetId);
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const { json } = await postMcp(gatewayUrl, list, { fetch: signingFetch(platform) });
    const { tools } = (json as { result: { tools: { name: string }[] } }).result;
    return { status, statusReasons, lines, tools: tools.map(({ name }) => name) };
  } finally {
    clients.close();
    await platform.dispose();
  }
}

it('a reference of a document to a private address is asked for nothing: its operation is left out, with its line', async () => {
  const here = new URL('/item.json', server.url);
  const names = [here.href, `http://localhost:${here.port}/item.json`, `http://[::ffff:127.0.0.1]:${here.port}/x`];
  const references = [...names, METADATA];
  const closed = await registered([], references);
  expect(closed).toMatchObject({ status: 'READY', tools: ['pets___listPets'] });
  expect(closed.statusReasons).toEqual(
    references.map((reference, at) =>
      expect.stringContaining(
        `#/paths/~1referred~1${at}, line ${closed.lines[at]}: The file of the reference ${reference} is not to be had`,
      ),
    ),
  );
  for (const reason of closed.statusReasons) expect(reason).toContain('--allow-private-egress');
  expect(server.requests).toEqual([]);
  // The same is asked for where the operator opens that network.
  const open = await registered(['--allow-private-egress', '127.0.0.0/8'], [here.href]);
  expect(open.tools).toEqual(['pets___inner', 'pets___listPets']);
  expect(server.requests).toHaveLength(1);
});
