import { runCli } from './cli/program.ts';
import { packageManifest } from './package-folder.ts';

void main();

/** In a function: what is published is one CommonJS file, which cannot wait at its top. */
async function main(): Promise<void> {
  const ending = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, () => ending.abort());
  }
  // Whoever read the output has gone, as `handset watch | head -1` does: the work ends as if told to.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    ending.abort();
  });
  const status = await runCli(process.argv.slice(2), {
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    cwd: process.cwd(),
    signal: ending.signal,
    version: packageManifest().version,
  });

  // What was written must arrive; to wait longer would be to wait for V8, which goes on optimizing what is not run again.
  for (const stream of [process.stdout, process.stderr]) {
    await new Promise<void>((resolve) => stream.write('', () => resolve()));
  }
  process.exit(status);
}
