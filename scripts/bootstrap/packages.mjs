import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { withLock } from './lock.mjs';
import { withProgress } from './progress.mjs';
import { CommandFailed, run } from './run.mjs';
import { Stop } from './stop.mjs';

const nodePackage = `node_modules/node-${process.platform}-${process.arch}`;

/**
 * Installs what package-lock.json names, unless it is there, and returns the path of the pinned Node.
 * The usual case reads two files and calls nobody.
 */
export async function ensurePackages(root) {
  const wanted = fingerprint(root);
  if (!isReady(root, wanted)) {
    const waiting = () =>
      process.stderr.write('Another start installs the packages of this checkout; waiting for it.\n');
    await withLock(root, () => (isReady(root, wanted) ? undefined : install(root)), waiting);
    writeFileSync(stampFile(root), wanted);
  }
  return pinnedNode(root);
}

const stampFile = (root) => join(root, 'node_modules', '.agentplatform-stamp');

/** Changes when another set of packages is wanted, or the checkout moved to another kind of machine. */
function fingerprint(root) {
  const lock = readFileSync(join(root, 'package-lock.json'));
  return createHash('sha256').update(`${process.platform} ${process.arch} `).update(lock).digest('hex');
}

function isReady(root, wanted) {
  try {
    return readFileSync(stampFile(root), 'utf8') === wanted && pinnedNode(root) !== undefined;
  } catch {
    return false;
  }
}

async function install(root) {
  if (!matchesLock(root)) {
    await withProgress('Installing packages from npm (a minute or two the first time)', () => npm(root, ['ci']));
  }
  const node = pinnedNode(root);
  const version = (
    await run(node, ['--version'], { timeoutMs: 30_000 }).catch((error) => refuseNode(node, error))
  ).trim();
  if (!/^v(2[4-9]|[3-9]\d)\./.test(version)) throw new Stop(`${node} is Node ${version}; 24 or newer was expected.`);
  // An npm on an older Node leaves out optional packages that want a newer one; on the pinned Node they come.
  if (Number.parseInt(process.versions.node, 10) < 24) {
    await withProgress('Completing them for the pinned Node', () => npm(root, ['install', '--no-save'], node));
  }
}

function refuseNode(node, error) {
  throw new Stop(
    `The pinned Node at ${node} does not run on this machine:\n${lastLines(error.output ?? String(error))}\n` +
      'It needs glibc 2.28 or newer (Debian 10, Ubuntu 18.10); Alpine and other musl systems need their own Node 24.',
  );
}

/** Whether npm's own record of what it installed agrees with the lock file, as after an `npm install` by hand. */
function matchesLock(root) {
  const packages = (path) => JSON.parse(readFileSync(join(root, path), 'utf8')).packages ?? {};
  try {
    const installed = packages('node_modules/.package-lock.json');
    const wanted = Object.entries(packages('package-lock.json')).filter(([path]) => path.includes('node_modules/'));
    // Optional packages of other machines are rightly absent; the pinned Node of this one must not be.
    return wanted.every(([path, { version, optional, peer, link }]) =>
      // A folder of the checkout has no version: its link is there or not.
      link
        ? existsSync(join(root, path))
        : installed[path]
          ? installed[path].version === version
          : (optional && path !== nodePackage) || peer,
    );
  } catch {
    return false;
  }
}

/** Runs npm, on the Node that runs this or on another one. */
async function npm(root, command, node) {
  // Options name what a user's npmrc or NODE_ENV could have turned around: development and optional packages are needed
  // (the pinned Node is one of the latter), packages' install scripts are not.
  const options = [
    ...command,
    '--ignore-scripts',
    '--include=dev',
    '--include=optional',
    '--include=peer',
    '--engine-strict=false',
  ];
  const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error', '--no-progress'];
  const network = [
    '--fetch-retries=2',
    '--fetch-retry-mintimeout=1000',
    '--fetch-retry-maxtimeout=10000',
    '--fetch-timeout=60000',
  ];
  const args = [...options, ...quiet, ...network];
  const execPath = process.env.npm_execpath;
  // Under pnpm or yarn that variable names them; they would not read package-lock.json.
  const own = execPath !== undefined && /npm-cli\.c?js$/.test(execPath) && existsSync(execPath);
  try {
    await run(own ? (node ?? process.execPath) : 'npm', own ? [execPath, ...args] : args, {
      cwd: root,
      timeoutMs: 20 * 60_000,
      env: node ? { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ''}` } : process.env,
    });
  } catch (error) {
    throw error instanceof CommandFailed ? new Stop(npmTrouble(root, error.output)) : error;
  }
}

/** Known ways in which `npm ci` fails, each with its remedy; the first that matches the output is told. */
const npmTroubles = [
  [/spawn npm ENOENT/, 'npm is not installed. On Debian or Ubuntu: sudo apt-get install npm'],
  [
    /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|network request|Socket timeout/,
    'The npm registry cannot be reached. Check the internet connection; behind a proxy set HTTPS_PROXY=http://host:port (or npm config set proxy), with a registry mirror npm config set registry <url>. Then run the same command again.',
  ],
  [
    /CERT|self.signed|unable to get (local )?issuer/i,
    'The TLS certificate of the npm registry is not trusted here, usually because a proxy opens the connection. Set NODE_EXTRA_CA_CERTS to the file with its certificate and run the same command again.',
  ],
  [/ENOSPC/, 'The disk is full; about 1.5 GB are needed. Make room and run the same command again.'],
  [
    /EACCES|EPERM|EROFS/,
    'A file of this checkout cannot be written. If an earlier run was made with sudo: sudo chown -R "$USER" . — then run the same command again.',
  ],
  [
    /EUSAGE|EINTEGRITY/,
    'package-lock.json does not fit. Take it from a clean checkout (git checkout package-lock.json) or run npm install.',
  ],
];

function npmTrouble(root, output) {
  const known = npmTroubles.find(([pattern]) => pattern.test(output));
  const remedy = known ? known[1] : `Try "npm ci" in ${root} to see more.`;
  return `Installing the packages failed.\n${lastLines(output)}\n\n${remedy}`;
}

const lastLines = (text) =>
  text
    .trim()
    .split('\n')
    .filter((line) => !/complete log of this run|\/_logs\/|^(npm (err!|error))?\s*$/i.test(line))
    .slice(-12)
    .map((line) => `  ${line}`)
    .join('\n');

/** Path of the Node that package.json pins; a machine that it is not published for may bring its own of the same age. */
function pinnedNode(root) {
  const path = join(root, nodePackage, 'bin', 'node');
  try {
    accessSync(path, constants.X_OK);
    return path;
  } catch {
    if (Number(process.versions.node.split('.')[0]) >= 24) return process.execPath;
    throw new Stop(
      `package.json pins no Node for ${process.platform} ${process.arch}, and this one is ${process.versions.node}. ` +
        'Install Node 24 or newer and run the same command again.',
    );
  }
}
