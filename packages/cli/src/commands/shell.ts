import { randomUUID } from 'node:crypto';
import type { RawData, WebSocket } from 'ws';
import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { findConnection } from '../platform/connection.ts';
import { resolveRuntime } from '../platform/runtimes.ts';
import { openShell } from '../platform/shell-stream.ts';
import { note, styled, type Terminal } from '../terminal/terminal.ts';
import { checkSessionId, lastSession } from './invoke.ts';

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const STATUS = 3;
const RESIZE = 4;
const NEWLINE = 0x0a;
/** The most bytes of a frame after its channel byte. */
const MAX_DATA_BYTES = 64 * 1024 - 1;
const END_OF_INPUT = '\x04';
/** How long what is piped in waits for the shell's first sign of life, in ms. */
const PROMPT_MS = 5000;
/** How often the end of input is typed, in ms. */
const END_MS = 500;

export function shellCommand(terminal: Terminal) {
  return platformCommand('shell', {
    summary: 'Open a terminal in the sandbox of a session, beside the agent.',
    details: 'Without --session a new session begins. Input from a pipe is typed into it.',
    examples: [
      { does: 'look around in a new session of the agent in this folder', line: 'agentcore shell' },
      { does: 'look into the session of the last call', line: 'agentcore shell --continue' },
      { does: 'run what a file says', line: 'agentcore shell --continue < commands.sh' },
    ],
  })
    .option('-s, --session <id>', 'session to open it in, 33 to 256 characters (default: a new one)')
    .option('-c, --continue', 'the session of the last call from this folder')
    .option('-a, --agent <name>', 'agent by name, id or ARN (default: the one in this folder)')
    .option('-q, --qualifier <endpoint>', 'endpoint of the agent (default: DEFAULT)')
    .action(async (options) => {
      if (options.session !== undefined && options.continue)
        throw new CliError('usage', 'Give either --session or --continue, not both.');
      if (options.session !== undefined) checkSessionId(options.session);
      const connection = await findConnection(terminal, options);
      const runtime = await resolveRuntime(terminal, connection, options.agent);
      const sessionId =
        options.session ??
        (options.continue ? await lastSession(runtime, connection, options.qualifier) : randomUUID());
      const { signal } = terminal;
      const socket = await openShell(connection, { arn: runtime.arn, sessionId, qualifier: options.qualifier, signal });
      note(terminal, styled(terminal, 'stderr', 'dim', `session ${sessionId}`));
      const status = await converse(terminal, socket);
      // A person leaves by "exit", which gives the status of whatever was typed before; only a script's says that it failed.
      if (status !== 0 && !terminal.stdin.isTTY)
        throw new CliError('failure', `The shell ended with status ${status}.`);
    });
}

/** Joins the terminal with the shell until it ends; resolves with the shell's exit status. */
async function converse(terminal: Terminal, socket: WebSocket): Promise<number> {
  const { stdin, stdout, stderr } = terminal;
  const send = (channel: number, data: Uint8Array | string): void => {
    if (socket.readyState === socket.OPEN) socket.send(Buffer.concat([Buffer.from([channel]), Buffer.from(data)]));
  };
  const resize = (): void => {
    if (stdout.isTTY) send(RESIZE, JSON.stringify({ width: stdout.columns, height: stdout.rows }));
  };
  let last: number | undefined;
  const type = (data: Buffer): void => {
    last = data.at(-1);
    for (let at = 0; at < data.length; at += MAX_DATA_BYTES) send(STDIN, data.subarray(at, at + MAX_DATA_BYTES));
  };
  const end = (): void => send(STDIN, END_OF_INPUT);
  let ending: NodeJS.Timeout | undefined;
  const finish = (): void => {
    // It ends the input only at the start of a line, and only of who reads: typed while a command runs, it is lost on the shell.
    if (last !== undefined && last !== NEWLINE) send(STDIN, '\n');
    end();
    ending = setInterval(end, END_MS);
  };
  // Before the shell has set its terminal up, an end of input is lost, and the rest is echoed twice.
  let listening = false;
  const listen = (): void => {
    if (!listening) stdin.on('data', type).once('end', finish);
    listening = true;
  };
  const waiting = setTimeout(listen, stdin.isTTY ? 0 : PROMPT_MS);
  let status: number | undefined;
  socket.on('message', (data: RawData) => {
    const frame = data as Buffer;
    if (frame[0] === STDOUT) {
      stdout.write(frame.subarray(1));
      listen();
    } else if (frame[0] === STDERR) stderr.write(frame.subarray(1));
    else if (frame[0] === STATUS) status = exitStatus(frame.subarray(1)) ?? status;
  });
  if (stdin.isTTY) stdin.setRawMode(true);
  stdout.on('resize', resize);
  resize();
  try {
    const [code, reason] = await new Promise<[number, string]>((resolve) =>
      socket.once('close', (closeCode, said) => resolve([closeCode, said.toString()])),
    );
    if (status !== undefined) return status;
    throw new CliError('failure', `The shell was cut off${reason ? `: ${reason}` : ` (${code})`}.`);
  } finally {
    clearTimeout(waiting);
    clearInterval(ending);
    stdin.off('data', type).off('end', finish).pause();
    stdout.off('resize', resize);
    if (stdin.isTTY) stdin.setRawMode(false);
  }
}

/** The exit status in a status frame; undefined for one that only confirms the connection. */
function exitStatus(frame: Buffer): number | undefined {
  const { metadata, status, details, message } = Object(JSON.parse(frame.toString()));
  if (metadata?.shellId !== undefined) return undefined;
  if (status === 'Success') return 0;
  const cause = details?.causes?.find((each: { reason?: string }) => each.reason === 'ExitCode');
  if (cause === undefined) throw new CliError('failure', String(message));
  return Number(cause.message);
}
