import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { CreateGatewayCommand, CreateGatewayTargetCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleCode } from '../../packages/cli/src/package/bundle-code.ts';
import { defaultPythonRuntime } from '../../packages/cli/src/package/python.ts';
import { pythonPackages } from '../../scripts/test/python-packages.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { settledTarget } from '../support/gateway.ts';
import { guideBlocks } from '../support/guide.ts';
import { newRole } from '../support/iam.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const packages = await pythonPackages(ROOT, join(ROOT, 'tests/python-mcp.txt'));
const TOOL = 'petstore___getPet';

/** What makes an agent of what the guide shows: it calls the tool with what it is asked. */
const AGENTS = {
  ts: `
import { createServer } from 'node:http';
createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const answer = request.method === 'GET' ? { status: 'Healthy' }
    : await callTool('${TOOL}', JSON.parse(Buffer.concat(parts))).catch((error) => ({ error: String(error) }));
  response.end(JSON.stringify(answer));
}).listen(8080);
`,
  python: `
import asyncio, json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self): self.say({"status": "Healthy"})
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try: self.say(asyncio.run(call_tool("${TOOL}", asked)).model_dump(by_alias=True, mode="json"))
        except BaseException as error: self.say({"error": repr(getattr(error, "exceptions", error))})
    def say(self, what):
        body = json.dumps(what).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
ThreadingHTTPServer(("0.0.0.0", 8080), Handler).serve_forever()
`,
};

let dir: string;
let platform: TestPlatform;
let clients: Clients;
let api: Server;
let gatewayId: string;

beforeAll(async () => {
  // In the checkout, where the code of the guide finds its packages.
  dir = await mkdtemp(join(ROOT, 'examples/.gateway-'));
  api = createServer(({ url }, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ asked: url }));
  });
  await new Promise<void>((done) => api.listen(0, '127.0.0.1', done));
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  const { gatewayId: id = '' } = await clients.control.send(
    new CreateGatewayCommand({
      name: 'shop',
      roleArn: platform.ready.defaultRoleArn,
      protocolType: 'MCP',
      authorizerType: 'AWS_IAM',
    }),
  );
  gatewayId = id;
  const parameters = [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }];
  const inlinePayload = JSON.stringify({
    ...{ openapi: '3.1.0', info: { title: 'API', version: '1' } },
    servers: [{ url: `http://127.0.0.1:${(api.address() as AddressInfo).port}` }],
    paths: {
      '/pets/{id}': { get: { operationId: 'getPet', parameters, responses: { '200': { description: 'ok' } } } },
    },
  });
  const { targetId = '' } = await clients.control.send(
    new CreateGatewayTargetCommand({
      gatewayIdentifier: gatewayId,
      name: 'petstore',
      targetConfiguration: { mcp: { openApiSchema: { inlinePayload } } },
    }),
  );
  expect((await settledTarget(clients, gatewayId, targetId)).status).toBe('READY');
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  api?.close();
  await rm(dir, { recursive: true, force: true });
});

const code = (language: keyof typeof AGENTS): string =>
  `${guideBlocks('gateway.md', 'From a deployed agent', language)}${AGENTS[language]}`;
const GOT = { content: [{ type: 'text', text: expect.stringContaining('/pets/7') }] };

describe('a deployed agent', () => {
  it('signs to a gateway as the guide shows, in TypeScript, and only as far as its role may', async () => {
    const source = join(dir, 'node');
    await mkdir(join(source, 'stage'), { recursive: true });
    await writeFile(join(source, 'index.mjs'), code('ts'));
    const file = { name: 'tools', language: 'javascript' as const, entrypoint: 'index.mjs' };
    await bundleCode({ folder: source, file }, join(source, 'stage'));
    const options = { folder: join(source, 'stage'), environmentVariables: { GATEWAY_ID: gatewayId } };
    const { arn } = await deployAgent(platform, clients, options);
    expect(await invokeJson(clients, arn, sessionId('ts'), { id: '7' })).toMatchObject(GOT);
    const roleArn = await newRole(platform, 'of-little', [
      { Effect: 'Allow', Action: 'bedrock-agentcore:ListEvents', Resource: '*' },
    ]);
    const without = await deployAgent(platform, clients, { ...options, roleArn });
    expect(await invokeJson(clients, without.arn, sessionId('no'), { id: '7' })).toMatchObject({
      error: expect.stringContaining('bedrock-agentcore:InvokeGateway'),
    });
  });

  it.skipIf(!packages)('signs to a gateway as the guide shows, in Python', async () => {
    const folder = join(dir, 'python');
    const unused = /__pycache__$|\/botocore\/data\/[^/.]+$/;
    await cp(packages ?? '', folder, { recursive: true, filter: (path) => !unused.test(path) });
    await writeFile(join(folder, 'main.py'), code('python'));
    const runtime = (await defaultPythonRuntime(folder)) as 'PYTHON_3_11';
    const environmentVariables = { GATEWAY_ID: gatewayId };
    const { arn } = await deployAgent(platform, clients, {
      ...{ folder, runtime, entryPoint: ['main.py'], environmentVariables },
    });
    expect(await invokeJson(clients, arn, sessionId('python'), { id: '7' })).toMatchObject(GOT);
  });
});
