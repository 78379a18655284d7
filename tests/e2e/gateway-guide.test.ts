import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { agentcoreInside } from '../../packages/cli/test/agentcore.ts';
import { type OidcServer, startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import { startModernBackend } from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/backends.ts';
import { modernServer } from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/stock.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let api: Server;
let issuer: OidcServer;
let docs: Awaited<ReturnType<typeof startModernBackend>>;
let dir: string;
const keys: unknown[] = [];

const document = (url: string, path: string, operationId: string, summary: string): string =>
  `openapi: 3.1.0
info: { title: API, version: '1' }
servers: [{ url: '${url}' }]
paths:
  ${path}/{id}:
    get:
      operationId: ${operationId}
      summary: ${summary}
      parameters: [{ name: id, in: path, required: true, schema: { type: string } }]
      responses: { '200': { description: ok } }
`;

beforeAll(async () => {
  api = createServer((req, res) => {
    keys.push(req.headers['x-api-key']);
    res.setHeader('content-type', 'application/json').end(JSON.stringify({ url: req.url }));
  });
  await new Promise<void>((done) => api.listen(0, '127.0.0.1', done));
  const url = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
  issuer = await startOidcServer();
  const inputSchema = { type: 'object' as const };
  docs = await startModernBackend(() =>
    modernServer({ tools: [{ name: 'read', description: 'Reads a page.', inputSchema }] }),
  );
  dir = await mkdtemp(join(tmpdir(), 'gateway-guide-'));
  await writeFile(join(dir, 'petstore.yaml'), document(url, '/pets', 'getPet', 'Looks a pet up'));
  await writeFile(join(dir, 'orders.yaml'), document(url, '/orders', 'cancelOrder', 'Cancels an order'));
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'] });
});
afterAll(async () => {
  await platform?.dispose();
  await docs?.close();
  await issuer?.close();
  api?.closeAllConnections();
  api?.close();
  await rm(dir, { recursive: true, force: true });
});

/** Words of a line of a shell, with the quotes that the guide uses. */
function words(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, bare]) => single ?? double ?? bare ?? '',
  );
}

it('every command of the guide works, from top to bottom', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/guides/gateway.md'), 'utf8');
  // Functions run in sandboxes; what is signed has backends of its own. Both have tests of their own.
  const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block.trim());
  const lines = blocks
    .filter((block) => !/add function|--as-role|--runtime/.test(block))
    .flatMap((block) => block.split('\n'));
  const token = await issuer.token({ resource: 'urn:shop' });
  const local = (text: string): string =>
    text
      .replace('https://id.example.com/.well-known/openid-configuration', issuer.discoveryUrl)
      .replace('https://docs.example.com/mcp', docs.url)
      .replace(/TOKEN$/, token);
  const env: Record<string, string> = { ...platform.env };
  const said = new Map<string, string>();
  for (const line of lines) {
    const [command = '', ...args] = words(line).map(local);
    if (command === 'export') {
      const [name = '', value = ''] = (args[0] ?? '').split(/=(.*)/s);
      env[name] = value;
      continue;
    }
    expect(command).toBe('agentcore');
    const { code, stdout, stderr } = await agentcoreInside(args, { cwd: dir, env, stdin: 'the key of the shop' });
    expect(code, `${line}\n${stderr}`).toBe(0);
    said.set(line, stdout + stderr);
  }
  const of = (begin: string): string => [...said].find(([line]) => line.startsWith(begin))?.[1] ?? '';
  expect(of('agentcore gateway call petstore___getPet')).toContain('/pets/7');
  expect(of('agentcore add target orders')).toContain('orders is READY');
  expect(of('agentcore gateway tools --gateway shop')).toContain('orders___cancelOrder');
  expect(of('agentcore gateway synchronize')).toContain('docs is READY');
  expect(of('agentcore gateway search')).toContain('orders___cancelOrder');
  expect(of('agentcore gateway show')).toMatch(/CUSTOM_JWT.*docs +mcpServer +READY/s);
  const call = ['gateway', 'call', 'orders___cancelOrder', '{"id":"7"}', '--gateway', 'shop'];
  expect(await agentcoreInside(call, { cwd: dir, env, stdin: '' })).toMatchObject({ code: 0 });
  expect(keys.at(-1)).toBe('the key of the shop');
});
