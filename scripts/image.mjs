#!/usr/bin/env node
// npm run image: the platform in one container, for machines without Linux. Needs Docker and any Node >= 18, and none of the npm packages.
import { spawn } from 'node:child_process';
import { get } from 'node:http';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { debootstrapBase } from './image-base.mjs';
import { PRIVILEGES } from './image-privileges.mjs';

const HELP = `Usage: npm run image -- [options]

Builds the image of the platform, starts one container of it, and waits until it answers. What it stores stays in a volume.

  --port <port>    port of this machine, on 127.0.0.1 (4100)
  --name <name>    name of image, container and volume (agentplatform)
  --base <image>   the image of Debian 12 to build on (debian:bookworm-slim); "debootstrap" makes one without an image registry, on Linux as root
  --stop           ends the container; the volume stays
  --help

Examples:
  npm run image                     # build, or update, and start
  npm run image -- --stop           # end it
  eval "$(docker exec agentplatform npx agentcore env --keys)"   # point AWS SDKs of this shell at it
`;

/** Ten minutes: the first start sets up what the container has not. */
const START_MS = 600_000;
const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** A failure that the user is told in a sentence. */
class Failed extends Error {}

/** Runs docker. Resolves with what it printed where `quiet`, else what it prints is shown. Rejects with Failed when it cannot be run or fails. */
function docker(args, { quiet = false } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn('docker', args, { stdio: ['ignore', quiet ? 'pipe' : 'inherit', quiet ? 'pipe' : 'inherit'] });
    let [out, errors] = ['', ''];
    child.stdout?.setEncoding('utf8').on('data', (text) => (out += text));
    child.stderr?.setEncoding('utf8').on('data', (text) => (errors += text));
    child.once('error', () =>
      reject(
        new Failed(
          'The command docker cannot be run. Install Docker (https://docs.docker.com/get-docker/) and start it.',
        ),
      ),
    );
    child.once('close', (status) => {
      if (status === 0) resolve(out.trim());
      else reject(new Failed(`docker ${args[0]} failed${errors ? `: ${errors.trim()}` : ' (see above)'}`));
    });
  });
}

/** Whether the container runs, or undefined when there is none of that name. */
async function running(name) {
  const state = await docker(['ps', '--all', '--filter', `name=^/?${name}$`, '--format', '{{.State}}'], {
    quiet: true,
  });
  return state === '' ? undefined : state === 'running';
}

async function remove(name) {
  if ((await running(name)) === undefined) return false;
  await docker(['stop', '--time', '30', name], { quiet: true });
  await docker(['rm', name], { quiet: true });
  return true;
}

/** Undefined when nobody answers. Not by fetch, which refuses some ports that a platform may have, such as 6000. */
function statusOf(url) {
  return new Promise((resolve) => {
    get(url, { agent: false }, (answer) => resolve(answer.resume().statusCode)).on('error', () => resolve(undefined));
  });
}

/** Waits for the platform to be ready. Rejects with Failed when its container ends, or after START_MS. */
async function ready(name, url) {
  const began = Date.now();
  for (let told = began; Date.now() - began < START_MS; await sleep(500)) {
    if ((await statusOf(`${url}/readyz`)) === 200) return;
    if (!(await running(name)))
      throw new Failed(`The container ended before the platform was ready. See its log: docker logs ${name}`);
    if (Date.now() - told >= 10_000) {
      told = Date.now();
      process.stderr.write(`… Waiting for the platform, ${Math.round((told - began) / 1000)} s\n`);
    }
  }
  throw new Failed(`The platform did not answer at ${url} within ten minutes. See its log: docker logs ${name}`);
}

/** Makes the base unless it is there. */
async function madeBase(name) {
  const there = await docker(['images', '--quiet', name], { quiet: true });
  if (there === '')
    await debootstrapBase(name).catch((error) => {
      throw new Failed(`The base was not made. ${error.message}`);
    });
  return name;
}

async function main(argv) {
  const { values } = parseArgs({
    args: argv,
    options: {
      port: { type: 'string', default: '4100' },
      name: { type: 'string', default: 'agentplatform' },
      base: { type: 'string' },
      stop: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const { port, name, base } = values;
  if (values.help) return process.stdout.write(HELP);
  if (!/^[1-9]\d{0,4}$/.test(port) || Number(port) > 65_535)
    throw new Failed(`--port is ${port}; give a number from 1 to 65535.`);
  if (values.stop) {
    const was = await remove(name);
    return process.stdout.write(was ? `${name} has ended. Its volume is kept.\n` : `There is no container ${name}.\n`);
  }
  const from = base === 'debootstrap' ? await madeBase(`${name}-base`) : base;
  await docker(['build', '--tag', name, ...(from ? ['--build-arg', `BASE=${from}`] : []), root]);
  await remove(name);
  const published = ['--publish', `127.0.0.1:${port}:${port}`];
  const volume = ['--volume', `${name}:/opt/agentplatform/.agentplatform`];
  await docker(['run', '--detach', ...PRIVILEGES, '--name', name, ...published, ...volume, name, '--port', port], {
    quiet: true,
  });
  const url = `http://127.0.0.1:${port}`;
  await ready(name, url);
  process.stdout.write(
    `The platform serves on ${url}, in the container ${name}.\n` +
      `  an agent:  docker exec -it ${name} sh -c 'cd examples/python-plain && npx agentcore deploy && npx agentcore invoke "{\\"prompt\\":\\"hi\\"}"'\n` +
      `  AWS SDKs:  eval "$(docker exec ${name} npx agentcore env --keys)"\n` +
      `  its log:   docker logs --follow ${name}\n` +
      `  end it:    npm run image -- --stop\n`,
  );
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  const usage = typeof error?.code === 'string' && error.code.startsWith('ERR_PARSE_ARGS');
  if (!(error instanceof Failed) && !usage) throw error;
  process.stderr.write(`${error.message}${usage ? '\nnpm run image -- --help' : ''}\n`);
  process.exitCode = usage ? 2 : 1;
}
