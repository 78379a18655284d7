import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';

const here = join(import.meta.dirname, '..');
const made: string[] = [];
afterAll(() => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true });
});

const nodePackage = `node-${process.platform}-${process.arch}`;

/** A checkout with our bootstrap and one dependency from the disk: a pinned Node that is this very one. */
function checkout(
  task = `process.stdout.write('ran ' + process.argv.slice(2).join(' ') + ' on ' + process.version + '\\n');`,
): string {
  const root = mkdtempSync(join(tmpdir(), 'agentplatform-bootstrap-'));
  made.push(root);
  mkdirSync(join(root, 'scripts'));
  cpSync(join(here, 'bootstrap.mjs'), join(root, 'scripts', 'bootstrap.mjs'));
  cpSync(join(here, 'bootstrap'), join(root, 'scripts', 'bootstrap'), { recursive: true });
  writeFileSync(join(root, 'scripts', 'docs-update.ts'), task);
  const vendor = join(root, 'vendor');
  mkdirSync(join(vendor, 'bin'), { recursive: true });
  symlinkSync(process.execPath, join(vendor, 'bin', 'node'));
  const dependency = { name: nodePackage, version: '24.0.0', bin: { node: 'bin/node' } };
  writeFileSync(join(vendor, 'package.json'), JSON.stringify(dependency));
  const project = {
    name: 'x',
    version: '1.0.0',
    type: 'module',
    optionalDependencies: { [nodePackage]: 'file:vendor' },
  };
  writeFileSync(join(root, 'package.json'), JSON.stringify(project));
  const packages = {
    '': project,
    [`node_modules/${nodePackage}`]: { resolved: 'vendor', link: true },
    vendor: { ...dependency, optional: true },
  };
  writeFileSync(
    join(root, 'package-lock.json'),
    JSON.stringify({ name: 'x', version: '1.0.0', lockfileVersion: 3, requires: true, packages }),
  );
  return root;
}

/** Puts a program of that name first on a PATH. */
function program(root: string, name: string, body: string): string {
  const folder = join(root, `bin-${name}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), `#!/bin/sh\n${body}\n`);
  chmodSync(join(folder, name), 0o755);
  return `${folder}:${process.env.PATH}`;
}

type Manifest = Record<string, unknown> & { packages?: Record<string, object> };

interface Ended {
  status: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

function begin(
  root: string,
  args: string[],
  env: NodeJS.ProcessEnv = {},
): { child: ChildProcess; ended: Promise<Ended> } {
  const clean = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^npm_|^VITEST|^NODE_OPTIONS/.test(name)),
  );
  const child = spawn(process.execPath, [join(root, 'scripts', 'bootstrap.mjs'), ...args], {
    env: { ...clean, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<Ended>((resolve) => {
    const text = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk) => (text.stdout += chunk));
    child.stderr.on('data', (chunk) => (text.stderr += chunk));
    child.on('close', (status, signal) => resolve({ status, signal, ...text }));
  });
  return { child, ended };
}

const bootstrap = (root: string, args: string[], env?: NodeJS.ProcessEnv): Promise<Ended> =>
  begin(root, args, env).ended;

describe('bootstrap', () => {
  it('installs what is locked, runs the task on the pinned Node, and calls npm no second time', async () => {
    const root = checkout();
    const first = await bootstrap(root, ['docs-update', 'a', '--b']);
    expect(first).toMatchObject({ status: 0, stdout: `ran a --b on ${process.version}\n` });
    const PATH = program(root, 'npm', 'echo "npm must not be called" >&2; exit 1');
    expect(await bootstrap(root, ['docs-update', 'again'], { PATH })).toMatchObject({ status: 0, stderr: '' });
    // The control: with another lock file npm is called.
    const lock = join(root, 'package-lock.json');
    writeFileSync(lock, readFileSync(lock, 'utf8').replaceAll('24.0.0', '24.0.1'));
    rmSync(join(root, 'node_modules'), { recursive: true });
    const changed = await bootstrap(root, ['docs-update'], { PATH });
    expect(changed.status).toBe(1);
    expect(changed.stderr).toContain('npm must not be called');
  });

  it('links a folder of the checkout that came since, as after a pull', async () => {
    const root = checkout();
    expect(await bootstrap(root, ['docs-update'])).toMatchObject({ status: 0 });
    mkdirSync(join(root, 'added'));
    writeFileSync(join(root, 'added', 'package.json'), JSON.stringify({ name: 'added', version: '1.0.0' }));
    const change = (name: string, to: (value: Manifest) => Manifest): void =>
      writeFileSync(join(root, name), JSON.stringify(to(JSON.parse(readFileSync(join(root, name), 'utf8')))));
    const dependencies = { added: 'file:added' };
    change('package.json', (project) => ({ ...project, dependencies }));
    change('package-lock.json', (lock) => ({
      ...lock,
      packages: {
        ...lock.packages,
        '': { ...lock.packages?.[''], dependencies },
        'node_modules/added': { resolved: 'added', link: true },
        added: { version: '1.0.0' },
      },
    }));
    expect(await bootstrap(root, ['docs-update'])).toMatchObject({ status: 0 });
    expect(readFileSync(join(root, 'node_modules', 'added', 'package.json'), 'utf8')).toContain('added');
  });

  it('passes the exit code on', async () => {
    const root = checkout('process.exit(7)');
    expect(await bootstrap(root, ['docs-update'])).toMatchObject({ status: 7 });
  });

  it.each(['SIGINT', 'SIGTERM'] as const)('passes %s on and waits for the task', async (signal) => {
    const root = checkout(`
      process.on('${signal}', () => { process.stdout.write('stopping'); setTimeout(() => process.exit(3), 100); });
      process.stdout.write('up'); setInterval(() => {}, 1000);
    `);
    const { child, ended } = begin(root, ['docs-update']);
    await new Promise((resolve) => child.stdout?.once('data', resolve));
    child.kill(signal);
    expect(await ended).toMatchObject({ status: 3, stdout: 'upstopping' });
  });

  it('is reached by the signal that npm gets, because the shell between them makes way', async () => {
    const scripts: Record<string, string> = JSON.parse(readFileSync(join(here, '..', 'package.json'), 'utf8')).scripts;
    const root = checkout(`
      process.on('SIGTERM', () => { process.stdout.write('stopping'); process.exit(0); });
      process.stdout.write('up'); setTimeout(() => process.exit(1), 20_000);
    `);
    const file = join(root, 'package.json');
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), scripts }));
    const child = spawn('npm', ['run', '--silent', 'docs:update'], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = once(child, 'exit');
    const written = async (): Promise<string> =>
      String((await once(child.stdout, 'data', { signal: AbortSignal.timeout(60_000) }))[0]);
    expect(await written()).toBe('up');
    child.kill('SIGTERM');
    expect(await written()).toBe('stopping');
    await ended;
    // `image` runs on Windows, too, whose shell knows no exec; docker passes signals on by itself.
    for (const [name, script] of Object.entries(scripts))
      if (name !== 'image') expect(script).toMatch(/^exec node scripts\/bootstrap\.mjs /);
  });

  it('lets the task know when it is killed itself', async () => {
    const mark = 'gone.txt';
    const root = checkout(
      `
      import { writeFileSync } from 'node:fs';
      process.on('disconnect', () => { writeFileSync('${mark}', 'x'); process.exit(0); });
      process.stdout.write('up'); setTimeout(() => process.exit(1), 20_000);
    `.replace(mark, join(tmpdir(), `agentplatform-gone-${process.pid}`)),
    );
    const file = join(tmpdir(), `agentplatform-gone-${process.pid}`);
    const { child, ended } = begin(root, ['docs-update']);
    await new Promise((resolve) => child.stdout?.once('data', resolve));
    child.kill('SIGKILL');
    await ended;
    await expect.poll(() => readFileSync(file, 'utf8'), { timeout: 5000 }).toBe('x');
    rmSync(file);
  });

  it('installs once when started twice at the same time', async () => {
    const root = checkout();
    const calls = join(root, 'calls');
    const real = (await import('node:child_process'))
      .execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' })
      .trim();
    const PATH = program(root, 'npm', `echo call >> ${calls}; sleep 1; exec ${real} "$@"`);
    const both = await Promise.all([1, 2].map((index) => bootstrap(root, ['docs-update', `${index}`], { PATH })));
    expect(both.map(({ status }) => status)).toEqual([0, 0]);
    expect(readFileSync(calls, 'utf8')).toBe('call\n');
    expect(both.map(({ stderr }) => stderr).join()).toContain('Another start installs the packages');
  });

  it('takes over when the one that installs is killed', async () => {
    const root = checkout();
    const PATH = program(root, 'npm', 'exec sleep 30');
    const { child, ended } = begin(root, ['docs-update'], { PATH });
    await sleep(500);
    const other = bootstrap(root, ['docs-update', 'other']);
    await sleep(500);
    child.kill('SIGKILL');
    expect(await other).toMatchObject({ status: 0, stdout: expect.stringContaining('ran other') });
    await ended;
  });

  it('ends npm and says so when it is interrupted', async () => {
    const root = checkout();
    const pid = join(root, 'pid');
    const PATH = program(root, 'npm', `echo $$ > ${pid}; exec sleep 30`);
    const { child, ended } = begin(root, ['docs-update'], { PATH });
    await expect.poll(() => readFileSync(pid, 'utf8'), { timeout: 5000 }).toMatch(/\d+\n/);
    child.kill('SIGINT');
    expect(await ended).toMatchObject({
      status: 130,
      stderr: expect.stringContaining('the next run takes it up again'),
    });
    expect(() => process.kill(Number(readFileSync(pid, 'utf8')), 0)).toThrow();
  });

  it.each([
    [
      'npm error code EAI_AGAIN\nnpm error request to https://r/x failed, reason: getaddrinfo EAI_AGAIN r',
      'The npm registry cannot be reached',
    ],
    ['npm ERR! code UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'NODE_EXTRA_CA_CERTS'],
    ['npm error code ENOSPC\nnpm error ENOSPC: no space left on device', 'The disk is full'],
    [
      "npm error code EACCES\nnpm error path /x/node_modules\nnpm error Error: EACCES: permission denied, mkdir '/x'",
      'sudo chown',
    ],
    [
      'npm error code EUSAGE\nnpm error `npm ci` can only install packages when in sync',
      'git checkout package-lock.json',
    ],
    ['something nobody has seen', 'Try "npm ci"'],
  ])('explains %j', async (output, remedy) => {
    const root = checkout();
    writeFileSync(join(root, 'output'), output);
    const PATH = program(root, 'npm', `cat ${join(root, 'output')} >&2; exit 1`);
    const { status, stderr } = await bootstrap(root, ['docs-update'], { PATH });
    expect(status).toBe(1);
    expect(stderr).toContain(output.split('\n').at(-1));
    expect(stderr).toContain(remedy);
  });

  it('says what to install when there is no npm', async () => {
    const root = checkout();
    const { status, stderr } = await bootstrap(root, ['docs-update'], { PATH: join(root, 'nowhere') });
    expect([status, stderr]).toEqual([1, expect.stringContaining('sudo apt-get install npm')]);
  });

  it('lists its tasks', async () => {
    const root = checkout();
    expect(await bootstrap(root, [])).toMatchObject({ status: 0, stderr: expect.stringContaining('docs-update') });
    expect(await bootstrap(root, ['nonsense'])).toMatchObject({ status: 2, stderr: expect.stringContaining('Usage') });
    expect(await bootstrap(root, ['toString'])).toMatchObject({ status: 2 });
  });
});
