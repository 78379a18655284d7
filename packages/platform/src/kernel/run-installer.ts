import { execFile } from 'node:child_process';

const TIMEOUT_MS = 900_000;

/**
 * Runs a tool of this machine that installs packages, such as pip or npm, for 15 minutes at most. Rejects with the end of what it said, or with the
 * signal's reason.
 */
export function runInstaller(command: string, args: readonly string[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = { timeout: TIMEOUT_MS, signal, maxBuffer: 4 * 1024 ** 2 };
    execFile(command, [...args], options, (error, _stdout, stderr) => {
      if (!error) return resolve();
      if (signal.aborted) return reject(signal.reason);
      const said = stderr.trim().split('\n').slice(-3).join(' ').slice(0, 500) || error.message;
      reject(new Error(`${command} failed (${said})`, { cause: error }));
    });
  });
}
