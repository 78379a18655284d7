import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { PRIVILEGES } from './image-privileges.mjs';

let dir: string;
let server: Server;
let port: string;
let asked: number;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'image-'));
  asked = 0;
  // The platform of the container: ready when it is asked for the second time.
  server = createServer((_request, response) => response.writeHead(++asked > 1 ? 200 : 503).end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  port = String(typeof address === 'object' && address ? address.port : 0);
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await rm(dir, { recursive: true, force: true });
});

/** A docker that notes its commands and does what `script` says (lines of sh, `$1` is the command). */
async function docker(script: string): Promise<void> {
  const program = join(dir, 'docker');
  await writeFile(program, `#!/bin/sh\nprintf '%s\\n' "$*" >> '${dir}/calls'\n${script}\n`);
  await chmod(program, 0o755);
}

function run(...args: string[]): Promise<{ status: unknown; out: string; err: string }> {
  const env = { ...process.env, PATH: `${dir}${delimiter}/usr/bin${delimiter}/bin` };
  const argv = [join(import.meta.dirname, 'image.mjs'), ...args];
  return new Promise((resolve) => {
    execFile(process.execPath, argv, { env }, (error, out, err) => resolve({ status: error?.code ?? 0, out, err }));
  });
}

const calls = async (): Promise<string[]> =>
  (await readFile(join(dir, 'calls'), 'utf8').catch(() => '')).trim().split('\n');

const RUNS =
  'case "$1" in ps) [ -e "$(dirname "$0")/runs" ] && echo running;; run) touch "$(dirname "$0")/runs";; rm) rm "$(dirname "$0")/runs";; esac; true';

it('builds the image, starts one container on the loopback address and waits until the platform is ready', async () => {
  await docker(RUNS);
  const { status, out } = await run('--port', port, '--name', 'mine', '--base', 'debian:12');
  expect([status, asked]).toEqual([0, 2]);
  const [build, seen, start] = await calls();
  expect(build).toMatch(/^build --tag mine --build-arg BASE=debian:12 \//);
  expect(seen).toContain('name=^/?mine$');
  expect(start).toBe(
    `run --detach ${PRIVILEGES.join(' ')} --name mine --publish 127.0.0.1:${port}:${port} --volume mine:/opt/agentplatform/.agentplatform mine --port ${port}`,
  );
  expect(out).toContain(`serves on http://127.0.0.1:${port}, in the container mine`);
});

it('replaces a container of before, ends it when asked, and never removes the volume', async () => {
  await docker(RUNS);
  await writeFile(join(dir, 'runs'), '');
  expect((await run('--port', port)).status).toBe(0);
  expect(await calls()).toEqual(expect.arrayContaining(['stop --time 30 agentplatform', 'rm agentplatform']));
  expect((await run('--stop')).out).toBe('agentplatform has ended. Its volume is kept.\n');
  expect((await run('--stop')).out).toBe('There is no container agentplatform.\n');
  expect((await calls()).join('\n')).not.toMatch(/volume rm|--volumes|rm -v/);
});

it.each([
  ['a build that fails', 'case "$1" in build) exit 7;; esac', 1, /^docker build failed/],
  [
    'a container that ends',
    'case "$1" in ps) echo exited;; esac',
    1,
    /ended before the platform was ready.*docker logs agentplatform/,
  ],
])('says it in a sentence: %s', async (_what, script, status, words) => {
  await docker(script);
  server.close();
  server.closeAllConnections();
  const ended = await run('--port', port);
  expect(ended.status).toBe(status);
  expect(ended.err).toMatch(words);
  expect(ended.err).not.toContain('    at ');
});

it.each([
  ['no docker', [], 1, 'Install Docker'],
  ['a port that is none', ['--port', '99999'], 1, 'from 1 to 65535'],
  ['an unknown option', ['--prot', '1'], 2, "Unknown option '--prot'"],
])('refuses in a sentence: %s', async (_what, args, status, words) => {
  const env = { ...process.env, PATH: dir };
  const argv = [join(import.meta.dirname, 'image.mjs'), ...args];
  const ended = await new Promise<{ code: unknown; err: string }>((resolve) => {
    execFile(process.execPath, argv, { env }, (error, _out, err) => resolve({ code: error?.code, err }));
  });
  expect(ended.code).toBe(status);
  expect(ended.err).toContain(words);
});

it('waits for the platform at a port that browsers refuse, too', async () => {
  await docker(RUNS);
  server.close();
  // Of those that fetch refuses, whichever is free.
  for (const refused of [6000, 6566, 6679, 10080]) {
    const taken = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(true));
      server.listen(refused, '127.0.0.1', () => resolve(false));
    });
    if (!taken) return expect((await run('--port', String(refused))).status).toBe(0);
  }
  throw new Error('None of the ports is free.');
});

it('makes the base by debootstrap where there is no image registry, once', async () => {
  await docker(`case "$1" in images) cat "${dir}/base" 2>/dev/null;; import) cat > "${dir}/base";; esac; ${RUNS}`);
  const tool = (name: string, script: string): Promise<void> =>
    writeFile(join(dir, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  await tool(
    'debootstrap',
    `shift 2; mkdir -p "$2/etc/ssl/certs"; echo "$1 $3" > "$2/made"; printf '%s\\n' "$3" >> '${dir}/mirrors'`,
  );
  expect((await run('--port', port, '--base', 'debootstrap')).status).toBe(0);
  expect((await run('--port', port, '--base', 'debootstrap')).status).toBe(0);
  expect((await calls()).filter((call) => /^(import|build)/.test(call))).toEqual([
    'import - agentplatform-base',
    ...Array(2).fill(expect.stringContaining('--build-arg BASE=agentplatform-base ')),
  ]);
  expect(await readFile(join(dir, 'base'), 'latin1')).toContain('bookworm http://deb.debian.org/debian');
  expect(await readFile(join(dir, 'mirrors'), 'utf8')).toBe('http://deb.debian.org/debian\n');
});

it('says in a sentence that the base was not made', async () => {
  await docker(RUNS);
  await writeFile(join(dir, 'debootstrap'), '#!/bin/sh\nexit 3\n', { mode: 0o755 });
  const { status, err } = await run('--port', port, '--base', 'debootstrap');
  expect([status, err]).toEqual([1, 'The base was not made. debootstrap ended with status 3 (see above).\n']);
});
