import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, dirname, join } from 'node:path';

/** The script of a task: TypeScript, but for one that stays beside what it starts. */
export function scriptOf(root, task) {
  return ['ts', 'mjs'].map((ending) => join(root, 'scripts', `${task}.${ending}`)).find(existsSync);
}

/**
 * Runs the script of `task` on `node` with this process's terminal; signals are passed on and its exit code returned.
 * The channel tells the task when this process is gone, so that it does not outlive its owner.
 */
export function handOver(node, root, task, args) {
  const path = [join(root, 'node_modules', '.bin'), dirname(node), process.env.PATH, '/usr/sbin', '/sbin'];
  const env = { ...process.env, PATH: path.filter(Boolean).join(delimiter) };
  const child = spawn(node, [scriptOf(root, task), ...args], {
    env,
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  const pass = (signal) => child.kill(signal);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2']) process.on(signal, pass);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal]));
  });
}
