import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { StopRuntimeSessionCommand } from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { assumeNewRole } from '../support/iam.ts';
import { invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { hasTmux, Tmux } from '../support/tmux.ts';
import { type Stream, StreamSigner } from '../support/websocket.ts';

const folder = resolve(import.meta.dirname, '../support/probe-agent');
let platform: TestPlatform;
let clients: Clients;
let signer: StreamSigner;
let arn: string;

beforeAll(async () => {
  platform = await startTestPlatform();
  clients = clientsOf(platform);
  signer = new StreamSigner(platform);
  ({ arn } = await deployAgent(platform, clients, { folder: join(folder) }));
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

/** A client of the shell protocol, as the vendor's is. */
class ShellClient {
  readonly stream: Stream;
  output = '';
  status: Record<string, unknown> | undefined;

  constructor(stream: Stream) {
    this.stream = stream;
  }

  static async open(session: string, shellId = 'one'): Promise<ShellClient> {
    const target = { arn, path: 'ws/shells', query: { shellId } };
    const client = new ShellClient(await signer.open(target, session));
    await client.frame(3);
    return client;
  }

  send(channel: number, text = ''): void {
    this.stream.socket.send(Buffer.concat([Buffer.from([channel]), Buffer.from(text)]));
  }

  /** Reads up to the next frame of that channel. */
  async frame(channel: number): Promise<string> {
    for (;;) {
      const frame = await this.stream.next();
      const text = frame.subarray(1).toString();
      if (frame[0] === 1) this.output += text;
      if (frame[0] === 3) this.status = JSON.parse(text);
      if (frame[0] === channel) return text;
    }
  }

  async until(text: string): Promise<void> {
    while (!this.output.includes(text)) await this.frame(1);
    this.output = this.output.slice(this.output.indexOf(text) + text.length);
  }
}

describe('the interactive shell', () => {
  it('is a terminal in the session’s sandbox', async () => {
    const session = sessionId('shell');
    await invokeText(clients, arn, session, { do: 'write', text: 'by the agent' });
    const shell = await ShellClient.open(session);
    expect(shell.status).toMatchObject({ metadata: { shellId: 'one', reconnected: false }, status: 'Success' });
    expect(shell.stream.upgradeHeaders['x-amzn-bedrock-agentcore-shell-id']).toBe('one');
    shell.send(4, '{"width":132,"height":43}');
    // The size takes another way to the terminal than what is typed, and may come after it.
    const sized = 'until case "$(stty size)" in 43*) true;; *) false;; esac; do sleep 0.1; done; stty size';
    shell.send(0, `${sized}; test -t 0 && echo is-a-"tty"; cat /tmp/kept; echo\n`);
    await shell.until('43 132');
    await shell.until('is-a-tty');
    await shell.until('by the agent');
    shell.send(5);
    expect(await shell.frame(5)).toBe('');
    shell.send(0, 'exit 3\n');
    await shell.frame(3);
    expect(shell.status).toMatchObject({
      status: 'Failure',
      reason: 'NonZeroExitCode',
      details: { causes: [{ reason: 'ExitCode', message: '3' }] },
    });
    expect((await shell.stream.closed).code).toBe(1000);
  });

  it('outlives its connection and has one client at a time', async () => {
    const session = sessionId('again');
    const first = await ShellClient.open(session);
    first.send(0, 'kept=here; echo first-"ready"\n');
    await first.until('first-ready');
    first.stream.socket.terminate();
    const second = await ShellClient.open(session);
    expect(second.status).toMatchObject({ metadata: { reconnected: true } });
    await second.until('first-ready');
    second.send(0, 'echo it is $kept\n');
    await second.until('it is here');
    const third = await ShellClient.open(session);
    expect((await second.stream.closed).code).toBe(4000);
    third.send(0xff);
    expect((await third.stream.closed).code).toBe(1000);
    await expect
      .poll(async () => (await ShellClient.open(session)).status)
      .toMatchObject({
        metadata: { reconnected: false },
      });
  });

  it('interrupts with Ctrl-C', async () => {
    const shell = await ShellClient.open(sessionId('interrupt'));
    // The word comes from the foreground process itself: before it is that, a terminal's signal would go to the shell.
    shell.send(0, `sh -c 'echo be"gun"; exec sleep 60'\n`);
    await shell.until('begun');
    shell.send(0, '\x03');
    await shell.until('$');
    shell.send(0, 'echo status-$?\n');
    await shell.until('status-130');
  });

  it('refuses what is no frame, or too large', async () => {
    const session = sessionId('frames');
    for (const [bad, code] of [
      [Buffer.alloc(64 * 1024 + 1), 1009],
      [Buffer.alloc(0), 1002],
      [Buffer.from('\x04{}'), 1002],
      ['text', 1002],
    ] as const) {
      const shell = await ShellClient.open(session, `shell${code}`);
      shell.stream.socket.send(bad);
      expect((await shell.stream.closed).code).toBe(code);
    }
    const bad = signer.open({ arn, path: 'ws/shells', query: { shellId: '-x' } }, session);
    await expect(bad).rejects.toMatchObject({ status: 400 });
  });

  it('carries much output to a slow client, all of it', async () => {
    const shell = await ShellClient.open(sessionId('much'));
    shell.send(0, 'stty -echo; head -c 5000000 /dev/zero | tr "\\0" x; echo; echo e"nd"\n');
    let count = 0;
    while (!shell.output.includes('end')) {
      await shell.frame(1);
      count += shell.output.split('x').length - 1;
      shell.output = shell.output.replaceAll('x', '');
    }
    expect(count).toBeGreaterThanOrEqual(5_000_000);
  });

  it('needs a right of its own, beside that to invoke and to talk', async () => {
    const stream = 'bedrock-agentcore:InvokeAgentRuntimeWithWebSocketStream';
    const shell = 'bedrock-agentcore:InvokeAgentRuntimeCommandShell';
    for (const [name, allowed, refusal] of [
      ['talker', [stream, 'bedrock-agentcore:InvokeAgentRuntime'], 403],
      ['operator', [shell], undefined],
    ] as const) {
      const role = await assumeNewRole(platform, name, [{ Effect: 'Allow', Action: [...allowed], Resource: '*' }]);
      const own = new StreamSigner(platform, role);
      const opening = own.open({ arn, path: 'ws/shells' }, sessionId(name));
      if (refusal) await expect(opening).rejects.toMatchObject({ status: refusal, type: 'AccessDeniedException' });
      else expect((await (await opening).next())[0]).toBe(3);
      // The probe agent has no /ws: who may talk gets as far as that.
      const talking = own.open({ arn }, sessionId(name));
      await expect(talking).rejects.toMatchObject({ status: refusal ? 424 : 403 });
    }
  });

  it('ends with its session', async () => {
    const session = sessionId('stop');
    const shell = await ShellClient.open(session);
    await clients.data.send(new StopRuntimeSessionCommand({ agentRuntimeArn: arn, runtimeSessionId: session }));
    expect([1000, 1001]).toContain((await shell.stream.closed).code);
  });
});

const root = resolve(import.meta.dirname, '../..');

describe('agentcore shell', () => {
  const main = join(root, 'packages/cli/bin/agentcore.mjs');
  const line = (session: string) => [process.execPath, main, 'shell', '--agent', arn, '--session', session];

  /** Runs it with that on its standard input; resolves with its exit status and all that it wrote. */
  async function piped(session: string, input: string): Promise<[number | null, string]> {
    const [file = '', ...args] = line(session);
    const child = spawn(file, args, { env: { ...process.env, ...platform.env } });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        said += text;
      });
    }
    child.stdin.end(input);
    const [code] = await once(child, 'close');
    return [code, said];
  }

  it('types what is piped in, and ends as the shell ends', async () => {
    const session = sessionId('piped');
    await invokeText(clients, arn, session, { do: 'write', text: 'kept by the agent' });
    const [code, said] = await piped(session, 'cat /tmp/kept\nexit 4\n');
    expect([code, said]).toEqual([1, expect.stringContaining('kept by the agent')]);
    expect(said).toContain('The shell ended with status 4.');
  });

  it.each([
    ['a line', 'echo do""ne\n'],
    ['a line without its end', 'echo do""ne'],
    ['a command that runs on', 'sleep 2; echo do""ne\n'],
    ['a program that reads on', 'sed s/x/done/\nx\n'],
  ])('ends where what is piped in ends: %s', async (name, input) => {
    const [code, said] = await piped(sessionId(name.replaceAll(' ', '-')), input);
    expect([code, said]).toEqual([0, expect.stringContaining('done')]);
  });

  it.skipIf(!hasTmux)('is a real terminal: size, resize, Ctrl-C', async () => {
    const env = Object.entries(platform.env).map(([name, value]) => `${name}='${value}'`);
    const terminal = Tmux.open(`${['env', ...env, ...line(sessionId('tmux'))].join(' ')}; echo ended with $?`, {
      columns: 101,
      rows: 31,
    });
    try {
      await terminal.shows('$');
      terminal.type('stty size', 'Enter');
      await terminal.shows('31 101');
      terminal.resize(90, 25);
      terminal.type('stty size', 'Enter');
      await terminal.shows('25 90');
      terminal.type(`sh -c 'echo be""gun; exec sleep 60'`, 'Enter');
      await terminal.shows('begun');
      terminal.type('C-c');
      terminal.type('echo st""ill', 'Enter');
      await terminal.shows('still');
      terminal.type('no-such-command', 'Enter');
      await terminal.shows('not found');
      terminal.type('exit', 'Enter');
      await terminal.shows('ended with 0');
      expect(terminal.screen()).not.toContain('The shell ended');
    } finally {
      terminal.close();
    }
  });
});
