import { type CommandContext, type ExitStatus, untilAborted } from '../cli/context.ts';
import { plural, type Terminal } from '../cli/terminal.ts';
import { ProblemError } from '../problem.ts';
import { openProject } from '../project/project.ts';
import { type DevServer, startDevServer } from '../server/dev-server.ts';
import { type BuildReport, startWatching } from '../watch/watch-session.ts';

export interface WatchCommandOptions {
  readonly server?: boolean;
  readonly production?: boolean;
  readonly port?: number;
  readonly host?: string;
}

/** `handset watch`: build after every save, and with `--server` serve the result and refresh the browser. */
export async function watchCommand(
  options: WatchCommandOptions,
  { cwd, terminal, signal }: CommandContext,
): Promise<ExitStatus> {
  const project = await openProject(cwd);
  const { root, settings } = project;
  const host = options.host ?? 'localhost';
  if (options.host !== undefined && !options.server) {
    throw new ProblemError('usage', { message: '--host needs --server.' });
  }
  let server: DevServer | undefined;
  if (options.server) {
    server = await startDevServer({ root, host, port: options.port ?? settings.port, live: true });
    terminal.say(`serving ${project.name} at ${server.url}`);
    if (!server.local)
      terminal.say('  everyone in this network can read it; leave out --host to keep it to this machine');
  }
  const session = await startWatching({
    project,
    production: options.production ?? false,
    onBuild: (report) => {
      logBuild(terminal, report, new Date());
      server?.announce(report);
    },
  });
  terminal.emit({ event: 'watching', project: project.name, url: server?.url ?? null });
  terminal.say('watching app/ and vendor/; press Ctrl-C to end');
  await untilAborted(signal);
  session.close();
  await server?.close();
  return 0;
}

function logBuild(terminal: Terminal, report: BuildReport, at: Date): void {
  const time = at.toTimeString().slice(0, 8);
  const milliseconds = Math.round(report.milliseconds);
  terminal.emit({ event: 'build', ...report, milliseconds });
  terminal.showProblems(report.problems);
  if (!report.ok) {
    const errors = report.problems.filter((p) => p.severity === 'error').length;
    terminal.say(`${time} not compiled: ${plural(errors, 'error')}; the last good build stays`);
    return;
  }
  const count = report.written.length + report.removed.length;
  const names = [...report.written, ...report.removed].filter((name) => !name.endsWith('.map'));
  const shown = count === 0 ? 'nothing changed' : count <= 6 ? names.join(', ') : plural(count, 'file');
  terminal.say(`${time} compiled in ${milliseconds}ms (${shown})`);
}
