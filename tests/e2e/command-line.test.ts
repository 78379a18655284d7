import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DockerDaemon } from '../../packages/platform/src/kernel/sandbox/testing/docker-daemon.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const root = join(import.meta.dirname, '../..');
const examples = join(root, 'examples');
const PATH = `${dirname(process.execPath)}:${process.env.PATH}`;

let platform: TestPlatform;
let work: string;
beforeAll(async () => {
  platform = await startTestPlatform();
  work = await mkdtemp(join(tmpdir(), 'command-line-'));
});
afterAll(async () => {
  await platform?.dispose();
  await rm(work, { recursive: true, force: true });
});

/** Runs `agentcore` as a user would in a shell after `eval "$(agentcore env)"`. */
async function agentcore(cwd: string, args: string[], { stdin = '', env = platform.env } = {}) {
  const child = spawn(process.execPath, [join(root, 'packages/cli/bin/agentcore.mjs'), ...args], {
    cwd,
    // The home folder is empty; what the tool keeps there to start faster is not what is tested.
    env: { PATH, HOME: work, XDG_CACHE_HOME: join(root, '.cache'), ...env },
  });
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text;
    });
  }
  child.stdin.end(stdin);
  const [code] = await once(child, 'close');
  return { code, ...texts };
}

async function must(cwd: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await agentcore(cwd, args);
  expect(code, stderr).toBe(0);
  return stdout;
}

describe('each example', () => {
  it.each([
    ['hello-agent', 'Hello there! You said "hi". This is call 1 of this session.\n', 'call 2 of this session'],
    ['python-plain', 'Hello! You said "hi". This is call 1 of this session.\n', 'call 2 of this session'],
    ['python-agent', 'Hello! You said "hi". This is call 1 of this session.\n', 'call 2 of this session'],
    ['typescript-plain', /^\{"echo":\{"prompt":"hi"\},"calls":1,"session":"[0-9a-f-]{36}"\}\n$/, '"calls":2'],
    ['framework-agent', 'That has 2 letters. You have asked 1 time.\n', 'You have asked 2 times.'],
  ])('%s deploys, answers, remembers its session, and is not deployed twice', async (name, first, second) => {
    const folder = join(examples, name);
    if (existsSync(join(folder, 'package-lock.json')) && !existsSync(join(folder, 'node_modules'))) {
      execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder, env: { ...process.env, PATH } });
    }
    expect(JSON.parse(await must(folder, 'deploy', '--json'))).toMatchObject({ status: 'READY', changed: true });
    expect(await must(folder, 'invoke', '{"prompt":"hi"}')).toEqual(
      typeof first === 'string' ? first : expect.stringMatching(first),
    );
    expect(await must(folder, 'invoke', '{"prompt":"hi"}', '--continue')).toContain(second);
    expect(JSON.parse(await must(folder, 'status', '--json')).sessions).toHaveLength(1);
    expect(await must(folder, 'stop-session')).toContain('has ended');
    expect(await must(folder, 'invoke', '{"prompt":"hi"}', '--continue')).not.toContain(second);
    expect(JSON.parse(await must(folder, 'deploy', '--json'))).toMatchObject({ changed: false });
    expect(await must(folder, 'destroy', '--yes')).toContain('is removed');
    expect((await agentcore(folder, ['invoke', '{}'])).code).toBe(4);
  });
});

describe('a new project', () => {
  it.each(['typescript', 'python'])('in %s goes from create to an answer', async (language) => {
    const name = `my-${language}`;
    await must(work, 'create', name, '--language', language);
    await must(join(work, name), 'deploy');
    expect(await must(join(work, name), 'invoke', '--prompt', 'hi')).toContain('You said "hi". This is call 1');
    // From anywhere, by the name that was chosen.
    expect(await must(work, 'invoke', '--prompt', 'hi', '--agent', name)).toContain('call 1');
  });

  it('shows what the agent printed, and its failure, with the exit status for it', async () => {
    const folder = join(work, 'my-python');
    await writeFile(
      join(folder, 'main.py'),
      `import sys
print("about to give up", flush=True)
sys.exit(3)
`,
    );
    await must(folder, 'deploy');
    const { code, stdout, stderr } = await agentcore(folder, ['invoke', '{}']);
    expect([code, stdout]).toEqual([6, '']);
    expect(stderr).toContain('about to give up');
  });
});

describe('file systems', () => {
  it('are those that agentcore.json names, and stay at the next deploy when it names them no more', async () => {
    const folder = join(work, 'keeper');
    await must(work, 'create', 'keeper', '--language', 'python');
    const main = join(folder, 'main.py');
    const source = await readFile(main, 'utf8');
    const noting = 'with open("/mnt/kept/n", "a+") as notes: notes.write("x"); notes.seek(0); yield notes.read() + " "';
    await writeFile(main, source.replace('yield "Hello! "', noting));
    const description = join(folder, 'agentcore.json');
    const file = await readFile(description, 'utf8');
    const filesystems = [{ sessionStorage: { mountPath: '/mnt/kept' } }];
    await writeFile(description, JSON.stringify({ ...JSON.parse(file), filesystems }));
    await must(folder, 'deploy');
    expect(await must(folder, 'invoke', '{}')).toMatch(/^x /);
    await must(folder, 'stop-session');
    expect(await must(folder, 'invoke', '{}', '--continue')).toMatch(/^xx /);

    await writeFile(description, file);
    expect(JSON.parse(await must(folder, 'deploy', '--json'))).toMatchObject({ changed: false });
    await writeFile(main, `${await readFile(main, 'utf8')}\n# Changed.\n`);
    expect(JSON.parse(await must(folder, 'deploy', '--json'))).toMatchObject({ agentRuntimeVersion: '2' });
    expect(await must(folder, 'invoke', '{}')).toMatch(/^x /);
  });
});

describe('logs', () => {
  it('shows lines of live sessions and of ended ones', async () => {
    const folder = join(examples, 'hello-agent');
    await must(folder, 'deploy');
    await must(folder, 'invoke', '{}');
    const line = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}\S{8} {2}.*call 1/m;
    expect(await must(folder, 'logs')).toMatch(line);
    const at = async (): Promise<string> => {
      const entries = (await must(folder, 'logs', '--json')).trim().split('\n');
      return JSON.parse(entries.find((entry) => entry.includes('call 1')) ?? '{}').at;
    };
    const live = await at();
    await must(folder, 'stop-session');
    expect(await must(folder, 'logs')).toMatch(line);
    expect(await at()).toBe(live);
  });
});

describe('iam', () => {
  it('lets a user do what a policy allows, and nothing else', async () => {
    const folder = join(examples, 'hello-agent');
    await must(folder, 'deploy');
    const wrong = await agentcore(work, ['iam', 'create-user', 'a/b']);
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toMatch(/^error: userName must be 1 to 64 of the characters/);
    await must(work, 'iam', 'create-user', 'ada');
    const key = JSON.parse(await must(work, 'iam', 'create-key', 'ada', '--json'));
    const env = {
      AWS_ENDPOINT_URL: platform.ready.endpoint,
      AWS_REGION: platform.ready.region,
      AWS_ACCESS_KEY_ID: key.accessKeyId,
      AWS_SECRET_ACCESS_KEY: key.secretAccessKey,
    };
    const refused = await agentcore(folder, ['list'], { env });
    expect(refused.code).toBe(5);
    expect(refused.stderr).toContain('ListAgentRuntimes');
    const policy = {
      Statement: [
        {
          Effect: 'Allow',
          Action: ['bedrock-agentcore:ListAgentRuntimes', 'bedrock-agentcore:InvokeAgentRuntime'],
          Resource: '*',
        },
      ],
    };
    const put = await agentcore(work, ['iam', 'put-policy', 'call', '-', '--user', 'ada'], {
      stdin: JSON.stringify(policy),
    });
    expect(put.code, put.stderr).toBe(0);
    expect((await agentcore(work, ['list'], { env })).stdout).toContain('hello_agent');
    expect((await agentcore(work, ['invoke', '{}', '--agent', 'hello_agent'], { env })).stdout).toContain('call 1');
    expect((await agentcore(work, ['destroy', '--agent', 'hello_agent', '--yes'], { env })).code).toBe(5);
    await must(work, 'iam', 'set-key', key.accessKeyId, '--off', '--user', 'ada');
    expect((await agentcore(work, ['list'], { env })).code).toBe(5);
  });
});

describe('doctor and env', () => {
  it('say what the platform offers and how to reach it', async () => {
    expect(JSON.parse(await must(work, 'doctor', '--json'))).toMatchObject({
      platform: platform.ready.endpoint,
      isolated: true,
    });
    expect(await must(work, 'env')).toBe(
      Object.entries({
        ...platform.env,
        BEDROCK_AGENTCORE_CP_ENDPOINT: platform.ready.endpoint,
        BEDROCK_AGENTCORE_DP_ENDPOINT: platform.ready.endpoint,
      })
        .map(([name, value]) => `export ${name}=${value}\n`)
        .join(''),
    );
  });
});

const buildah = spawnSync('buildah', ['--version']).status === 0;
const docker = process.getuid?.() === 0 && spawnSync('dockerd', ['--version']).status === 0;
const compiler = spawnSync('gcc', ['--version']).status === 0;
if (!buildah || !compiler) console.warn('SKIPPED: deploying a Containerfile needs buildah and gcc on this machine');

describe.skipIf(!buildah || !compiler)('a Containerfile', () => {
  it('is built, pushed into the platform’s registry, and answers: by buildah, and by a real Docker daemon', async () => {
    const folder = await mkdtemp(join(work, 'image-'));
    // FROM scratch and a static program: no base image has to be fetched.
    await writeFile(join(folder, 'agent.c'), agentInC);
    execFileSync('gcc', ['-static', '-O1', '-o', 'agent', 'agent.c'], { cwd: folder });
    await writeFile(join(folder, 'Containerfile'), 'FROM scratch\nCOPY agent /agent\nUSER 1000:1000\nCMD ["/agent"]\n');
    await writeFile(join(folder, 'agentcore.json'), '{"name":"in_c","language":"containerfile"}');
    expect(JSON.parse(await must(folder, 'deploy', '--json'))).toMatchObject({ changed: true });
    expect(await must(folder, 'invoke', '{}')).toBe('{"call":1}\n');
    expect(await must(folder, 'invoke', '{}', '--continue')).toBe('{"call":2}\n');
    expect(JSON.parse(await must(folder, 'deploy', '--json'))).toMatchObject({ changed: false });

    if (!docker) return console.warn('SKIPPED: the same by Docker, which is not installed');
    const daemon = await DockerDaemon.start();
    try {
      const env = { ...platform.env, DOCKER_HOST: `unix://${daemon.socketPath}` };
      const deployed = await agentcore(folder, ['deploy', '--builder', 'docker', '--json'], { env });
      expect(deployed.code, deployed.stderr).toBe(0);
      expect(JSON.parse(deployed.stdout)).toMatchObject({ changed: true });
      expect(await must(folder, 'invoke', '{}')).toBe('{"call":1}\n');
    } finally {
      await daemon.stop();
    }
  });
});

describe('a Containerfile without a builder', () => {
  it('becomes layers on a base, is sent once, and answers; one with RUN is refused by its line', async () => {
    const folder = join(work, 'no-builder');
    await must(work, 'create', 'no-builder', '--language', 'containerfile', '--yes');
    const file = (await readFile(join(folder, 'Containerfile'), 'utf8'))
      .replace(/^FROM .*$/m, 'FROM platform/base/node:22')
      // Where it runs need not be made beforehand, and the user has a name.
      .replace('WORKDIR /app', 'WORKDIR /srv/app')
      .replace('COPY server.mjs .', 'COPY server.mjs /opt/')
      .replace('USER 1000:1000', 'USER node')
      .replace('"server.mjs"', '"/opt/server.mjs"');
    await writeFile(join(folder, 'Containerfile'), file);
    const first = JSON.parse(await must(folder, 'deploy', '--builder', 'none', '--json'));
    expect(first).toMatchObject({ changed: true });
    expect(JSON.parse(await must(folder, 'invoke', '{"prompt":"hi"}'))).toEqual({ said: 'hi', call: 1 });
    expect(JSON.parse(await must(folder, 'deploy', '--builder', 'none', '--json'))).toMatchObject({ changed: false });
    await writeFile(join(folder, 'Containerfile'), `${file}RUN npm install\n`);
    const refused = await agentcore(folder, ['deploy', '--builder', 'none']);
    expect(refused).toMatchObject({ code: 2 });
    expect(refused.stderr).toMatch(/Line 7 .*RUN needs a builder/);
    expect(refused.stderr).toContain('buildah');
  });
});

const agentInC = `
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <netinet/in.h>
int main(void) {
  int calls = 0, on = 1, server = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(8080)};
  setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(server, (struct sockaddr *)&at, sizeof at) || listen(server, 16)) return 1;
  for (;;) {
    char in[8192], body[64], out[256];
    int client = accept(server, 0, 0);
    long got = read(client, in, sizeof in - 1);
    if (got > 0) {
      in[got] = 0;
      if (strstr(in, "GET /ping")) strcpy(body, "{\\"status\\":\\"Healthy\\",\\"time_of_last_update\\":1}");
      else sprintf(body, "{\\"call\\":%d}", ++calls);
      int size = sprintf(out, "HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: %zu\\r\\nconnection: close\\r\\n\\r\\n%s", strlen(body), body);
      if (write(client, out, size) < 0) return 1;
    }
    close(client);
  }
}
`;
