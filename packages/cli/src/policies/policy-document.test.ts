import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readPolicyDocument } from './policy-document.ts';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'policy-document-'));
  await writeFile(join(dir, 'small.cedar'), 'permit(principal, action, resource);');
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const sound = { tools: [{ name: 'orders___refund', inputSchema: {} }], policies: ['small.cedar'] };
const call = { name: 'one', principal: { type: 'OAuthUser', id: 'ada' }, action: 'orders___refund', expect: 'DENY' };

async function wrong(more: object): Promise<string> {
  const file = join(dir, 'policies.json');
  await writeFile(file, JSON.stringify({ ...sound, ...more }));
  const said = await readPolicyDocument(file).then(
    () => '',
    (error: Error) => error.message,
  );
  return said.replace(`${file} is wrong:\n`, '');
}

it('a document that is as it should be is read', async () => {
  expect(await wrong({ tests: [call] })).toBe('');
});

it('each wrong field is told in the words of agentcore.json, all at once', async () => {
  const { name: _, ...nameless } = call;
  const known = 'name, principal, action, input, now, history, expect, determining';
  expect(await wrong({ tests: [nameless, { ...call, expect: 'MAYBE', expected: 'DENY' }], princpals: [] })).toBe(
    [
      '  princpals: no such field; known are gatewayArn, principals, tools, policies, tests',
      '  tests.0.name: is missing',
      `  tests.1.expected: no such field; known are ${known}`,
      '  tests.1.expect: must be one of ALLOW, DENY',
    ].join('\n'),
  );
  expect(await wrong({ policies: [{ file: 'small.cedar', mode: 'ON' }, 7], tools: 7 })).toBe(
    [
      '  tools: must be string or array',
      '  policies.0.mode: must be one of ACTIVE, LOG_ONLY',
      '  policies.1: must be string or object',
    ].join('\n'),
  );
});
