import { inspect } from 'node:util';
import { type Config, ConfigError, configHelp, loadConfig } from './config.ts';
import { isDiskFull } from './kernel/system-error.ts';
import { endWithSupervisor, type Life, readLife, tellServing } from './life.ts';
import { createPlatform, type Platform } from './platform.ts';
import { portTaken, requireFreePort } from './port-owner.ts';

/** Serves until SIGTERM or SIGINT. Returns the exit status: 0 after an orderly end, 1 when it could not start, 2 for a wrong configuration. */
export async function serve(argv: string[]): Promise<number> {
  if (argv.includes('--help')) {
    process.stdout.write(configHelp(process.stdout.columns));
    return 0;
  }
  const life = readLife(process.env);
  endWithSupervisor();
  const stop = new AbortController();
  let starting = true;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      stop.abort();
      // What a start has done by now outlives a crash, too, and a start that hangs could not be ended otherwise.
      if (starting) endBy(signal);
    });
  }
  // The platform's own timers keep no process alive, and a start may have nothing else to wait for.
  const alive = setInterval(() => {}, 60_000);
  let platform: Platform | undefined;
  let config: Config | undefined;
  try {
    config = withPortsOf(life, loadConfig(argv, process.env));
    // Taken at the end, but known now: nobody should wait for a start that cannot serve.
    await requireFreePort(config.host, config.port);
    platform = await createPlatform(config, life);
    const ready = await platform.listen();
    starting = false;
    tellServing({ port: Number(new URL(ready.endpoint).port || 80), tlsPort: ready.tls?.port });
    const again = life.restarts > 0 ? `, restart ${life.restarts}` : '';
    process.stdout.write(
      config.json
        ? `${JSON.stringify(ready)}\n`
        : `agentplatform serves on ${ready.endpoint} (${ready.isolation}${again})\n`,
    );
    await new Promise((resolve) => stop.signal.addEventListener('abort', resolve, { once: true }));
    return 0;
  } catch (error) {
    process.stderr.write(`${await explain(error, config)}\n`);
    return error instanceof ConfigError ? 2 : 1;
  } finally {
    starting = false;
    await platform?.close();
    clearInterval(alive);
  }
}

/** A port that the system chose is kept, for those who know it. */
function withPortsOf({ ports }: Life, config: Config): Config {
  if (!ports) return config;
  const { port, tls } = config;
  return { ...config, port: port || ports.port, tls: { ...tls, port: tls.port || (ports.tlsPort ?? 0) } };
}

async function explain(error: unknown, config: Config | undefined): Promise<string> {
  if (config && isDiskFull(error)) {
    const places = config.cache ? `${config.data} or ${config.cache}` : config.data;
    return `The disk that holds ${places} is full. Free some space, or choose another data directory with --data.`;
  }
  if (!(error instanceof Error)) return inspect(error);
  const { code, port } = error as NodeJS.ErrnoException & { port?: number };
  return code === 'EADDRINUSE' && port !== undefined ? portTaken(port) : error.message;
}

/** As if nobody had listened to the signal. */
function endBy(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}
