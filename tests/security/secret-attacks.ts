import { randomBytes } from 'node:crypto';
import { chmod, mkdir, realpath, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeCredentialsFile } from '../../packages/platform/src/kernel/auth/iam/credentials-file.ts';
import type { NetworkPolicy, Sandbox } from '../../packages/platform/src/kernel/sandbox/sandbox.ts';
import { openMasterKeyFile } from '../../packages/platform/src/kernel/secrets/index.ts';
import { openDatabase } from '../../packages/platform/src/kernel/storage/index.ts';
import { EMBEDDED_CACHE } from '../../packages/platform/src/kernel/storage/testing/databases.ts';
import { asking, at, host, type OpenLab, ownAddresses, reachAny, type SandboxLab, shell } from './sandbox-lab.ts';

/** What there is to steal. */
export interface PlatformSecrets {
  /** A data directory as `fillData` makes it. */
  data: string;
  /** Where a PostgreSQL server of the host listens. */
  port: number;
  socket: string;
}

const SECRETS = ['credentials', 'keys/master.key', 'db/PG_VERSION', 'db/global/pg_control'];
const SHARE = '/mnt/share';
const UP = '/..'.repeat(12);

/** PostgreSQL's SSLRequest, as printf takes it; a server without TLS answers N. */
const SSL_REQUEST = '\\0\\0\\0\\010\\004\\322\\026\\057';
const OPEN_BY_HANDLE = process.arch === 'x64' ? { name: 303, open: 304 } : { name: 264, open: 265 };
const closed: NetworkPolicy = { egress: 'none', allowCidrs: [], hostPorts: [] };

/** Ways to a file by its absolute path: what is put before it. */
const ways = (share: string, process = 1): string[] => [
  '',
  `/proc/${process}/root`,
  '/proc/self/root',
  '/proc/*/root',
  `/proc/self/cwd${UP}`,
  `/proc/*/cwd${UP}`,
  `${share}${UP}`,
  `${share}/root`,
];

/** A perl program that prints each of the ways and files that can be read together. */
function reading(before: string[], files: string[]): string {
  const list = (items: string[]): string => items.map((item) => `"${item}"`).join(', ');
  return `opendir(my $proc, "/proc"); my @all = grep { /^[0-9]+$/ } readdir($proc);
  for my $way (${list(before)}) { for my $file (${list(files)}) {
    for my $pid ($way =~ /[*]/ ? @all : (0)) {
      my $at = $way; $at =~ s/[*]/$pid/;
      open(my $h, "<", $at . $file) or next;
      read($h, my $some, 4) or next;
      print "$way $file\n"; last;
    } } }`;
}

const all = (before: string[], files: string[]): string =>
  before.flatMap((way) => files.map((file) => `${way} ${file}\n`)).join('');

/** Attempts on the platform's own files and its database; every provider that isolates withstands them. */
export function secretAttacks(title: string, open: OpenLab, secrets: () => PlatformSecrets): void {
  describe(title, () => {
    let lab: SandboxLab;
    let sandbox: Sandbox;
    let data: string;
    let share: string;

    const perl = async (script: string, inside = sandbox): Promise<string> =>
      (await shell(inside, `perl -e '${script}'`)).out;
    const onHost = async (script: string): Promise<string> => (await host('perl', '-e', script)).out;

    beforeAll(async () => {
      lab = await open();
      share = join(lab.dir, 'data/share');
      await mkdir(share, { recursive: true });
      data = await realpath(join(lab.dir, 'data'));
      expect(await host('cp', '-a', `${secrets().data}/.`, data)).toEqual({ code: 0, out: '' });
      await writeFile(join(share, 'note'), 'mine');
      await symlink('../..', join(share, 'up'));
      await symlink(data, join(share, 'data'));
      await symlink('/', join(share, 'root'));
      // Modes would hide what the isolation lets through: so anybody may read it all.
      await host('chmod', '-R', 'a+rX', data);
      await chmod(lab.dir, 0o755);
      await chmod(share, 0o777);
      sandbox = await lab.create({
        network: { ...closed, egress: 'restricted' },
        mounts: [{ source: share, target: SHARE, readOnly: false }],
      });
    });
    afterAll(() => lab?.close());

    it('none of its files, by no path: theirs, /proc, or out of a mount', async () => {
      const files = SECRETS.map((file) => join(data, file));
      const mine = `${SHARE}/note`;
      // The control: each way leads to each of them on the host, and the plain one also for the user that sandboxes have.
      const onTheHost = ways(share, process.pid);
      expect(await onHost(reading(onTheHost, files))).toBe(all(onTheHost, files));
      const nobody = ['--reuid=10001', '--regid=10001', '--clear-groups'];
      expect((await host('setpriv', ...nobody, 'perl', '-e', reading([''], files))).out).toBe(all([''], files));
      // And inside each leads to a file of its own.
      expect(await perl(reading(ways(SHARE), [mine]))).toBe(all(ways(SHARE), [mine]));

      expect(await perl(reading(ways(SHARE), files))).toBe('');
    });

    it('none of its files by links that lie in a mount, whoever made them', async () => {
      const files = SECRETS.map((file) => `/${file}`);
      const links = (at: string): string[] => [`${at}/up/data`, `${at}/data`, `${at}/own`, `${at}/..`];
      // The link `own` is made inside, and leads to the secrets on the host, where nobody follows it.
      expect((await shell(sandbox, `ln -s "${data}" ${SHARE}/own && cat ${SHARE}/up/mnt/share/note`)).out).toBe('mine');
      expect(await onHost(reading(links(share), files))).toBe(all(links(share), files));
      expect(await perl(reading(links(SHARE), files))).toBe('');
    });

    it('none of its files by their number in the file system that a mount is of', async (context) => {
      const handle = `my $p = "${data}/keys/master.key"; my $h = pack("L l a128", 128, 0, ""); my $m = "\\0" x 4;`;
      const made = await onHost(
        `${handle} syscall(${OPEN_BY_HANDLE.name}, -100, $p, $h, $m, 0) == 0 ? print unpack("H*", $h) : print "errno ", $! + 0;`,
      );
      if (made === 'errno 95') return context.skip('the file system here has no such numbers');
      const use = (mount: string): string =>
        `open(my $d, "<", "${mount}") or die; my $h = pack("H*", "${made}"); my $f = syscall(${OPEN_BY_HANDLE.open}, fileno($d), $h, 0); if ($f < 0) { print "errno ", $! + 0 } else { open(my $k, "<&=", $f); print <$k> }`;
      expect(await onHost(use(share))).toBe((await host('cat', join(data, 'keys/master.key'))).out);
      expect(await perl(use(SHARE))).toMatch(/^errno (1|38|95)$/);
    });

    it('not even their names, wherever it looks', async () => {
      const names = ['master.key', 'credentials', 'PG_VERSION', 'pg_control'];
      const find = (top: string, ...wanted: string[]): string =>
        `find ${top} \\( ${wanted.map((one) => `-name ${one}`).join(' -o ')} \\) -type f 2>/dev/null | sed "s,.*/,," | sort -u`;
      const known = (await host('sh', '-c', find(data, ...names))).out;
      expect(known).toBe(
        [...names]
          .sort((a, b) => (a < b ? -1 : 1))
          .map((one) => `${one}\n`)
          .join(''),
      );
      const look = `find / \\( ${[...names, 'note'].map((one) => `-name ${one}`).join(' -o ')} \\) -type f 2>/dev/null`;
      expect((await shell(sandbox, look)).out).toBe(`${SHARE}/note\n`);
    });

    it('no connection to its PostgreSQL, by none of the addresses that it listens on', async () => {
      const { port, socket } = secrets();
      const own = ownAddresses();
      expect(own.length).toBeGreaterThan(0);
      for (const address of ['127.0.0.1', ...own])
        expect((await host('sh', '-c', asking(address, port, SSL_REQUEST))).out, address).toBe('N');
      const gateway = (await shell(sandbox, 'ip route')).out.match(/default via (\S+)/)?.[1] ?? '';
      const names = ['127.0.0.1', 'localhost', '0.0.0.0', '::1', 'platform.internal', gateway, ...own];
      expect(await reachAny(sandbox, at(names, port), SSL_REQUEST)).toEqual([]);

      const dial = `socket(my $s, 1, 1, 0) or die; connect($s, pack("S a108", 1, "${socket}")) ? print "connected" : print "errno ", $! + 0;`;
      expect(await onHost(dial)).toBe('connected');
      expect(await perl(dial)).toBe('errno 2');

      // It is the policy that keeps it away: allowed, the same question is answered.
      const allowed = await lab.create({ network: { ...closed, egress: 'restricted', allowCidrs: [`${own[0]}/32`] } });
      expect(await reachAny(allowed, at(own.slice(0, 1), port), SSL_REQUEST)).toEqual([`${own[0]} ${port} N`]);
      await allowed.stop();
    });
  });
}

/** Makes what a platform keeps in its data directory, by the functions that the platform makes it by. */
export async function fillData(data: string): Promise<void> {
  await openMasterKeyFile(join(data, 'keys', 'master.key'));
  const secretAccessKey = randomBytes(30).toString('base64');
  await writeCredentialsFile(data, { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey, region: 'us-east-1' });
  const database = await openDatabase({ dataDir: data, cacheDir: EMBEDDED_CACHE, log: pino({ level: 'silent' }) });
  await database.close();
}
