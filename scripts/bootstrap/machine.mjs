import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { withLock } from './lock.mjs';
import { withProgress } from './progress.mjs';
import { CommandFailed, run } from './run.mjs';
import { Stop } from './stop.mjs';

const serving = ['start', 'platform', 'test', 'bench'];
const testing = ['test', 'bench'];

/** What the machine must have beside Node: the package of Debian and Ubuntu, a file that shows it is there, what for. */
const machineParts = [
  { part: 'runc', file: 'runc', tasks: serving, why: 'runs each session in a container of its own' },
  {
    part: 'containernetworking-plugins',
    file: '/usr/lib/cni/host-local',
    tasks: serving,
    why: 'gives each session a network of its own',
  },
  { part: 'tini', file: '/usr/bin/tini-static', tasks: serving, why: 'reaps what the processes of a session leave' },
  { part: 'nftables', file: 'nft', tasks: serving, why: 'closes those networks to what a session must not reach' },
  { part: 'e2fsprogs', file: 'mkfs.ext4', tasks: serving, why: 'gives each session a disk of bounded size' },
  { part: 'iproute2', file: 'ip', tasks: ['test'], why: 'makes networks that tests attack from' },
  {
    part: 'busybox-static',
    file: '/bin/busybox',
    tasks: ['test'],
    why: 'the smallest image that tests make sandboxes of',
  },
  { part: 'nginx', file: 'nginx', tasks: testing, why: 'the proxy in front of the platform' },
  { part: 'wrk', file: 'wrk', tasks: ['bench'], why: 'offers the load of the benchmarks' },
  {
    part: 'docker.io',
    file: 'dockerd',
    tasks: ['test'],
    why: 'a daemon of the tests themselves for the provider docker',
  },
  { part: 'skopeo', file: 'skopeo', tasks: ['test'], why: 'a client for images that was written elsewhere' },
  { part: 'buildah', file: 'buildah', tasks: ['test'], why: 'builds an image as users do who have no Docker' },
  { part: 'golang-go', file: 'go', tasks: ['test'], why: 'builds gVisor, the stronger isolation' },
  { part: 'gcc', file: 'gcc', tasks: ['test'], why: 'compiles the agent of that image' },
  { part: 'libc6-dev', file: '/usr/include/stdio.h', tasks: ['test'], why: 'what that agent is linked with' },
  { part: 'tmux', file: 'tmux', tasks: ['test'], why: 'a real terminal around agentcore shell' },
  { part: 'xvfb', file: 'Xvfb', tasks: ['test'], why: 'a display for the window of handset preview' },
  { part: 'python3', file: 'python3', tasks: ['test'], why: 'tests with clients and agents in Python' },
  {
    part: 'python3-pip',
    file: 'pip3',
    tasks: ['test'],
    why: 'installs boto3 and a PostgreSQL for the tests, in folders of their own',
  },
];

/**
 * What is to be installed on this machine for `task`, as root on Debian and its kin. Who is not root is told the choices and
 * nothing is installed; `--sandbox process` is the only way to run without isolation.
 * @param {string} root
 * @param {string} task
 * @param {string[]} args
 * @param {Machine} machine
 * @returns {typeof machineParts}
 */
export function missingParts(root, task, args, machine = thisMachine()) {
  if (!serving.includes(task) || machine.platform !== 'linux') return [];
  if (!testing.includes(task) && namesSandbox(root, args, machine.env)) return [];
  const missing = machineParts.filter(({ tasks, file }) => tasks.includes(task) && !machine.has(file));
  if (!machine.isRoot) {
    if (!testing.includes(task)) throw new Stop(notRoot(task, missing), 3);
    machine.say('Not root: tests that need real sandboxes are skipped, each by name, at the end.\n');
    return [];
  }
  if (missing.length === 0 || machine.has('apt-get')) return missing;
  const said = notDebian(missing);
  if (!testing.includes(task)) throw new Stop(said, 3);
  machine.say(`${said}\n`);
  return [];
}

/**
 * Installs those that are still missing when its turn comes, and says so first.
 * @param {typeof machineParts} parts
 * @param {Machine} machine
 */
export async function installParts(parts, machine = thisMachine()) {
  if (parts.length === 0) return;
  await withLock(
    'apt',
    () =>
      aptInstall(
        parts.filter(({ file }) => !machine.has(file)),
        machine,
      ),
    () => machine.say('Another start installs packages; waiting for it.\n'),
  );
}

/**
 * What `missingParts` and `installParts` see and do; a test hands in another machine.
 * @typedef {object} Machine
 * @property {string} platform
 * @property {Record<string, string | undefined>} env
 * @property {boolean} isRoot
 * @property {(file: string) => boolean} has
 * @property {(text: string) => unknown} say
 * @property {(args: string[]) => Promise<string>} aptGet
 */

/** @returns {Machine} */
function thisMachine() {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/sbin'];
  return {
    platform: process.platform,
    env: process.env,
    isRoot: process.getuid?.() === 0,
    /** Whether a file exists, looked up like a command when it has no folder. */
    has: (file) =>
      file.startsWith('/') ? existsSync(file) : folders.some((folder) => folder && existsSync(join(folder, file))),
    say: (text) => process.stderr.write(text),
    aptGet: (args) =>
      run(
        'apt-get',
        ['-o', 'DPkg::Lock::Timeout=300', '-o', 'Acquire::Retries=2', '-o', 'Acquire::http::Timeout=30', ...args],
        {
          env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' },
          timeoutMs: 15 * 60_000,
        },
      ),
  };
}

/** Whether the user chose a sandbox provider by name; then the platform itself says whether it works. */
function namesSandbox(root, args, env) {
  const flag = (name) => {
    const at = args.findIndex((arg) => arg === name || arg.startsWith(`${name}=`));
    return at < 0 ? undefined : args[at].slice(name.length + 1) || args[at + 1];
  };
  const chosen =
    flag('--sandbox') ??
    env.AGENTPLATFORM_SANDBOX_PROVIDER ??
    providerInFile(root, flag('--data') ?? env.AGENTPLATFORM_DATA);
  return chosen !== undefined && chosen !== 'auto';
}

function providerInFile(root, data = '.agentplatform') {
  try {
    return JSON.parse(readFileSync(resolve(root, data, 'config.json'), 'utf8'))?.sandbox?.provider;
  } catch {
    // No file, or one that is wrong: the platform tells that better.
    return undefined;
  }
}

async function aptInstall(parts, machine) {
  if (parts.length === 0) return;
  const width = Math.max(...parts.map(({ part }) => part.length));
  const list = parts.map(({ part, why }) => `  ${part.padEnd(width)}  ${why}\n`).join('');
  machine.say(`These packages of this distribution are needed; installing them with apt-get:\n${list}`);
  let output = '';
  try {
    output = await withProgress('Reading the package lists (apt-get update)', () => machine.aptGet(['update']));
    const install = ['install', '-y', '--no-install-recommends', ...parts.map(({ part }) => part)];
    output = await withProgress('Installing them (apt-get install)', () => machine.aptGet(install));
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    throw new Stop(aptTrouble(parts, output + error.output), 3);
  }
  const still = parts.filter(({ file }) => !machine.has(file));
  if (still.length > 0) {
    const names = still.map(({ part, file }) => `${part} (looked for ${file})`).join(', ');
    throw new Stop(`apt-get installed the packages, but something is still missing: ${names}.`, 3);
  }
}

/** Known ways in which apt-get fails, each with its remedy. */
const aptTroubles = [
  [
    /resolving|Could not connect|Unable to connect|Connection (failed|timed out|refused)|Network is unreachable|Failed to fetch/i,
    'The package mirror cannot be reached. Check the internet connection; behind a proxy put Acquire::http::Proxy "http://host:port"; into /etc/apt/apt.conf.d/proxy.',
  ],
  [/dpkg was interrupted/, 'An earlier installation was interrupted: run dpkg --configure -a.'],
  [
    /Unable to locate package|has no installation candidate/,
    'This distribution does not offer a package of that name in its enabled sections (on Ubuntu: add-apt-repository universe).',
  ],
  [/No space left/, 'The disk is full: make room.'],
  [/Could not get lock|Unable to acquire/, 'Another program installs packages: wait for it.'],
];

function aptTrouble(parts, output) {
  const known = aptTroubles.find(([pattern]) => pattern.test(output));
  const names = parts.map(({ part }) => part).join(' ');
  const told = output.split('\n').filter((line) => /^[EW]:|no end after/.test(line));
  return (
    `Installing ${names} failed.\n${told
      .slice(-8)
      .map((line) => `  ${line}\n`)
      .join('')}\n` +
    `${known ? known[1] : ''} Then run the same command again, or install them yourself: apt-get update && apt-get install ${names}`.trim()
  );
}

function notRoot(task, missing) {
  const command = task === 'start' ? 'npm start' : `npm run ${task}`;
  const also = missing.length > 0 ? ' and installs what this machine lacks for it' : '';
  return (
    'You are not root. The platform needs root to make a sandbox for each session. Nothing was started. You have two choices:\n' +
    `  "sudo ${command}" starts the platform as root${also}.\n` +
    `  "${command} -- --sandbox process" runs agents as plain processes of this user, with NO isolation from your files, your ` +
    'network and each other. Use it only to debug an agent that you wrote.'
  );
}

function notDebian(missing) {
  const list = missing.map(({ part, why }) => `  ${part} – ${why}\n`).join('');
  return (
    `This machine lacks what isolated sessions need:\n${list}` +
    'The platform installs these only on Debian, Ubuntu and systems like them. Install them with the package manager of this ' +
    'system (Fedora: dnf install runc containernetworking-plugins tini-static nftables e2fsprogs). Then run the same command again. ' +
    'Or add "-- --sandbox process" to run agents without isolation. Use that only to debug an agent that you wrote.'
  );
}
