import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StopRuntimeSessionCommand } from '@aws-sdk/client-bedrock-agentcore';
import {
  DeleteAgentRuntimeCommand,
  type FilesystemConfiguration,
  GetAgentRuntimeCommand,
  UpdateAgentRuntimeCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { CreateBucketCommand, GetObjectCommand, ListObjectsV2Command, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { type AgentOptions, deployAgent, untilReady } from '../support/deploy.ts';
import { newRole, setPolicy } from '../support/iam.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

const folder = join(import.meta.dirname, '../support/probe-agent');
const SESSION: FilesystemConfiguration = { sessionStorage: { mountPath: '/mnt/kept' } };
const DISK = { AGENTPLATFORM_SESSION_STORAGE_BYTES: '32MiB' };

/** What agents keep and share beyond their sandboxes, with sandboxes as these options of the platform make them. */
export function fileSystems(sandboxes: () => string[]): void {
  /** Of this run alone: mounts of it are looked for among all of the machine. */
  const OBJECTS = `fsap-${randomBytes(8).toString('hex')}`;
  let dir: string;
  let platform: TestPlatform;
  let clients: Clients;
  let roleArn: string;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'file-systems-'));
    await mkdir(join(dir, 'shared'));
    await chmod(join(dir, 'shared'), 0o777);
    await start();
    roleArn = await newRole(platform, 'mounter', [{ Effect: 'Allow', Action: '*', Resource: '*' }]);
  });
  afterAll(async () => {
    clients?.close();
    await platform?.dispose();
    await rm(dir, { recursive: true, force: true });
  });

  async function start(): Promise<void> {
    const shared = `fsap-0123456789abcdef0=${join(dir, 'shared')},${OBJECTS}=s3://team-files/shared/a`;
    platform = await startTestPlatform({
      dataDir: join(dir, 'data'),
      args: ['--sandbox-shared-mounts', shared, ...sandboxes()],
      env: DISK,
    });
    clients = clientsOf(platform);
  }

  /** Programs that serve mounted prefixes, each with its number and its arguments. */
  async function processes(): Promise<string[]> {
    const found = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const lines = found.map(async (pid) => {
      const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      return `${pid} ${text.replaceAll('\0', ' ')}`;
    });
    return (await Promise.all(lines)).filter((line) => line.includes('file-system-worker'));
  }

  const accessPointArn = (id = 'fsap-0123456789abcdef0', account = platform.ready.accountId): string =>
    `arn:aws:elasticfilesystem:us-east-1:${account}:access-point/${id}`;
  const efs = (mountPath = '/mnt/shared', arn = accessPointArn()): FilesystemConfiguration => ({
    efsAccessPoint: { accessPointArn: arn, mountPath },
  });
  const deploy = (filesystemConfigurations: FilesystemConfiguration[], more: Partial<AgentOptions> = {}) =>
    deployAgent(platform, clients, { folder, roleArn, filesystemConfigurations, ...more });
  const file = (arn: string, session: string, path: string, append?: string) =>
    invokeJson(clients, arn, session, { do: 'file', path, append });
  const stop = (agentRuntimeArn: string, runtimeSessionId: string) =>
    clients.data.send(new StopRuntimeSessionCommand({ agentRuntimeArn, runtimeSessionId }));

  describe('session storage', () => {
    it('loses nothing from stop to resume, again and again, while the rest of the disk begins anew', async () => {
      const { arn, id } = await deploy([SESSION]);
      const session = sessionId('kept');
      expect(await file(arn, session, '/mnt/kept/log', 'one ')).toEqual({ text: 'one ' });
      expect(await file(arn, session, '/tmp/log', 'gone')).toEqual({ text: 'gone' });
      await stop(arn, session);
      expect(await file(arn, session, '/mnt/kept/log', 'two ')).toEqual({ text: 'one two ' });
      expect(await file(arn, session, '/tmp/log')).toEqual({ error: 'ENOENT' });
      await stop(arn, session);
      expect(await file(arn, session, '/mnt/kept/log', 'three')).toEqual({ text: 'one two three' });
      expect(await file(arn, sessionId('other'), '/mnt/kept/')).toEqual({ names: [] });
      const shown = await clients.control.send(new GetAgentRuntimeCommand({ agentRuntimeId: id }));
      expect(shown.filesystemConfigurations).toEqual([SESSION]);
    });

    it('is there in a sandbox that stood ready before anybody knew the session', async () => {
      const { arn } = await deploy([SESSION]);
      const [first, second] = [sessionId('first'), sessionId('second')];
      await file(arn, first, '/mnt/kept/log', 'mine');
      await stop(arn, first);
      // Each new session leaves one behind that stands ready for the next.
      for (const session of [second, first, second, first]) {
        const expected = session === first ? { text: 'mine' } : { error: 'ENOENT' };
        expect(await file(arn, session, '/mnt/kept/log')).toEqual(expected);
        await stop(arn, session);
      }
    });

    it('begins anew with a version, and goes with its runtime', async () => {
      const { arn, id, ...runtime } = await deploy([SESSION]);
      const session = sessionId('version');
      await file(arn, session, '/mnt/kept/log', 'old');
      await stop(arn, session);
      const { agentRuntimeArtifact, networkConfiguration } = runtime;
      await clients.control.send(
        new UpdateAgentRuntimeCommand({
          agentRuntimeId: id,
          agentRuntimeArtifact,
          networkConfiguration,
          roleArn,
          filesystemConfigurations: [SESSION],
        }),
      );
      await untilReady(clients, id);
      expect(await file(arn, session, '/mnt/kept/')).toEqual({ names: [] });
      const volumes = (): Promise<string[]> => readdir(join(dir, 'data/session-storage'));
      const before = (await volumes()).length;
      await clients.control.send(new DeleteAgentRuntimeCommand({ agentRuntimeId: id }));
      await expect.poll(async () => (await volumes()).length, { timeout: 20_000 }).toBe(before - 1);
    });

    it('survives a crash of the server, with the session and without', async () => {
      const { arn } = await deploy([SESSION]);
      const [live, idle] = [sessionId('live'), sessionId('idle')];
      await file(arn, live, '/mnt/kept/log', 'before ');
      await file(arn, idle, '/mnt/kept/log', 'before ');
      await stop(arn, idle);
      await platform.end('SIGKILL');
      clients.close();
      await start();
      expect(await file(arn, live, '/mnt/kept/log', 'after ')).toEqual({ text: 'before after ' });
      expect(await file(arn, idle, '/mnt/kept/log', 'after ')).toEqual({ text: 'before after ' });
      await stop(arn, live);
      expect(await file(arn, live, '/mnt/kept/log')).toEqual({ text: 'before after ' });
    });
  });

  it('of kinds that cannot be shown with other owners are named by doctor: sandboxes with them share quotas', async () => {
    const answer = await signedFetch(platform, { method: 'GET', path: '/_platform/doctor' });
    const { providers } = (await answer.json()) as { providers: { provider: string; shared?: string[] }[] };
    const { shared = [] } = providers.find(({ provider }) => provider === 'oci') ?? {};
    expect(shared.flatMap((what) => /that see the shared place (\S+): /.exec(what)?.[1] ?? [])).toEqual([OBJECTS]);
  });

  describe('a shared place', () => {
    it('is the same for sessions, agents and the host', async () => {
      const [one, two] = await Promise.all([deploy([efs()]), deploy([efs('/mnt/elsewhere/'), SESSION])]);
      await file(one.arn, sessionId('a'), '/mnt/shared/log', 'from a, ');
      await file(one.arn, sessionId('b'), '/mnt/shared/log', 'from b, ');
      expect(await file(two.arn, sessionId('c'), '/mnt/elsewhere/log', 'from c')).toEqual({
        text: 'from a, from b, from c',
      });
      expect(await readFile(join(dir, 'shared/log'), 'utf8')).toBe('from a, from b, from c');
    });

    it('leads nowhere else by a link', async () => {
      await writeFile(join(dir, 'secret'), 'of the host');
      await symlink(join(dir, 'secret'), join(dir, 'shared/link'));
      expect(await readFile(join(dir, 'shared/link'), 'utf8')).toBe('of the host');
      const { arn } = await deploy([efs()]);
      expect(await file(arn, sessionId('link'), '/mnt/shared/link')).toEqual({ error: 'ENOENT' });
    });

    it('is read-only for a role without ClientWrite, and nothing for one without ClientMount', async () => {
      const mount = { Effect: 'Allow', Action: 'elasticfilesystem:ClientMount', Resource: accessPointArn() };
      const reader = await newRole(platform, 'reader', [mount]);
      await writeFile(join(dir, 'shared/given'), 'to read');
      const { arn } = await deploy([efs()], { roleArn: reader });
      expect(await file(arn, sessionId('r'), '/mnt/shared/given')).toEqual({ text: 'to read' });
      // The directory is open to all: a role that may write has just done so.
      expect(await file(arn, sessionId('r'), '/mnt/shared/new', 'more')).toEqual({ error: 'EROFS' });
      await setPolicy(platform, 'reader', [{ ...mount, Action: 's3:GetObject' }]);
      await expect(deploy([efs()], { roleArn: reader })).rejects.toMatchObject({
        name: 'ValidationException',
        message: expect.stringContaining('is not allowed elasticfilesystem:ClientMount'),
      });
    });

    it.each<[string, () => FilesystemConfiguration[], RegExp]>([
      [
        'an access point that nobody named',
        () => [efs('/mnt/x', accessPointArn('fsap-ffffffffffffffff0'))],
        /sandbox\.sharedMounts of this server; there are: fsap-0123456789abcdef0/,
      ],
      [
        'one of another account',
        () => [efs('/mnt/x', accessPointArn(undefined, '999999999999'))],
        /sandbox\.sharedMounts/,
      ],
      [
        'two on one path',
        () => [efs('/mnt/x'), { sessionStorage: { mountPath: '/mnt/x/' } }],
        /second one on \/mnt\/x/,
      ],
      ['two session storages', () => [SESSION, { sessionStorage: { mountPath: '/mnt/y' } }], /second sessionStorage/],
      ['a path that is none', () => [{ sessionStorage: { mountPath: '/mnt/..' } }], /below \/mnt/],
      ['a path elsewhere', () => [{ sessionStorage: { mountPath: '/etc/kept' } }], /mountPath/],
      ['a volume', () => [{ capacityProviderVolume: { volumeName: 'v', mountPath: '/mnt/v' } }], /capacity provider/],
    ])('is refused: %s', async (_, configurations, message) => {
      await expect(deploy(configurations())).rejects.toMatchObject({
        name: 'ValidationException',
        message: expect.stringMatching(message),
      });
    });
  });

  describe.skipIf(!existsSync('/dev/fuse'))('a prefix of the object store', () => {
    const Bucket = 'team-files';
    const mounted = (mountPath = '/mnt/shared') => efs(mountPath, accessPointArn(OBJECTS));
    const put = (Key: string, Body: string) => clients.s3.send(new PutObjectCommand({ Bucket, Key, Body }));
    const get = async (Key: string) =>
      (await clients.s3.send(new GetObjectCommand({ Bucket, Key }))).Body?.transformToString();
    const keys = async () =>
      (await clients.s3.send(new ListObjectsV2Command({ Bucket }))).Contents?.map(({ Key }) => Key) ?? [];
    /** Processes and mounts of this platform's prefixes. */
    const serving = async () => (await processes()).filter((line) => line.includes(join(dir, 'data')));
    const mounts = async () =>
      (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').filter((line) => line.includes(` fuse ${OBJECTS} `));

    it('is asked for a bucket that is there', async () => {
      const { arn } = await deploy([mounted()]);
      await expect(file(arn, sessionId('early'), '/mnt/shared/')).rejects.toThrow(/bucket team-files does not exist/);
      await clients.s3.send(new CreateBucketCommand({ Bucket }));
      await put('shared/a-sibling/secret', 'not below the prefix');
      await put('shared/b/secret', 'not below the prefix');
      await put('top', 'not below the prefix');
    });

    it('loses nothing from stop to resume, for agents that share it, and is what an S3 client sees', async () => {
      const [one, two] = await Promise.all([deploy([mounted()]), deploy([mounted('/mnt/elsewhere'), SESSION])]);
      const [a, b] = [sessionId('a'), sessionId('b')];
      expect(await file(one.arn, a, '/mnt/shared/log', 'one ')).toEqual({ text: 'one ' });
      // Stored by the time that close returned, not by the end of the session.
      expect(await get('shared/a/log')).toBe('one ');
      await stop(one.arn, a);
      expect(await file(two.arn, b, '/mnt/elsewhere/log', 'two ')).toEqual({ text: 'one two ' });
      expect(await file(one.arn, a, '/mnt/shared/log', 'three ')).toEqual({ text: 'one two three ' });
      await stop(one.arn, a);
      await stop(two.arn, b);
      expect(await file(one.arn, a, '/mnt/shared/log', 'four')).toEqual({ text: 'one two three four' });
      expect(await get('shared/a/log')).toBe('one two three four');
    });

    it('shows what is below it, and nothing beside it by any path', async () => {
      const { arn } = await deploy([mounted()]);
      const session = sessionId('beside');
      await put('shared/a/deep/er', 'below the prefix');
      expect(await file(arn, session, '/mnt/shared/deep/er')).toEqual({ text: 'below the prefix' });
      const before = await keys();
      expect(before).toEqual(expect.arrayContaining(['shared/a-sibling/secret', 'shared/b/secret', 'top']));
      const { names } = (await file(arn, session, '/mnt/shared/')) as { names: string[] };
      expect(names.sort()).toEqual(['deep', 'log']);
      for (const path of ['../b/secret', '../../top', '..%2fb%2fsecret', '-sibling/secret', 'deep/../../b/secret'])
        expect(await file(arn, session, `/mnt/shared/${path}`), path).toEqual({ error: 'ENOENT' });
      // Above the mount is the sandbox's own disk.
      await file(arn, session, '/mnt/shared/deep/../../new', 'mine');
      expect(await keys()).toEqual(before);
    });

    it('is read-only for a role without ClientWrite', async () => {
      const mount = {
        Effect: 'Allow',
        Action: 'elasticfilesystem:ClientMount',
        Resource: accessPointArn(OBJECTS),
      };
      const reader = await newRole(platform, 'object-reader', [mount]);
      await put('shared/a/given', 'to read');
      const { arn } = await deploy([mounted()], { roleArn: reader });
      expect(await file(arn, sessionId('r'), '/mnt/shared/given')).toEqual({ text: 'to read' });
      expect(await file(arn, sessionId('r'), '/mnt/shared/given', 'more')).toEqual({ error: 'EROFS' });
      expect(await file(arn, sessionId('r'), '/mnt/shared/new', 'more')).toEqual({ error: 'EROFS' });
      expect(await keys()).not.toContain('shared/a/new');
      expect(await get('shared/a/given')).toBe('to read');
    });

    it('survives a crash of the server for a live session and a stopped one, and leaves one mount with one process', async () => {
      const { arn } = await deploy([mounted()]);
      const [live, idle] = [sessionId('live'), sessionId('idle')];
      await file(arn, live, '/mnt/shared/crash', 'live ');
      await file(arn, idle, '/mnt/shared/crash', 'idle ');
      await stop(arn, idle);
      const [before] = await serving();
      await platform.end('SIGKILL');
      clients.close();
      await start();
      expect(await get('shared/a/crash')).toBe('live idle ');
      expect(await file(arn, live, '/mnt/shared/crash', 'again ')).toEqual({ text: 'live idle again ' });
      expect(await file(arn, idle, '/mnt/shared/crash', 'after')).toEqual({ text: 'live idle again after' });
      expect(await get('shared/a/crash')).toBe('live idle again after');
      expect(await serving()).toEqual([before]);
      expect(await mounts()).toHaveLength(1);
    });

    it('is mounted anew when the process behind it was killed', async () => {
      const { arn } = await deploy([mounted()]);
      await file(arn, sessionId('first'), '/mnt/shared/again', 'kept ');
      const [before = ''] = await serving();
      process.kill(Number(before.split(' ')[0]), 'SIGKILL');
      await expect.poll(mounts, { timeout: 20_000 }).toEqual([]);
      expect(await file(arn, sessionId('second'), '/mnt/shared/again', 'anew')).toEqual({ text: 'kept anew' });
      const now = await serving();
      expect(now).toHaveLength(1);
      expect(now).not.toEqual([before]);
    });

    it('leaves no process and no mount behind a server that ends', async () => {
      expect(await serving()).toHaveLength(1);
      await platform.end();
      expect(await serving()).toEqual([]);
      expect(await mounts()).toEqual([]);
    });
  });
}
