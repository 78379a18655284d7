import type { Terminal } from './terminal.ts';

/** What every command is given besides its own options. */
export interface CommandContext {
  /** Folder in which the command was started. */
  readonly cwd: string;
  readonly terminal: Terminal;
  /** Aborted by Ctrl-C or a request to end. */
  readonly signal: AbortSignal;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Exit status of a command: 0 done, 1 a fault in the project or its surroundings, 2 wrong usage. */
export type ExitStatus = 0 | 1 | 2;

/** Resolves when the command is told to end. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
