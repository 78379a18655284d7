import { fileURLToPath } from 'node:url';
import { ConfigError, configHelp, loadConfig } from '../packages/platform/src/config.ts';
import { endWithOwner } from './end-with-owner.ts';
import { showHelloAgent } from './start/hello-agent.ts';
import { keptByNpm } from './start/npm-options.ts';
import { startPlatform } from './start/platform-process.ts';

const usage = `Usage: npm start [-- --once] [options of the platform]

Starts the platform, deploys examples/hello-agent, talks to it and keeps serving until Ctrl-C.
  --once    stops after the talk, exit status 0 when all of it worked

`;

endWithOwner();
const stop = new AbortController();
// A terminal's Ctrl-C arrives twice, from the terminal and passed on by npm; the second is no other wish.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort(signal));
process.exitCode = await start(process.argv.slice(2), stop.signal);

/** Returns the exit status: 0 when it did what was asked, 1 or 2 when it could not, 128 + signal when interrupted before. */
async function start(argv: string[], signal: AbortSignal): Promise<number> {
  if (argv.includes('--help')) {
    process.stdout.write(usage + configHelp());
    return 0;
  }
  try {
    const kept = keptByNpm(configHelp().match(/--[a-z][a-z-]*/g) ?? [], process.env);
    if (kept) throw new ConfigError([kept]);
    const platformArgs = argv.filter((word) => word !== '--once');
    const config = loadConfig(platformArgs, process.env);
    const root = fileURLToPath(new URL('..', import.meta.url));
    await using platform = await startPlatform({ root, config, args: platformArgs, signal });
    await showHelloAgent({ root, platform, signal });
    if (platformArgs.length < argv.length) return 0;
    process.stdout.write(
      `\nThe platform serves on ${platform.ready.endpoint} until Ctrl-C. Its log: ${platform.logFile}\n`,
    );
    return await platform.serve(signal);
  } catch (error) {
    if (signal.aborted) {
      process.stderr.write('\nStopped.\n');
      return signal.reason === 'SIGINT' ? 130 : 143;
    }
    process.stderr.write(`\n${error instanceof Error ? error.message : String(error)}\n`);
    return error instanceof ConfigError ? 2 : 1;
  }
}
