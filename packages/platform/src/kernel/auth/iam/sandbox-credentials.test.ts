import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { FakeClock } from '../../fake-clock.ts';
import { ToldChanges } from '../../storage/testing/told-changes.ts';
import { type Iam, openIam } from './iam.ts';
import { createMemoryIamStore } from './iam-store.ts';
import { SandboxCredentials } from './sandbox-credentials.ts';
import { fakeSealer } from './testing/fake-sealer.ts';

const SOURCE = 'arn:aws:bedrock-agentcore:us-east-1:111122223333:runtime/a-0123456789';

let clock: FakeClock;
let iam: Iam;
let credentials: SandboxCredentials;
let hosts: Map<string, string>;
const key = randomBytes(32);
const open = (over: { key?: Uint8Array } = {}): SandboxCredentials =>
  new SandboxCredentials({
    roles: iam,
    findSandbox: async (id) => {
      const host = hosts.get(id);
      return host === undefined ? undefined : { address: (port) => ({ host, port }) };
    },
    key,
    ttlSeconds: 3600,
    clock,
    ...over,
  });

beforeEach(async () => {
  clock = new FakeClock();
  hosts = new Map([
    ['one', '10.224.0.2'],
    ['two', '10.224.0.3'],
  ]);
  iam = await openIam({
    store: createMemoryIamStore(),
    sealer: fakeSealer(),
    clock,
    random: randomBytes,
    region: 'us-east-1',
    changes: new ToldChanges(),
    sandboxLives: (id) => hosts.has(id),
  });
  credentials = open();
});

const tokenOf = (sandboxId: string): string =>
  credentials.token({ sandboxId, roleArn: iam.defaultRoleArn, sourceArn: SOURCE, given: [] });

describe('credentials of a sandbox', () => {
  it('are those of its role, named after it, and count while it lives', async () => {
    const issued = await credentials.issue(tokenOf('one'), '10.224.0.2');
    expect(issued.arn).toBe(`arn:aws:sts::${iam.accountId}:assumed-role/default/one`);
    expect(await iam.keys.find(issued.accessKeyId, issued.sessionToken)).toBeDefined();
    hosts.delete('one');
    expect(() => iam.keys.find(issued.accessKeyId, issued.sessionToken)).toThrow(/has ended/);
    await expect(credentials.issue(tokenOf('one'), '10.224.0.2')).rejects.toThrow(/not that of this sandbox/);
  });

  it('are refused to another sandbox, even with the right token', async () => {
    await expect(credentials.issue(tokenOf('one'), '10.224.0.3')).rejects.toMatchObject({ status: 403 });
    await expect(credentials.issue(tokenOf('one'), undefined)).rejects.toMatchObject({ status: 403 });
    expect((await credentials.issue(tokenOf('one'), '10.224.0.2')).arn).toMatch(/one$/);
  });

  it('know what was given to whom runs there', async () => {
    const given = ['arn:aws:bedrock-agentcore:us-east-1:111122223333:memory/notes-a1B2c3D4e5'];
    const roleArn = iam.defaultRoleArn;
    const token = credentials.token({ sandboxId: 'one', roleArn, sourceArn: SOURCE, given });
    const { accessKeyId, sessionToken } = await credentials.issue(token, '10.224.0.2');
    expect((await iam.keys.find(accessKeyId, sessionToken))?.principal).toMatchObject({ given });
  });

  it('stay the same until half their time is over, so that each asker has new ones long before the end', async () => {
    const first = await credentials.issue(tokenOf('one'), '10.224.0.2');
    await clock.advance(1_799_999);
    expect((await credentials.issue(tokenOf('one'), '10.224.0.2')).accessKeyId).toBe(first.accessKeyId);
    await clock.advance(1);
    const second = await credentials.issue(tokenOf('one'), '10.224.0.2');
    expect(second.accessKeyId).not.toBe(first.accessKeyId);
    expect(second.expiresAt - clock.now()).toBe(3_600_000);
    // What was given before goes on to its own end.
    expect(await iam.keys.find(first.accessKeyId, first.sessionToken)).toBeDefined();
  });

  it('are not issued for a role that trusts the platform no more, or that is gone', async () => {
    const trustPolicy = iam.admin.getRole('default').trustPolicy;
    const role = await iam.admin.createRole({ roleName: 'other', trustPolicy });
    const token = credentials.token({ sandboxId: 'one', roleArn: role.arn, sourceArn: SOURCE, given: [] });
    await iam.admin.deleteRole('other');
    await expect(credentials.issue(token, '10.224.0.2')).rejects.toThrow(/not authorized/);
  });

  it('are given after a restart of the server to the token that a sandbox has', async () => {
    const token = tokenOf('one');
    expect((await open().issue(token, '10.224.0.2')).arn).toMatch(/one$/);
    await expect(open({ key: randomBytes(32) }).issue(token, '10.224.0.2')).rejects.toMatchObject({ status: 403 });
  });

  it('are not given for any other text', async () => {
    const token = tokenOf('one');
    const refused = (text: string) =>
      expect(credentials.issue(text, '10.224.0.2')).rejects.toMatchObject({ status: 403 });
    for (const text of [
      '',
      '.',
      'a.b',
      `${token}.`,
      `${token}x`,
      token.slice(1),
      `Bearer ${token}`,
      'x'.repeat(100_000),
    ])
      await refused(text);
    const [claims = '', proof = ''] = token.split('.');
    const other = Buffer.from(JSON.stringify(['two', iam.defaultRoleArn, SOURCE])).toString('base64url');
    await refused(`${other}.${proof}`);
    await refused(`${claims}.${randomBytes(32).toString('base64url')}`);
    await fc.assert(
      fc.asyncProperty(fc.string(), async (text) => void (await refused(text))),
      { numRuns: 200 },
    );
  });
});
