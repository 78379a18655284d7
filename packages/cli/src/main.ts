import { homedir } from 'node:os';
import { run } from './run.ts';

const interrupted = new AbortController();
const onSignal = (): void => {
  // A second Ctrl-C does not wait for anything.
  if (interrupted.signal.aborted) process.exit(130);
  interrupted.abort(new Error('interrupted'));
};
process.on('SIGINT', onSignal);
process.on('SIGTERM', onSignal);
// The terminal was closed.
process.on('SIGHUP', onSignal);
// `agentcore logs | head` closes the pipe when it has enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  process.stderr.write(`error: The output cannot be written: ${error.message}\n`);
  process.exit(1);
});

// Terminals that nobody has sized, as of a container or a CI job: what wraps text would put each character on a line.
for (const stream of [process.stdout, process.stderr]) if (stream.isTTY && stream.columns === 0) stream.columns = 80;

process.exitCode = await run(
  {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    cwd: process.cwd(),
    home: homedir(),
    signal: interrupted.signal,
  },
  process.argv.slice(2),
);
// Idle connections of the SDKs must not delay the end of the command, but output to a pipe must still arrive.
await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
process.exit();
