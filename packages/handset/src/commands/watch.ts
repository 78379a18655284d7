import { createMemoryFolder } from '../build/memory-folder.ts';
import { createPublicFolder, type PublicFolder } from '../build/public-folder.ts';
import { type CommandContext, type ExitStatus, untilAborted } from '../cli/context.ts';
import { DEFAULT_DEVICE, DEVICES } from '../preview/devices.ts';
import { ProblemError } from '../problem.ts';
import { openProject } from '../project/project.ts';
import { type Phones, servePhones } from '../proxy/serve-phones.ts';
import { type DevServer, startDevServer } from '../server/dev-server.ts';
import { startWatching } from '../watch/watch-session.ts';
import { logBuild } from './log-build.ts';
import { PHONE_DEFAULTS } from './proxy.ts';

export interface WatchCommandOptions {
  readonly server?: boolean;
  readonly proxy?: boolean;
  readonly production?: boolean;
  readonly port?: number;
  readonly host?: string;
}

/**
 * `handset watch`: build after every save; with `--server` serve the result and refresh the browser, with `--proxy` show it
 * as a phone behind the proxy does and refresh that, too.
 */
export async function watchCommand(options: WatchCommandOptions, context: CommandContext): Promise<ExitStatus> {
  const { cwd, terminal, signal } = context;
  const project = await openProject(cwd);
  const { root, settings } = project;
  const host = options.host ?? 'localhost';
  if (options.host !== undefined && !options.server) {
    throw new ProblemError('usage', { message: '--host needs --server.' });
  }
  const port = options.port ?? settings.port;
  let server: DevServer | undefined;
  if (options.server) {
    server = await startDevServer({ root, host, port, live: true });
    terminal.say(`serving ${project.name} at ${server.url}`);
    if (!server.local)
      terminal.say('  everyone in this network can read it; leave out --host to keep it to this machine');
  }
  const memory = createMemoryFolder();
  let phones: Phones | undefined;
  const session = await startWatching({
    project,
    production: options.production ?? false,
    folder: options.proxy ? both(createPublicFolder(root), memory) : createPublicFolder(root),
    onBuild: (report) => {
      logBuild(terminal, report, new Date());
      server?.announce(report);
      if (report.ok) phones?.refresh();
    },
  });
  try {
    if (options.proxy) {
      const { visits, idle } = PHONE_DEFAULTS;
      const phone = {
        device: DEVICES[DEFAULT_DEVICE],
        host: 'localhost',
        port: phonePort(port),
        preview: true,
        visits,
        idle: idle * 1000,
      };
      phones = await servePhones(project.name, memory, phone, context);
    }
    terminal.emit({ event: 'watching', project: project.name, url: server?.url ?? null });
    terminal.say('watching app/ and vendor/; press Ctrl-C to end');
    await untilAborted(signal);
  } finally {
    session.close();
    await phones?.close();
    await server?.close();
  }
  return 0;
}

/** The port beside that of the plain page, so that `--port` moves both; any free one where that is asked for. */
function phonePort(port: number): number {
  return port === 0 || port === 65_535 ? 0 : port + 1;
}

/** Writes to both; the first says what changed. */
function both(first: PublicFolder, second: PublicFolder): PublicFolder {
  return {
    write(outputs, options) {
      second.write(outputs);
      return first.write(outputs, options);
    },
  };
}
