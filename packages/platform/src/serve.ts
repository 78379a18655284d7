import { ConfigError, configHelp, loadConfig } from './config.ts';
import { createPlatform } from './platform.ts';
import { portTaken } from './port-owner.ts';

/** Serves until SIGTERM or SIGINT. Returns the exit status: 0 after an orderly end, 1 when it could not start, 2 for a wrong configuration. */
export async function serve(argv: string[]): Promise<number> {
  if (argv.includes('--help')) {
    process.stdout.write(configHelp(process.stdout.columns));
    return 0;
  }
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop.abort());
  try {
    const config = loadConfig(argv, process.env);
    const platform = await createPlatform(config);
    try {
      const ready = await platform.listen();
      process.stdout.write(
        config.json ? `${JSON.stringify(ready)}\n` : `agentplatform serves on ${ready.endpoint} (${ready.isolation})\n`,
      );
      if (!stop.signal.aborted)
        await new Promise((resolve) => stop.signal.addEventListener('abort', resolve, { once: true }));
      return 0;
    } finally {
      await platform.close();
    }
  } catch (error) {
    process.stderr.write(`${await explain(error)}\n`);
    return error instanceof ConfigError ? 2 : 1;
  }
}

async function explain(error: unknown): Promise<string> {
  if (!(error instanceof Error)) return String(error);
  const { code, port } = error as NodeJS.ErrnoException & { port?: number };
  return code === 'EADDRINUSE' && port !== undefined ? portTaken(port) : error.message;
}
