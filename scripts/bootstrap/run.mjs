import { spawn } from 'node:child_process';
import { Stop } from './stop.mjs';

const keepBytes = 64 * 1024;

/** A command ended with another status than 0; `output` is the end of what it wrote. */
export class CommandFailed extends Error {
  constructor(command, status, output) {
    super(`${command} ended with ${status}`);
    this.output = output;
  }
}

/**
 * Runs a command to its end, its output kept out of sight. Rejects with a `CommandFailed` when it fails or takes longer
 * than `timeoutMs`. A signal that ends the bootstrap ends the command first.
 */
export function run(command, args, { cwd, env = process.env, timeoutMs }) {
  return new Promise((resolve, reject) => {
    let child;
    let interrupted;
    const interrupt = (signal) => {
      interrupted = signal;
      child?.kill(signal);
    };
    // Before the command begins: the first thing that it does may be to tell somebody who then interrupts us.
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
    for (const signal of signals) process.on(signal, interrupt);
    child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const keep = (chunk) => {
      output = (output + chunk).slice(-keepBytes);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    const timer = setTimeout(() => {
      output += `\nno end after ${timeoutMs / 1000} s`;
      child.kill('SIGTERM');
    }, timeoutMs);
    const settle = (error) => {
      clearTimeout(timer);
      for (const signal of signals) process.off(signal, interrupt);
      if (interrupted)
        reject(new Stop('Interrupted; the next run takes it up again.', interrupted === 'SIGINT' ? 130 : 143));
      else if (error) reject(error);
      else resolve(output);
    };
    child.on('error', (error) =>
      settle(new CommandFailed(command, error.code ?? error.message, `${output}${error.message}`)),
    );
    child.on('close', (code, signal) =>
      settle(code === 0 ? undefined : new CommandFailed(command, signal ?? code, output)),
    );
  });
}
