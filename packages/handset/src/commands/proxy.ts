import { createMemoryFolder } from '../build/memory-folder.ts';
import { type CommandContext, type ExitStatus, untilAborted } from '../cli/context.ts';
import { DEFAULT_DEVICE, DEVICES, isDeviceName } from '../preview/devices.ts';
import { ProblemError } from '../problem.ts';
import { openProject } from '../project/project.ts';
import { type Phones, servePhones } from '../proxy/serve-phones.ts';
import { isLoopback } from '../server/loopback.ts';
import { startWatching } from '../watch/watch-session.ts';
import { logBuild } from './log-build.ts';

export interface ProxyCommandOptions {
  readonly preview?: boolean;
  readonly port?: number;
  readonly host?: string;
  readonly device?: string;
  readonly visits?: number;
  readonly idle?: number;
}

export const PHONE_DEFAULTS = { port: 3334, visits: 8, idle: 600 };

/** `handset proxy`: run the application's pages here and send phones flat documents, of the sources as they are saved. */
export async function proxyCommand(options: ProxyCommandOptions, context: CommandContext): Promise<ExitStatus> {
  const { cwd, terminal, signal } = context;
  const name = options.device ?? DEFAULT_DEVICE;
  if (!isDeviceName(name)) throw new ProblemError('usage', { message: `"${name}" is no device.` });
  const host = options.host ?? 'localhost';
  if (options.preview && !isLoopback(host)) {
    const message = '--preview shows the addresses of all visits, and who knows an address has the visit.';
    throw new ProblemError('usage', { message, remedy: 'Leave out --host, or --preview.' });
  }
  const project = await openProject(cwd);
  const folder = createMemoryFolder();
  let phones: Phones | undefined;
  const session = await startWatching({
    project,
    production: false,
    folder,
    onBuild: (report) => {
      if (phones) logBuild(terminal, report, new Date());
      else terminal.showProblems(report.problems);
      if (report.ok) phones?.refresh();
    },
  });
  try {
    if (!session.latest.ok) {
      terminal.emit({ ok: false, problems: session.latest.problems });
      return 1;
    }
    phones = await servePhones(
      project.name,
      folder,
      {
        device: DEVICES[name],
        host,
        port: options.port ?? PHONE_DEFAULTS.port,
        preview: options.preview ?? false,
        visits: options.visits ?? PHONE_DEFAULTS.visits,
        idle: (options.idle ?? PHONE_DEFAULTS.idle) * 1000,
      },
      context,
    );
    await untilAborted(signal);
    return 0;
  } finally {
    session.close();
    await phones?.close();
  }
}
