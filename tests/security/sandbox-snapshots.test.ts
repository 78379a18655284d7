import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bundleCode } from '../../packages/cli/src/package/bundle-code.ts';
import { defaultPythonRuntime } from '../../packages/cli/src/package/python.ts';
import { lacksGvisor, RUNSC } from '../../packages/platform/src/kernel/sandbox/testing/gvisor.ts';
import { until } from '../../packages/platform/src/kernel/sandbox/testing/until.ts';
import { botoOf, codeDefinition, python, readyRuntime } from '../support/boto3.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { uploadFolder } from '../support/deploy.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

/** Four seconds of imports, a warm-up that is noted, and what a session finds; with ASK in its environment it asks for credentials while it warms up. */
const AGENT = `
import json, os, time, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
time.sleep(4)
born, warm = os.urandom(8).hex(), []
def credentials():
    place = os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
    token = open(place).read() if place else os.environ["AWS_CONTAINER_AUTHORIZATION_TOKEN"]
    request = urllib.request.Request(os.environ["AWS_CONTAINER_CREDENTIALS_FULL_URI"], headers={"Authorization": token})
    return json.load(urllib.request.urlopen(request))["AccessKeyId"]
class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self): self.say({"status": "Healthy"})
    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path == "/warm":
            if "ASK" in os.environ: credentials()
            warm.append(time.time())
            open("/tmp/warm", "w").write("warm")
            return self.say({})
        open(f"/tmp/{os.urandom(4).hex()}", "w").write("a session was here")
        self.say({"born": born, "warm": len(warm), "random": os.urandom(8).hex(), "now": time.time(),
                  "key": credentials(), "files": len(os.listdir("/tmp"))})
    def say(self, what):
        text = json.dumps(what).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
ThreadingHTTPServer(("0.0.0.0", 8080), Handler).serve_forever()
`;

const ROOT = resolve(import.meta.dirname, '../..');
/** What the Python SDK stands on. */
const PACKAGES = ['starlette', 'anyio', 'idna', 'typing_extensions.py', 'uvicorn', 'click', 'h11'];

/** What an agent of tests/support/copied-agent answers. */
interface Told {
  copied: number;
  numbers: Record<string, unknown>;
  same: Record<string, unknown>;
}

const lacking = lacksGvisor() ?? (python ? undefined : 'needs python3 with boto3');
if (lacking) it('sessions from a snapshot', (context) => context.skip(lacking));
else
  describe('sessions from a snapshot', () => {
    let folder: string;
    let platform: TestPlatform;
    let clients: Clients;

    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), 'snapshot-agent-'));
      await writeFile(join(folder, 'main.py'), AGENT);
      const sandbox = ['--sandbox', 'oci', '--sandbox-oci-runtime', RUNSC];
      platform = await startTestPlatform({ args: [...sandbox, '--pool-max-per-version', '0'] });
      clients = clientsOf(platform);
    });
    afterEach(async () => {
      clients.close();
      await platform.dispose();
      await rm(folder, { recursive: true, force: true });
    });

    /** Resolves with its ARN. */
    async function deploy(
      environmentVariables: Record<string, string>,
      of: { folder: string; runtime?: string; entryPoint?: string[] } = { folder },
    ): Promise<string> {
      const boto = botoOf(platform);
      const code = { s3: await uploadFolder(clients, of.folder) };
      const { runtime = await defaultPythonRuntime(of.folder), entryPoint = ['main.py'] } = of;
      const [created] = await boto.control([
        'CreateAgentRuntime',
        {
          ...(await codeDefinition(platform, clients, of.folder)),
          agentRuntimeName: `agent_${entryPoint.join().replace(/\W/g, '_')}`,
          agentRuntimeArtifact: { codeConfiguration: { code, runtime, entryPoint } },
          environmentVariables,
          hooksConfiguration: { build: { warmup: { action: { httpPost: { path: '/warm' } } } } },
        },
      ]);
      return (await readyRuntime(boto, created)).agentRuntimeArn;
    }
    /** Kept, and restored once to see whether it can be. */
    async function untilKept(): Promise<void> {
      await until(async () => (await kept()).some((name) => !name.startsWith('.')), 60_000);
      await until(async () => (await readdir(join(platform.dataDir, 'sandboxes'))).length === 0, 60_000);
    }
    const kept = () => readdir(join(platform.dataDir, 'snapshots')).catch(() => []);

    it('find what the warm-up left, and no file of each other; random numbers of the kernel, the clock and credentials are their own', async () => {
      const arn = await deploy({});
      await untilKept();
      const said: Record<string, unknown>[] = [];
      for (const name of ['one', 'two']) {
        const began = performance.now();
        said.push(await invokeJson(clients, arn, sessionId(name), {}));
        process.stdout.write(
          `a new session of four seconds of imports answered after ${Math.round(performance.now() - began)} ms\n`,
        );
        expect(Math.abs(Number(said.at(-1)?.now) - Date.now() / 1000)).toBeLessThan(60);
      }
      const [one, two] = said;
      expect(said.map(({ warm, files }) => [warm, files])).toEqual([
        [1, one?.files],
        [1, one?.files],
      ]);
      expect(two?.born).toBe(one?.born);
      expect(two?.random).not.toBe(one?.random);
      expect(two?.key).not.toBe(one?.key);
    });

    /** A folder with the agent of that language that tells random numbers. */
    async function copiedAgent(language: 'node' | 'python'): Promise<Parameters<typeof deploy>[1]> {
      const agent = join(folder, language);
      const source = join(ROOT, 'tests/support/copied-agent');
      await mkdir(agent);
      if (language === 'node') {
        const project = { name: 'copied_agent', language: 'javascript', entrypoint: 'index.mjs' } as const;
        await bundleCode({ folder: source, file: project }, agent);
        return { folder: agent, runtime: 'NODE_22', entryPoint: ['index.mjs'] };
      }
      await cp(join(source, 'main.py'), join(agent, 'main.py'));
      await cp(join(ROOT, 'python/agentplatform/src/agentplatform'), join(agent, 'agentplatform'), { recursive: true });
      for (const name of PACKAGES)
        await cp(join(python?.env.PYTHONPATH ?? '', name), join(agent, name), { recursive: true });
      return { folder: agent };
    }

    it.each(['node', 'python'] as const)(
      'have random numbers of their own in a process of %s, too, where the SDK seeds its generators',
      async (language) => {
        const arn = await deploy({}, await copiedAgent(language));
        await untilKept();
        // The agent's own words.
        const tell = async (name: string) => (await invokeJson(clients, arn, sessionId(name), {})) as unknown as Told;
        const [one, two] = [await tell('one'), await tell('two')];
        expect([one.copied, two.copied]).toEqual([1, 1]);
        for (const [generator, number] of Object.entries(one.numbers))
          expect(two.numbers[generator], generator).not.toBe(number);
        // The control: both are copies of one process, and what nobody could seed is the same.
        expect(two.same).toEqual(one.same);
      },
    );

    it('are not made of a warm-up that has asked for credentials', async () => {
      const arn = await deploy({ ASK: 'yes' });
      await until(() => platform.log().includes('no snapshot of a warm agent'), 60_000);
      expect(await kept()).toEqual([]);
      const one = await invokeJson(clients, arn, sessionId('one'), {});
      const two = await invokeJson(clients, arn, sessionId('two'), {});
      expect([one.warm, two.warm, one.born === two.born]).toEqual([1, 1, false]);
    });
  });
