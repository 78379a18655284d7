import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../clock.ts';
import { type ObjectStore, openDirectoryStore } from '../../objects/index.ts';
import { runCommand } from '../../processes/index.ts';
import { until } from '../../sandbox/testing/until.ts';
import { readMounts } from '../../session-storage/index.ts';
import { silent } from '../../storage/testing/databases.ts';
import { missingFor } from '../missing.ts';
import { ObjectMounts } from './object-mounts.ts';
import { PROTOCOL } from './tree-lines.ts';

const ID = 'fsap-00000001';
const canMount = process.getuid?.() === 0 && missingFor('objects').length === 0;

// The file system of a server and of a second one, of programs in processes of their own: what waits for this one must not be in it.
describe.skipIf(!canMount)('a mounted prefix', () => {
  let dir: string;
  let store: ObjectStore;
  let mounts: ObjectMounts;
  let path: string;
  let other: ObjectMounts;
  let otherPath: string;
  /** Set to make the store fail. */
  let failing: Error | undefined;

  const open = (name: string): Promise<ObjectMounts> =>
    ObjectMounts.open({
      places: new Map([
        [ID, { bucket: 'bucket', prefix: 'some/where' }],
        ['fsap-00000002', { bucket: 'no-such-bucket', prefix: '' }],
      ]),
      store: {
        ...store,
        put: (...args) => (failing ? Promise.reject(failing) : store.put(...args)),
      },
      dataDir: join(dir, name),
      run: runCommand,
      runBase: join(dir, 'run'),
      log: silent,
    });
  const python = async (script: string, cwd = path): Promise<string> => {
    const child = spawn('python3', ['-c', `import os, sys, errno\n${script}`], {
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
    return out + err;
  };
  /** A program that does one act after another, each when it is told to. */
  const interactive = async (script: string, cwd = path) => {
    const loop = 'for line in sys.stdin: act(line[:-1]); print("done", flush=True)';
    const child = spawn('python3', ['-c', `import os, sys\n${script}\n${loop}`], {
      cwd,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    return {
      act: async (word: string): Promise<void> => {
        child.stdin.write(`${word}\n`);
        expect((await lines.next()).value).toBe('done');
      },
      end: async (): Promise<void> => {
        child.stdin.end();
        await once(child, 'exit');
      },
    };
  };
  const shell = async (script: string, cwd = path): Promise<string> => {
    const { stdout, stderr } = await runCommand(['sh', '-ec', script], { cwd, timeoutMs: 30_000 });
    return stdout + stderr;
  };
  const stored = async (name: string): Promise<string> =>
    text((await store.get({ bucket: 'bucket', key: `some/where/${name}` })).body);
  const keys = async () => (await store.list('bucket', { limit: 1000 })).objects.map(({ key }) => key);

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'object-mounts-'));
    store = await openDirectoryStore({ directory: join(dir, 'objects'), clock: systemClock });
    await store.createBucket('bucket', '1');
    for (const name of ['one', 'two']) await mkdir(join(dir, name));
    mounts = await open('one');
    other = await open('two');
    [path, otherPath] = await Promise.all([mounts.source(ID), other.source(ID)]);
  });
  afterAll(async () => {
    await mounts?.close();
    await other?.close();
    expect((await readMounts()).filter((mount) => mount.path.startsWith(dir))).toEqual([]);
    await rm(dir, { recursive: true, force: true });
  });

  it('has stored what close(2) or fsync(2) returned for, and not what neither did', async () => {
    const program = await interactive(`
f = os.open('f', os.O_CREAT | os.O_WRONLY)
def act(word):
    if word == 'write': os.write(f, b'word ')
    if word == 'fsync': os.fsync(f)
    if word == 'close': os.close(f)
`);
    const after: [string, string][] = [
      ...([
        ['write', ''],
        ['fsync', 'word '],
        ['write', 'word '],
      ] as [string, string][]),
      ...([
        ['write', 'word '],
        ['close', 'word word word '],
      ] as [string, string][]),
    ];
    for (const [word, expected] of after) {
      await program.act(word);
      expect(await stored('f'), word).toBe(expected);
    }
    await program.end();
  });

  it('appends, overwrites, cuts off and lengthens', async () => {
    await shell(
      'printf 0123456789 > a; printf ab >> a; truncate -s 5 a; printf X | dd of=a bs=1 seek=1 conv=notrunc 2>&-',
    );
    expect(await stored('a')).toBe('0X234');
    await shell('truncate -s 7 a; : > b; cp a c; echo c > c');
    expect(await stored('a')).toBe('0X234\0\0');
    expect(await stored('b')).toBe('');
    expect(await stored('c')).toBe('c\n');
  });

  it('renames, also over what is open, and keeps a removed file for who has it open', async () => {
    const out = await python(`
open('r1', 'w').write('one'); open('r2', 'w').write('two')
f = open('r2', 'r+')
os.rename('r1', 'r2')
f.write('TWO'); f.seek(0); print(f.read()); f.close()
print(open('r2').read())
g = open('r2', 'r+'); os.unlink('r2'); g.write('gone'); g.seek(0); print(g.read()); g.close()
os.makedirs('d/e'); open('d/e/x', 'w').write('x')
h = open('d/e/x', 'a'); h.write('y'); os.rename('d', 'moved'); h.write('z'); h.close()
print(open('moved/e/x').read(), os.listdir('moved'))
for attempt in (lambda: os.rmdir('moved'), lambda: os.symlink('x', 'l'), lambda: os.link('moved/e/x', 'l'), lambda: os.mkfifo('p'), lambda: open(b'\\xff', 'w')):
    try: attempt(); print('done')
    except OSError as error: print(errno.errorcode[error.errno])
`);
    expect(out.split('\n')).toEqual([
      ...['TWO', 'one', 'gone', "xyz ['e']"],
      ...['ENOTEMPTY', 'EPERM', 'EPERM', 'EPERM', 'EILSEQ', ''],
    ]);
    expect(await keys()).not.toContain('some/where/r2');
    expect(await stored('moved/e/x')).toBe('xyz');
  });

  it('tells close(2) when the store does not take it, and stores it with the next that succeeds', async () => {
    const attempt = `
f = open('failing', 'w'); f.write('content'); f.flush()
try: os.fsync(f.fileno()); print('stored')
except OSError as error: print(errno.errorcode[error.errno])
`;
    await python(`open('failing', 'w').write('before')`);
    failing = new Error('the store is away');
    expect(await python(attempt)).toBe('EIO\n');
    failing = undefined;
    expect(await stored('failing')).toBe('before');
    expect(await python(attempt)).toBe('stored\n');
    expect(await stored('failing')).toBe('content');
  });

  it('keeps every line of programs that append to one file at a time, and their locks', async () => {
    const append = (name: string): string => `
import fcntl
for i in range(25):
    with open('lines', 'a') as f: f.write(f'${name} {i}\\n')
    with open('counter', 'a+') as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        f.seek(0); count = int(f.read() or 0)
        f.truncate(0); f.write(str(count + 1)); f.flush()
`;
    expect(await Promise.all([python(append('one')), python(append('two'))])).toEqual(['', '']);
    const lines = (await stored('lines')).split('\n').filter(Boolean);
    expect(new Set(lines).size).toBe(50);
    expect(await stored('counter')).toBe('50');
  });

  it('begins anew with a name that an S3 client has removed under who has it open', async () => {
    const program = await interactive(`
old = open('under', 'w')
def act(word):
    if word == 'write': old.write('old'); old.flush()
    if word == 'create': new = open('under', 'w'); new.write('new'); new.close()
    if word == 'close': old.close()
`);
    await program.act('write');
    await store.delete({ bucket: 'bucket', key: 'some/where/under' });
    await until(async () => (await shell('ls')).split('\n').every((name) => name !== 'under'));
    await until(async () => (await python(`print(os.path.exists('under'))`)) === 'False\n');
    await program.act('create');
    await program.act('close');
    await program.end();
    expect(await stored('under')).toBe('new');
  });

  it('shows another server what it stored; of two that create a file one does; the last close stays', async () => {
    await shell('echo mine > shared');
    expect(await shell('cat shared', otherPath)).toBe('mine\n');
    await shell('echo theirs > shared', otherPath);
    await until(async () => (await shell('cat shared')) === 'theirs\n');
    const exclusive = `
try: os.close(os.open('lock', os.O_CREAT | os.O_EXCL | os.O_WRONLY)); print('mine')
except OSError as error: print(errno.errorcode[error.errno])
`;
    const both = await Promise.all([python(exclusive), python(exclusive, otherPath)]);
    expect(both.sort()).toEqual(['EEXIST\n', 'mine\n']);
  });

  it('does what a disk does, in any order', async () => {
    const disk = join(dir, 'disk');
    await mkdir(disk);
    // The same pseudo-random acts on both; what each said and what is there at last must be the same.
    const act = `
import random
os.makedirs('m', exist_ok=True)
os.chdir('m')
r = random.Random(20261122)
names = ['a', 'b', 'd', 'd/x', 'd/y', 'd/e', 'd/e/z', 'g']
def write(mode):
    with open(r.choice(names), mode) as f:
        if mode == 'r+': f.seek(r.randrange(8))
        f.write(str(r.randrange(1000)) * r.randrange(1, 4))
def tree():
    for root, dirs, files in sorted(os.walk('.')):
        print(root, sorted(dirs), [(n, open(os.path.join(root, n)).read()) for n in sorted(files)])
acts = [lambda: write('w'), lambda: write('a'), lambda: write('r+'), lambda: write('x'),
    lambda: os.mkdir(r.choice(names)), lambda: os.rmdir(r.choice(names)), lambda: os.unlink(r.choice(names)),
    lambda: os.rename(r.choice(names), r.choice(names)), lambda: os.truncate(r.choice(names), r.randrange(12)),
    lambda: print(open(r.choice(names)).read()), lambda: print(sorted(os.listdir(r.choice(names))))]
for i in range(300):
    try: r.choice(acts)()
    except OSError as error: print(i, errno.errorcode[error.errno])
tree()
`;
    const [expected, found] = [await python(act, disk), await python(act)];
    expect(found.split('\n')).toEqual(expected.split('\n'));
    expect(expected.split('\n').length).toBeGreaterThan(200);
    // And the second server finds the same, from the store alone.
    const look = `${act.slice(0, act.indexOf('for i in'))}\ntree()`;
    expect(await python(look, otherPath)).toBe(await python(look, disk));
  });

  it('waits for a platform that was killed and comes back, with what is open', async () => {
    await mkdir(join(dir, 'three'));
    const script = join(import.meta.dirname, 'testing/mounting-child.ts');
    const args = [script, ID, join(dir, 'objects'), join(dir, 'three'), join(dir, 'run')];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(child.stdout, 'data', { signal: AbortSignal.timeout(30_000) });
    const third = String(line).trim();
    const program = await interactive(
      `
f = open('open', 'w')
def act(word):
    if word == 'close': f.close()
    else: f.write(word); f.flush()
`,
      third,
    );
    await program.act('before ');
    const pids = await serving('three');
    expect(pids).toHaveLength(1);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await program.act('between ');
    const closed = program.act('close');
    const again = await open('three');
    try {
      expect(await again.source(ID)).toBe(third);
      await closed;
      expect(await stored('open')).toBe('before between ');
      expect(await serving('three')).toEqual(pids);
      await program.end();
    } finally {
      await again.close();
    }
    expect(await serving('three')).toEqual([]);
  });

  it('is mounted anew when its process has died', async () => {
    const [pid] = await serving('one');
    process.kill(Number(pid), 'SIGKILL');
    await until(async () => !(await serving('one')).includes(pid ?? ''));
    await until(async () => !(await readMounts()).some((mount) => mount.path === path));
    expect(await mounts.source(ID)).toBe(path);
    expect(await shell('cat shared')).toBe('theirs\n');
  });

  it('is served by a process that knows nothing of what the platform was configured with', async () => {
    const name = 'AGENTPLATFORM_OBJECTS_SECRET_ACCESS_KEY';
    const environment = async (pid: number | string | undefined) => readFile(`/proc/${pid}/environ`, 'utf8');
    const before = process.env[name];
    process.env[name] = 'not-to-be-seen';
    await mkdir(join(dir, 'four'));
    const fourth = await open('four');
    // Any other child of this one has it.
    const child = spawn('sleep', ['60']);
    try {
      await once(child, 'spawn');
      expect(await environment(child.pid)).toContain('not-to-be-seen');
      await fourth.source(ID);
      const [pid] = await serving('four');
      const seen = `${await environment(pid)}${await readFile(`/proc/${pid}/cmdline`, 'utf8')}`;
      expect(seen).toContain(ID);
      expect(seen).not.toContain('not-to-be-seen');
    } finally {
      child.kill('SIGKILL');
      if (before === undefined) delete process.env[name];
      else process.env[name] = before;
      await fourth.close();
    }
  });

  it('stays while its process lives, which may come back, and no second one is taken for it', async () => {
    await mkdir(join(dir, 'five'));
    const fifth = await open('five');
    // In the place of the file system and its process: what has neither a socket nor an end of its own.
    const [mine, stranger] = [spawn('sleep', ['600']), spawn('sleep', ['600'])];
    try {
      await Promise.all([once(mine, 'spawn'), once(stranger, 'spawn')]);
      const base = await mountsBase('five');
      const at = join(base, ID);
      await mkdir(at);
      await runCommand(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', at]);
      const says = async (pid: number | undefined) => {
        const socket = connect(`${base}.sock`);
        const hello = { protocol: PROTOCOL, id: ID, source: 's3://bucket/some/where', pid };
        socket.write(`${JSON.stringify({ hello })}\n${JSON.stringify({ call: 1, op: 'stat', args: [''] })}\n`);
        const [answer] = await once(socket, 'data', { signal: AbortSignal.timeout(10_000) });
        return { socket, answer: String(answer).split('\n')[0] };
      };
      const stays = '{"answer":1,"result":{"kind":"directory"}}';
      const first = await says(mine.pid);
      expect(first.answer).toBe(stays);
      expect((await says(stranger.pid)).answer).toBe('{"end":true}');
      first.socket.destroy();
      // Not connected, and no other is started or taken.
      expect((await says(stranger.pid)).answer).toBe('{"end":true}');
      expect(await fifth.source(ID)).toBe(at);
      const again = await says(mine.pid);
      expect(again.answer).toBe(stays);
      expect(await fifth.source(ID)).toBe(at);
      expect(await serving('five')).toEqual([]);
      expect((await readMounts()).filter((mount) => mount.path === at)).toHaveLength(1);
      // And when it is gone so is the mount.
      mine.kill('SIGKILL');
      again.socket.destroy();
      await until(async () => !(await readMounts()).some((mount) => mount.path === at));
      expect(await fifth.source(ID)).toBe(at);
      expect(await serving('five')).toHaveLength(1);
    } finally {
      mine.kill('SIGKILL');
      stranger.kill('SIGKILL');
      await fifth.close();
    }
  });

  it('is refused for a bucket that is not there', async () => {
    await expect(mounts.source('fsap-00000002')).rejects.toThrow('the bucket no-such-bucket does not exist');
  });

  /** Where one server mounts. */
  async function mountsBase(name: string): Promise<string> {
    const all = join(dir, 'run/mounts');
    for (const file of (await readdir(all)).filter((one) => one.endsWith('.owner')))
      if ((await readFile(join(all, file), 'utf8')) === join(dir, name))
        return join(all, file.slice(0, -'.owner'.length));
    throw new Error(`${name} has mounted nothing`);
  }

  /** Numbers of the processes behind one server's mounts. */
  async function serving(name: string): Promise<string[]> {
    const found = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const lines = found.map(async (pid) => [pid, await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')]);
    return (await Promise.all(lines))
      .filter(([, line = '']) => line.includes('file-system-worker') && line.includes(join(dir, name)))
      .map(([pid = '']) => pid);
  }
});
