import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Victim } from './rude-rounds.ts';

/**
 * What the platform did once: a body goes into a stage before anybody knows whether it is wanted, and who reads the stage hears its errors, but nobody does
 * until then. With `careful`, the same where somebody hears it from its birth.
 */
const SERVER = `
  const careful = process.argv.includes('careful');
  const { PassThrough } = require('node:stream');
  const server = require('node:http').createServer((req, res) => {
    if (req.url === '/metrics') return void res.end('agentplatform_unhandled_errors 0\\n');
    const stage = new PassThrough();
    if (careful) stage.on('error', () => {});
    req.on('error', (error) => stage.destroy(error)).pipe(stage);
    setTimeout(() => {
      stage.on('error', () => {}).resume();
      res.writeHead(403).end();
    }, 2);
  });
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));`;

/** A server for rude clients that shows what they find. */
export class CarelessServer {
  readonly victim: Victim;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, pid: number, port: number) {
    this.#child = child;
    this.victim = { endpoint: `http://127.0.0.1:${port}`, pid, ports: [port] };
  }

  static async start({ careful }: { careful: boolean }): Promise<CarelessServer> {
    const args = ['-e', SERVER, ...(careful ? ['careful'] : [])];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    await once(child, 'spawn');
    const [line] = await once(child.stdout, 'data');
    return new CarelessServer(child, child.pid ?? 0, Number(String(line)));
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}
