import { setTimeout as sleep } from 'node:timers/promises';
import type { WebSocket } from 'ws';
import type { Clock } from '../../../kernel/clock.ts';
import { closeSocket } from '../../../kernel/http/index.ts';
import type { ExecHandle, Sandbox } from '../../../kernel/sandbox/index.ts';
import { CHANNEL, connectedStatus, exitStatus, frameOf, outputFrames, readFrame } from './shell-frames.ts';

/** Output kept for a client that comes back, in bytes. */
const REPLAY_BYTES = 256 * 1024;
/** Bytes waiting for a client before the shell itself is made to wait. */
const HIGH_WATER_BYTES = 1024 * 1024;
/** Close code for a client whose shell another has taken. */
const TAKEN_OVER = 4000;
const FAREWELL_MS = 50;

/** A login shell where there is one, on a pseudo-terminal. */
const COMMAND = ['/bin/sh', '-c', 'if command -v bash >/dev/null 2>&1; then exec bash -i; else exec sh -i; fi'];

/** One interactive shell in a sandbox; it outlives its connection for a while, and has one client at a time. */
export class Shell {
  readonly id: string;
  readonly #handle: ExecHandle;
  readonly #onEnd: () => void;
  readonly #clock: Clock;
  #client: WebSocket | undefined;
  #replay: Buffer[] = [];
  #replayBytes = 0;
  #cancelEnd: (() => void) | undefined;
  #ended: number | undefined;

  private constructor(id: string, handle: ExecHandle, clock: Clock, onEnd: () => void) {
    this.id = id;
    this.#handle = handle;
    this.#clock = clock;
    this.#onEnd = onEnd;
  }

  /** Starts a shell; rejects with SandboxError when it cannot be had. */
  static async start(id: string, sandbox: Sandbox, clock: Clock, onEnd: () => void): Promise<Shell> {
    const handle = await sandbox.exec(COMMAND, {
      tty: { columns: 80, rows: 24 },
      env: { TERM: 'xterm-256color', HOME: '/tmp', PS1: '\\w $ ' },
    });
    const shell = new Shell(id, handle, clock, onEnd);
    handle.stdout.on('data', (data: Buffer) => shell.#output(data));
    handle.stderr.on('data', (data: Buffer) => shell.#output(data));
    void handle.exited.then((code) => shell.#end(code));
    return shell;
  }

  /** Gives the shell to a client and takes it from the one before, which is closed with 4000. */
  attach(client: WebSocket, reconnected: boolean): void {
    const before = this.#client;
    this.#client = client;
    this.#cancelEnd?.();
    if (before) closeSocket(before, TAKEN_OVER, 'another client has taken this shell');
    client.send(connectedStatus(this.id, reconnected));
    if (reconnected) for (const data of this.#replay) this.#send(data);
    client.on('message', (data, binary) => this.#input(client, data as Buffer, binary));
    client.on('error', () => undefined);
    if (this.#ended !== undefined) this.#farewell(this.#ended);
  }

  /** Ends the shell unless a client comes back within `ms`; does nothing when another has it already. */
  detach(client: WebSocket, ms: number): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#handle.stdout.resume();
    this.#cancelEnd = this.#clock.after(ms, () => this.kill());
  }

  kill(): void {
    this.#cancelEnd?.();
    this.#handle.kill('SIGKILL');
  }

  #input(client: WebSocket, frame: Buffer, binary: boolean): void {
    const input = binary ? readFrame(frame) : undefined;
    if (!input) closeSocket(client, 1002, 'not a frame of the shell protocol');
    if (!input || client !== this.#client) return;
    if (input.channel === 'stdin') {
      if (!this.#handle.stdin.write(input.data)) {
        client.pause();
        this.#handle.stdin.once('drain', () => client.resume());
      }
    } else if (input.channel === 'resize') this.#handle.resize(input.columns, input.rows);
    else if (input.channel === 'heartbeat') client.send(frameOf(CHANNEL.heartbeat));
    else if (input.channel === 'close') {
      this.kill();
      closeSocket(client, 1000, '');
    }
  }

  #output(data: Buffer): void {
    this.#replay.push(data);
    this.#replayBytes += data.length;
    while (this.#replayBytes > REPLAY_BYTES) this.#replayBytes -= this.#replay.shift()?.length ?? 0;
    this.#send(data);
  }

  #send(data: Buffer): void {
    const client = this.#client;
    if (client?.readyState !== client?.OPEN || !client) return;
    for (const frame of outputFrames(CHANNEL.stdout, data)) client.send(frame, () => this.#handle.stdout.resume());
    if (client.bufferedAmount > HIGH_WATER_BYTES) this.#handle.stdout.pause();
  }

  async #end(code: number): Promise<void> {
    this.#ended = code;
    this.#cancelEnd?.();
    // What it wrote last is still on its way through the pipe.
    await sleep(FAREWELL_MS, undefined, { ref: false });
    this.#farewell(code);
    this.#onEnd();
  }

  #farewell(code: number): void {
    const client = this.#client;
    if (client?.readyState !== client?.OPEN || !client) return;
    client.send(exitStatus(code));
    closeSocket(client, 1000, '');
  }
}
