/** The other side of `ElsewhereProvider`: a provider in a mount namespace of its own, asked by messages. */
import pino from 'pino';
import { systemClock } from '../../clock.ts';
import { OciProvider } from '../oci/oci-provider.ts';
import { type ExecHandle, type Sandbox, SandboxError } from '../sandbox.ts';
import type { Ask, Described, ElsewhereSetting, FromProvider, ToProvider } from './elsewhere-protocol.ts';
import { TestStage } from './test-stage.ts';

const { dataDir, images, mounts }: ElsewhereSetting = JSON.parse(process.argv[2] ?? '');
const stage = new TestStage(images, mounts);
const provider = new OciProvider({ dataDir, stage, clock: systemClock, log: pino({ level: 'silent' }) });
const sandboxes = new Map<string, Sandbox>();
const aborts = new Map<number, AbortController>();
const commands = new Map<number, ExecHandle>();
const say = (message: FromProvider): void => void process.send?.(message);

function described(sandbox: Sandbox): Described {
  const { id, labels, isolation } = sandbox;
  sandboxes.set(id, sandbox);
  return { id, labels, isolation, host: sandbox.address(0).host };
}

function known(id: string): Sandbox {
  const sandbox = sandboxes.get(id);
  if (!sandbox) throw new Error(`There is no sandbox ${id}.`);
  return sandbox;
}

async function answer(id: number, ask: Ask, signal: AbortSignal): Promise<unknown> {
  switch (ask.method) {
    case 'probe':
      return provider.probe();
    case 'stage':
      return provider.stage(ask.image, signal);
    case 'create':
      return described(await provider.create(ask.spec, signal));
    case 'reattach': {
      const found: Described[] = [];
      for await (const sandbox of provider.reattach()) found.push(described(sandbox));
      return found;
    }
    case 'sweep':
      return provider.sweep(ask.keep && new Set(ask.keep));
    case 'close':
      return provider.close();
    case 'usage':
      return known(ask.sandbox).usage();
    case 'diskBytes':
      return known(ask.sandbox).diskBytes();
    case 'exited':
      return known(ask.sandbox).exited;
    case 'tail':
      return known(ask.sandbox).tail(ask.maxBytes);
    case 'lastLines':
      return known(ask.sandbox).lastLines(ask.maxBytes);
    case 'stop':
      return known(ask.sandbox).stop(ask.graceMs === undefined ? {} : { graceMs: ask.graceMs });
    case 'logs':
      for await (const line of known(ask.sandbox).logs({ ...ask, signal })) say({ id, event: 'line', line });
      return say({ id, event: 'line', line: undefined });
    case 'exec':
      return command(id, await known(ask.sandbox).exec(ask.command, { ...ask.options, signal }));
  }
}

function command(id: number, handle: ExecHandle): void {
  commands.set(id, handle);
  for (const event of ['stdout', 'stderr'] as const) {
    handle[event].on('data', (chunk: Buffer) => say({ id, event, chunk }));
    handle[event].on('close', () => say({ id, event, chunk: undefined }));
  }
  handle.stdin.on('error', () => undefined);
  void handle.exited.then((code) => say({ id, event: 'exited', code }));
}

async function take(message: ToProvider): Promise<void> {
  const { id } = message;
  if ('method' in message) {
    const abort = new AbortController();
    aborts.set(id, abort);
    try {
      say({ id, value: await answer(id, message, abort.signal) });
    } catch (error) {
      const reason = error instanceof SandboxError ? error.reason : undefined;
      say({ id, failure: { message: error instanceof Error ? error.message : String(error), reason } });
    }
  } else if (message.aside === 'abort') aborts.get(id)?.abort();
  else if (message.aside === 'resize') commands.get(id)?.resize(message.columns, message.rows);
  else if (message.aside === 'kill') commands.get(id)?.kill(message.signal);
  else if (message.chunk) commands.get(id)?.stdin.write(message.chunk);
  else commands.get(id)?.stdin.end();
}

process.on('message', (message: ToProvider) => void take(message));
process.on('disconnect', () => process.exit());
