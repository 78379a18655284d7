import { spawnSync } from 'node:child_process';
import { expect } from 'vitest';

/** Whether this machine has tmux. */
export const hasTmux = spawnSync('tmux', ['-V']).status === 0;

/** A real terminal with a command in it, as a person has one. */
export class Tmux {
  static #opened = 0;
  readonly #socket: string;

  private constructor(socket: string) {
    this.#socket = socket;
  }

  /** `command` is one line for sh. The terminal stays for a minute after its end, so that its last lines can be looked at. */
  static open(command: string, { columns = 101, rows = 31 } = {}): Tmux {
    Tmux.#opened += 1;
    const tmux = new Tmux(`test-${process.pid}-${Tmux.#opened}`);
    tmux.do('-f', '/dev/null', 'new-session', '-d', '-x', `${columns}`, '-y', `${rows}`, `${command}; sleep 60`);
    return tmux;
  }

  /** A command of tmux itself; gives what it prints. */
  do(...args: string[]): string {
    return spawnSync('tmux', ['-L', this.#socket, ...args], { encoding: 'utf8' }).stdout;
  }

  /** Keys by tmux's names (`Enter`, `C-c`, `Down`) and text. */
  type(...keys: string[]): void {
    this.do('send-keys', ...keys);
  }

  resize(columns: number, rows: number): void {
    this.do('resize-window', '-x', `${columns}`, '-y', `${rows}`);
  }

  screen(): string {
    return this.do('capture-pane', '-p');
  }

  /** Waits until the screen holds the text. */
  shows(text: string): Promise<void> {
    return expect.poll(() => this.screen(), { timeout: 30_000, interval: 200 }).toContain(text);
  }

  close(): void {
    this.do('kill-server');
  }
}
