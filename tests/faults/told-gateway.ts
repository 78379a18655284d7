import { once } from 'node:events';
import { createServer } from 'node:net';
import {
  CreateGatewayCommand,
  CreateGatewayRateLimitCommand,
  CreateGatewayTargetCommand,
  DeleteGatewayRateLimitCommand,
  UpdateGatewayTargetCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { expect, it } from 'vitest';
import { startScriptedModel } from '../../packages/platform/src/kernel/models/testing/scripted-model.ts';
import { until } from '../../packages/platform/src/kernel/sandbox/testing/until.ts';
import { startSessionBackend } from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/backends.ts';
import { sessionServer } from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/stock.ts';
import { addMcpServer, connectMcp, postMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { modelGateway } from '../support/model-gateway.ts';
import type { ServerPair } from '../support/server-group.ts';
import { signedFetch } from '../support/signed-fetch.ts';
import { becomes } from './told.ts';

const TOOL = { name: 'add', description: 'Adds.', inputSchema: { type: 'object', properties: {} } };
let made = 0;

/** What gateways keep in memory is changed through server a, and used through server b. */
export function gatewayIsTold(pair: () => ServerPair): void {
  const signed = (): typeof fetch => signingFetch({ ready: pair().b.ready, credentials: pair().a.credentials });

  /** A gateway, and its MCP address at server b. */
  async function newGateway(): Promise<{ id: string; url: string }> {
    const { a, b, throughA } = pair();
    const { gatewayId: id = '', gatewayUrl = '' } = await throughA.control.send(
      new CreateGatewayCommand({
        ...{ name: `told-${++made}`, roleArn: a.ready.defaultRoleArn },
        ...{ protocolType: 'MCP', authorizerType: 'AWS_IAM' },
      }),
    );
    return { id, url: gatewayUrl.replace(new URL(gatewayUrl).origin, b.ready.endpoint) };
  }

  /** What a tool says that is called through server b, or how it is refused. */
  async function call(url: string, name: string): Promise<string> {
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } };
    const { status, json } = await postMcp(url, message, { fetch: signed(), 'mcp-protocol-version': '2025-06-18' });
    return `${status} ${JSON.stringify(json)}`;
  }

  const openApi = (url: string) => ({
    mcp: {
      openApiSchema: {
        inlinePayload: JSON.stringify({
          ...{ openapi: '3.0.3', info: { title: 'T', version: '1' }, servers: [{ url }] },
          paths: { '/ask': { get: { operationId: 'ask', responses: { 200: { description: 'ok' } } } } },
        }),
      },
    },
  });

  async function addApi(gatewayIdentifier: string, url: string): Promise<string> {
    const { throughA } = pair();
    const { targetId = '' } = await throughA.control.send(
      new CreateGatewayTargetCommand({ gatewayIdentifier, name: 'api', targetConfiguration: openApi(url) }),
    );
    expect(await settledTarget(throughA, gatewayIdentifier, targetId)).toMatchObject({ status: 'READY' });
    return targetId;
  }

  /** The address of a server that is gone. */
  async function nobody(): Promise<string> {
    const server = createServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const address = server.address();
    server.close();
    return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  }

  it('clients that listen for the tools of a gateway', async () => {
    const { throughA } = pair();
    const backend = await startSessionBackend(() => sessionServer({ tools: [TOOL] }));
    const { id, url } = await newGateway();
    const client = await connectMcp(url, { fetch: signed(), mode: 'auto' });
    try {
      const told = Promise.withResolvers<void>();
      client.setNotificationHandler('notifications/tools/list_changed', () => told.resolve());
      const stream = await client.listen({ toolsListChanged: true });
      await addMcpServer(throughA, id, 'server', { endpoint: backend.url });
      await told.promise;
      await stream.close();
    } finally {
      await client.close();
      await backend.close();
    }
  });

  it('sessions with the servers behind targets', async () => {
    const { throughA } = pair();
    const backend = await startSessionBackend(() => sessionServer({ tools: [TOOL], run: () => ({ content: [] }) }));
    try {
      const { id, url } = await newGateway();
      const { targetId = '' } = await addMcpServer(throughA, id, 'server', { endpoint: backend.url });
      const before = new Set(backend.sessions.keys());
      await becomes(async () => (await call(url, 'server___add')).includes('"content":[]'), true);
      const ofB = [...backend.sessions.keys()].filter((session) => !before.has(session));
      expect(ofB).not.toEqual([]);
      await throughA.control.send(
        new UpdateGatewayTargetCommand({
          ...{ gatewayIdentifier: id, targetId, name: 'server', description: 'another' },
          targetConfiguration: { mcp: { mcpServer: { endpoint: backend.url } } },
        }),
      );
      await until(() => ofB.every((session) => !backend.sessions.has(session)), 60_000);
    } finally {
      await backend.close();
    }
  });

  it('whether the server behind a target is left alone', async () => {
    const { throughA } = pair();
    const [gone, elsewhere] = [await nobody(), await nobody()];
    const { id, url } = await newGateway();
    const targetId = await addApi(id, gone);
    const tried = async (): Promise<boolean> => {
      const said = await call(url, 'api___ask');
      expect(said).toContain('"isError":true');
      return !said.includes('is left alone');
    };
    await becomes(tried, false);
    await throughA.control.send(
      new UpdateGatewayTargetCommand({
        ...{ gatewayIdentifier: id, targetId, name: 'api', targetConfiguration: openApi(elsewhere) },
      }),
    );
    // After its rest one call tries, and the next is refused again: only whoever has forgotten the failures tries twice.
    await becomes(async () => (await tried()) && (await tried()), true);
  });

  it('guard rails and rate limits of gateways', async () => {
    const { a, b, throughA } = pair();
    const model = await startScriptedModel('openai');
    try {
      const { id } = await modelGateway(a, throughA, { one: { url: model.url, models: ['small'] } });
      const ask = (): Promise<Response> =>
        fetch(`${b.ready.endpoint}/gateways/${id}/inference/v1/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'small', messages: [{ role: 'user', content: 'Hi' }] }),
        });
      const answered = async (): Promise<string> => {
        const answer = await ask();
        await answer.text();
        return `${answer.status} ${answer.headers.get('x-agentplatform-cache')}`;
      };
      await becomes(answered, '200 null');
      expect(await answered()).toBe('200 null');
      const path = `/_platform/gateways/${id}/guard-rails`;
      expect((await signedFetch(a, { method: 'PUT', path, content: { cacheSeconds: 600 } })).status).toBe(200);
      await becomes(answered, '200 hit');
      const limit = { gatewayIdentifier: id, rateLimitId: 'none' };
      await throughA.control.send(
        new CreateGatewayRateLimitCommand({
          ...{ ...limit, dimensionKeys: ['targetName'] },
          entries: [{ dimensions: { targetName: '*' }, requests: [{ rate: 0, period: 'minute' }] }],
        }),
      );
      await becomes(async () => (await ask()).status, 429);
      await throughA.control.send(new DeleteGatewayRateLimitCommand(limit));
      await becomes(async () => (await ask()).status, 200);
    } finally {
      await model.close();
    }
  });
}
