import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentcore, start } from '../../packages/cli/test/agentcore.ts';
import type { ConsentProvider } from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectConsentProvider, consentTo } from '../support/consent-platform.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const PAGE = join(ROOT, 'docs/guides/identity.md');
const CONSOLE = /^```console\n([\s\S]*?)^```$/gm;
let dir: string;
let platform: TestPlatform;
let clients: Clients;
let provider: ConsentProvider;
let machines: ConsentProvider;
let api: Server;

beforeAll(async () => {
  // In the checkout, where the examples find their packages.
  dir = await mkdtemp(join(ROOT, 'examples/.identity-'));
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  provider = await connectConsentProvider(clients, 'orders');
  machines = await connectConsentProvider(clients, 'stock');
  const orders: Record<string, string> = { ada: '1 boat', bob: '12 oars' };
  api = createServer(async ({ headers, url = '' }, response) => {
    const token = headers.authorization?.replace('Bearer ', '') ?? '';
    const user = await provider.whoIs(token);
    if (url === '/orders' && user !== undefined) response.end(`${user} has ordered ${orders[user]}.`);
    else if (url === '/stock/boats' && (await machines.isActive(token))) response.end('3 boats are left.');
    else response.writeHead(401).end();
  });
  await new Promise<void>((done) => api.listen(0, '127.0.0.1', done));
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
  await machines?.close();
  api?.close();
  if (dir) await rm(dir, { recursive: true, force: true });
});

/** The example as it is, but for the port of the API. */
async function deploy(name: string): Promise<string> {
  const folder = join(dir, name);
  await cp(join(ROOT, 'examples', name), folder, { recursive: true });
  const file = join(folder, 'agentcore.json');
  const { port } = api.address() as AddressInfo;
  await writeFile(file, (await readFile(file, 'utf8')).replaceAll('4200', String(port)));
  const { code, stderr } = await agentcore(['deploy'], { cwd: folder, env: platform.env });
  expect(code, stderr).toBe(0);
  return folder;
}

/** What that command prints. Whoever is asked to allow something does. */
async function invoke(cwd: string, ...args: string[]): Promise<string> {
  const child = start(['invoke', ...args], { cwd, env: platform.env });
  let said = '';
  let consent: Promise<unknown> | undefined;
  child.stdout?.on('data', (text: string) => {
    said += text;
    const [, url] = /allow it first: (http\S+request_uri=[\w%.-]{60,})/.exec(said) ?? [];
    // The provider asks for nobody's name: the hint says it.
    if (url !== undefined) consent ??= consentTo(url);
  });
  const { code, stdout, stderr } = await child.ended;
  expect(code, stderr).toBe(0);
  await consent;
  const link = /http:\S+?request_uri=urn%3Aietf%3Aparams%3Aoauth%3Arequest_uri%3A[\w-]{43}/g;
  return stdout.replace(link, 'http://localhost:4100/identities/oauth2/authorize?request_uri=…');
}

describe('the examples of the guide', () => {
  it('call an API for the agent itself, and for two users who see their own orders', async () => {
    const folders = { 'api-agent': await deploy('api-agent'), 'users-agent': await deploy('users-agent') };
    const page = await readFile(PAGE, 'utf8');
    const said = new Map<string, string>();
    let at = folders['api-agent'];
    for (const [, block = ''] of page.matchAll(CONSOLE))
      for (const [, command = ''] of block.matchAll(/^\$ (.+)$/gm)) {
        const [, name] = /^cd .*\/([a-z-]+) && agentcore deploy$/.exec(command) ?? [];
        const [, args = ''] = /^agentcore invoke (.+)$/.exec(command) ?? [];
        if (name === 'api-agent' || name === 'users-agent') at = folders[name];
        else
          said.set(
            `${at} ${command} ${said.size}`,
            await invoke(at, ...args.split(' ').map((word) => word.replaceAll("'", ''))),
          );
      }
    const answers = [...said.values()].map((text) => text.trimEnd());
    expect(answers).toEqual([
      '3 boats are left.',
      expect.stringMatching(/^Please allow it first: http:\S+\s*ada has ordered 1 boat\.$/),
      expect.stringMatching(/^Please allow it first: http:\S+\s*bob has ordered 12 oars\.$/),
      'ada has ordered 1 boat.',
    ]);
    let next = 0;
    const shown = page.replace(CONSOLE, (_, block: string) => {
      const lines = [...block.matchAll(/^\$ .+$/gm)].map(([line]) =>
        line.startsWith('$ agentcore invoke') ? `${line}\n${answers[next++]}\n` : `${line}\n`,
      );
      return `\`\`\`console\n${lines.join('')}\`\`\``;
    });
    // `npm test -- identity-examples -u` writes what was printed into the page.
    await expect(shown).toMatchFileSnapshot(PAGE);
  });
});
