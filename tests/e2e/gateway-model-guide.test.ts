import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { agentcoreInside } from '../../packages/cli/test/agentcore.ts';
import { type OidcServer, startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import {
  type ScriptedModel,
  startScriptedModel,
} from '../../packages/platform/src/kernel/models/testing/scripted-model.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let model: ScriptedModel;
let issuer: OidcServer;

beforeAll(async () => {
  [model, issuer] = await Promise.all([startScriptedModel('openai'), startOidcServer()]);
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'] });
});
afterAll(async () => {
  await platform?.dispose();
  await Promise.all([model?.close(), issuer?.close()]);
});

it('every command of docs/guides/model-gateway.md works, from nothing to a shared address with limits', async () => {
  model.script = [{ text: 'Hello there', stop: 'end', usage: { input: 900_000, output: 200_000, cacheRead: 0 } }];
  const page = readFileSync(join(import.meta.dirname, '../../docs/guides/model-gateway.md'), 'utf8');
  const lines = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) => block.trim().split('\n'));
  const local = (text: string): string =>
    text
      .replace('https://id.example.com/.well-known/openid-configuration', issuer.discoveryUrl)
      .replace('http://localhost:11434/v1', model.url);
  const run = (args: string[], env = {}) =>
    agentcoreInside(args, { cwd: platform.dataDir, env: { ...platform.env, ...env }, stdin: 'sk-of-the-team' });
  const said = new Map<string, string>();
  let url = '';
  for (const line of lines) {
    const [, ...args] = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => local(quoted ?? bare ?? ''));
    // What users do beside the commands: before only they come in.
    if (line.includes('gateway usage')) {
      const chat = new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0 });
      const messages = [{ role: 'user' as const, content: 'Hello' }];
      const asked = chat.chat.completions.create({ model: 'llama3.2', messages });
      // The first question took more than the limit of a minute and the budget of a day.
      await expect(asked).rejects.toMatchObject({ status: 429 });
      await expect.poll(async () => (await run(args)).stdout).toMatch(/local +llama3\.2 +anonymous +1 +0/);
    }
    const { code, stdout, stderr } = await run(args);
    expect(code, `${line}\n${stderr}`).toBe(0);
    said.set(line, stdout + stderr);
    url = /OPENAI_BASE_URL=(\S+)/.exec(stdout)?.[1] ?? url;
  }
  const of = (part: string): string => [...said].find(([line]) => line.includes(part))?.[1] ?? '';
  expect(of('add target openai')).toContain('openai is READY');
  expect(of('gateway models --gateway')).toMatch(/llama3\.2 +local/);
  expect(of('try-model')).toContain('Hello there');
  expect(of('add route')).toMatch(/The route [\w-]+ of models is in force/);
  expect(of('gateway guard')).toMatch(/each caller +1000000 tokens a day/);
  // Users with tokens come in, and nobody else.
  expect((await fetch(`${url}/models`)).status).toBe(401);
  const env = { AGENTCORE_GATEWAY_TOKEN: await issuer.token({ resource: 'urn:models' }) };
  const variables = JSON.parse((await run(['env', '--openai', '--gateway', 'models', '--json'], env)).stdout);
  const user = new OpenAI({ baseURL: variables.OPENAI_BASE_URL, apiKey: variables.OPENAI_API_KEY, maxRetries: 0 });
  expect((await user.models.list()).data.map(({ id }) => id)).toEqual(['llama3.2']);
});
