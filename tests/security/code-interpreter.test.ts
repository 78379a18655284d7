import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { CreateCodeInterpreterCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { type CodeSession, startCodeSession } from '../support/code-session.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeText, sessionId } from '../support/invoke.ts';
import { OtherNetwork } from '../support/other-network.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

/** A private network that only exists on this machine, in a namespace of its own. */
const NETWORK = { name: `ci${process.pid}`, host: '172.30.97.1', inside: '172.30.97.2', port: 8098 };
const SUBNET = 'subnet-0123456789abcdef0';

let platform: TestPlatform;
let clients: Clients;
let network: OtherNetwork;
let world: ChildProcess;
let one: CodeSession;
let two: CodeSession;

/** Says `world` to who connects. */
const SPEAKER = `import socketserver as s
class H(s.BaseRequestHandler):
    def handle(self): self.request.sendall(b"world")
s.ThreadingTCPServer(("0.0.0.0", ${NETWORK.port}), H).serve_forever()`;

/** What a server at that address says, seen by code in the session; the error's name when it cannot be reached. */
function reach(session: CodeSession, address: string, port: number): Promise<string> {
  const code = `import socket
try:
    with socket.create_connection(("${address}", ${port}), 3) as s: print(s.recv(99).decode(), end="")
except OSError as e: print("closed", end="")`;
  return session.python(code).then((seen) => seen.structuredContent?.stdout ?? '');
}

async function interpreter(name: string, networkMode: 'SANDBOX' | 'PUBLIC' | 'VPC'): Promise<string> {
  const made = await clients.control.send(
    new CreateCodeInterpreterCommand({
      name,
      networkConfiguration: {
        networkMode,
        ...(networkMode === 'VPC'
          ? { vpcConfig: { subnets: [SUBNET], securityGroups: ['sg-0123456789abcdef0'] } }
          : {}),
      },
    }),
  );
  return made.codeInterpreterId ?? '';
}

beforeAll(async () => {
  network = await OtherNetwork.open(NETWORK);
  world = network.spawn('python3', '-c', SPEAKER);
  platform = await startTestPlatform({
    env: {
      AGENTPLATFORM_CODE_INTERPRETER_IMAGE: 'slim',
      AGENTPLATFORM_CODE_INTERPRETER_SUBNETS: `${SUBNET}=172.30.97.0/24`,
    },
  });
  clients = clientsOf(platform);
  one = await startCodeSession(clients);
  two = await startCodeSession(clients);
}, 400_000);

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  if (world?.exitCode === null) {
    const gone = once(world, 'exit');
    world.kill('SIGKILL');
    await gone;
  }
  await network?.close();
});

describe('a session shares nothing with the agent that calls it', () => {
  it('no file, no process, no network, and no credentials', async () => {
    const agent = await deployAgent(platform, clients, { folder: join(import.meta.dirname, '../support/probe-agent') });
    const caller = sessionId('caller');
    const ask = (payload: unknown): Promise<string> => invokeText(clients, agent.arn, caller, payload);
    await ask({ do: 'write', text: 'of the agent' });
    // Control: the channels are open where they should be.
    expect(await ask({ do: 'read' })).toBe('of the agent');
    await one.python('open("/tmp/own", "w").write("of the interpreter")');
    expect((await one.python('open("/tmp/own").read()')).text).toContain('of the interpreter');

    expect((await one.python('import os\nos.path.exists("/tmp/kept")')).text).toBe('False');
    expect(JSON.parse(await ask({ do: 'file', path: '/tmp/own' }))).toEqual({ error: 'ENOENT' });
    const programs = (await one.call('executeCommand', { command: 'cat /proc/[0-9]*/cmdline | tr "\\0" " "' })).text;
    expect(programs).toContain('ipykernel');
    expect(programs).not.toContain('index.mjs');
    const { names } = JSON.parse(await ask({ do: 'file', path: '/proc/' })) as { names: string[] };
    expect(names.filter((name) => /^\d+$/.test(name)).length).toBeLessThan(10);
    const theirs = (JSON.parse(await ask({ do: 'file', path: '/etc/hosts' })) as { text: string }).text;
    const address = /^(\d+\.\d+\.\d+\.\d+)\s/m.exec(theirs.replaceAll(/^127\..*$/gm, ''))?.[1] ?? '';
    expect(address).not.toBe('');
    expect(await reach(one, address, 8080)).toBe('closed');
    const environment = JSON.parse(await ask({ do: 'env' })) as Record<string, string>;
    const secrets = Object.entries(environment).filter(([name]) => /^AWS_.*(TOKEN|URI|KEY)/.test(name));
    expect(secrets.length).toBeGreaterThan(0);
    const own = (await one.python('dict(os.environ)')).text;
    for (const [, value] of secrets) expect(own).not.toContain(value);
  });
});

describe('two sessions share nothing', () => {
  it('no file', async () => {
    await one.python('for p in ("/workspace/s", "/tmp/s", "/home/agent/s"): open(p, "w").write("secret of one")');
    const find = 'import os\n[p for p in ("/workspace/s", "/tmp/s", "/home/agent/s") if os.path.exists(p)]';
    expect((await one.python(find)).text).toContain('/workspace/s');
    expect((await two.python(find)).text).toBe('[]');
  });

  it('no process: what one ends is its own', async () => {
    await two.python('import subprocess\nchild = subprocess.Popen(["sleep", "300"])');
    const sleepers = 'pgrep -c sleep || true';
    expect((await two.call('executeCommand', { command: sleepers })).structuredContent?.stdout).toBe('1\n');
    expect((await one.call('executeCommand', { command: sleepers })).structuredContent?.stdout).toBe('0\n');
    await one.call('executeCommand', { command: 'kill -9 -1' });
    expect((await two.python('child.poll() is None')).text).toBe('True');
  });

  it('no network: a server of one is not reached by the other, nor the server that drives it', async () => {
    const serve = `import socketserver, threading, socket
class H(socketserver.BaseRequestHandler):
    def handle(self): self.request.sendall(b"one")
server = socketserver.ThreadingTCPServer(("0.0.0.0", 9000), H)
threading.Thread(target=server.serve_forever, daemon=True).start()
own = next(l.split()[0] for l in open("/etc/hosts") if "localhost" not in l and l.strip() and not l.startswith("#"))
own`;
    const address = (await one.python(serve)).text.replaceAll("'", '');
    expect(address).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
    expect(await reach(one, address, 9000)).toBe('one');
    expect(await reach(two, address, 9000)).toBe('closed');
    expect(await reach(two, address, 8080)).toBe('closed');
  });

  it('no session is reached through another interpreter', async () => {
    const other = await interpreter('other_one', 'SANDBOX');
    const own = await startCodeSession(clients, other);
    expect((await own.python('1')).text).toBe('1');
    const { InvokeCodeInterpreterCommand } = await import('@aws-sdk/client-bedrock-agentcore');
    const crossed = clients.data.send(
      new InvokeCodeInterpreterCommand({
        codeInterpreterIdentifier: other,
        sessionId: one.id,
        name: 'executeCode',
        arguments: { language: 'python', code: '1' },
      }),
    );
    await expect(crossed).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
    await own.stop();
  });
});

describe('what a session reaches', () => {
  it('SANDBOX nothing, PUBLIC no private range, VPC the networks that are named', { timeout: 200_000 }, async () => {
    const seen: Record<string, string> = {};
    for (const mode of ['SANDBOX', 'PUBLIC', 'VPC'] as const) {
      const session = await startCodeSession(clients, await interpreter(`net_${mode}`, mode));
      seen[mode] = await reach(session, NETWORK.inside, NETWORK.port);
      await session.stop();
    }
    // The last is the control: the address answers from inside a session where the network is open.
    expect(seen).toEqual({ SANDBOX: 'closed', PUBLIC: 'closed', VPC: 'world' });
  });

  it('not the platform itself', async () => {
    const port = new URL(platform.ready.endpoint).port;
    expect((await fetch(`${platform.ready.endpoint}/healthz`)).ok).toBe(true);
    for (const address of ['127.0.0.1', '172.30.97.1']) expect(await reach(two, address, Number(port))).toBe('closed');
  });
});

describe('what code can see and do inside', () => {
  it('its environment holds no secret of the platform', async () => {
    const environ = (await two.python('open("/proc/1/environ").read()')).text;
    expect(environ).toContain('PYTHONPATH=/opt/python');
    expect(environ).not.toMatch(/AWS_|SECRET|TOKEN|AGENTPLATFORM_SECRETS/);
    expect(environ).not.toContain(platform.credentials.secretAccessKey);
  });

  it('it is not root and gains nothing', async () => {
    const status = (await two.python('open("/proc/self/status").read()')).text;
    expect(status).toContain('CapEff:\\t0000000000000000');
    expect(status).toContain('NoNewPrivs:\\t1');
    expect((await two.python('import os; os.getuid()')).text).toBe('10001');
  });

  it('it may end the server of its session: the session ends and says so, the neighbour lives', async () => {
    expect((await one.python('1')).text).toBe('1');
    const call = one.python('import os, signal\nos.kill(1, signal.SIGTERM)\nsignal.pause()');
    await expect(call).rejects.toMatchObject({ name: 'ConflictException' });
    await expect(one.python('1')).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
    expect((await two.python('1')).text).toBe('1');
  });
});
