import { createPublicFolder } from '../build/public-folder.ts';
import { type CommandContext, type ExitStatus, untilAborted } from '../cli/context.ts';
import { DEFAULT_DEVICE, DEVICES, isDeviceName } from '../preview/devices.ts';
import { openPreview } from '../preview/preview.ts';
import { ProblemError, problem } from '../problem.ts';
import { openProject } from '../project/project.ts';
import { startDevServer } from '../server/dev-server.ts';
import { startWatching } from '../watch/watch-session.ts';

export interface PreviewCommandOptions {
  readonly device?: string;
  readonly url?: string;
  readonly screenshot?: string;
  readonly headless?: boolean;
}

/** `handset preview`: build, serve on a free port, and show the page as a device does, until the window is closed. */
export async function previewCommand(
  options: PreviewCommandOptions,
  { cwd, terminal, signal, env }: CommandContext,
): Promise<ExitStatus> {
  const name = options.device ?? DEFAULT_DEVICE;
  if (!isDeviceName(name)) throw new ProblemError('usage', { message: `"${name}" is no device.` });
  const device = DEVICES[name];
  const served = options.url === undefined ? await serveProject(cwd, terminal) : undefined;
  try {
    const url = options.url ?? served?.url ?? '';
    if (served && !served.ok) return 1;
    const headless = options.headless === true || options.screenshot !== undefined;
    const preview = await openPreview({ url, device, headless, env });
    try {
      terminal.emit({ event: 'preview', url, device: name, width: device.width, height: device.height });
      terminal.say(`showing ${url} at ${device.width} × ${device.height} (${device.summary})`);
      if (options.screenshot !== undefined) {
        await preview.page.waitForLoadState('networkidle', { timeout: 10_000 }).catch(() => undefined);
        await preview.page.screenshot({ path: options.screenshot });
        terminal.say(`wrote ${options.screenshot}`);
      } else {
        terminal.say('  web security is off and the profile is thrown away: use this window for nothing else');
        await Promise.race([preview.closed, untilAborted(signal)]);
      }
    } finally {
      await preview.close();
    }
    return 0;
  } finally {
    await served?.close();
  }
}

async function serveProject(cwd: string, terminal: CommandContext['terminal']) {
  const project = await openProject(cwd);
  const server = await startDevServer({ root: project.root, host: 'localhost', port: 0, live: true });
  const session = await startWatching({
    project,
    production: false,
    folder: createPublicFolder(project.root),
    onBuild: (report) => {
      server.announce(report);
      terminal.showProblems(report.problems);
    },
  });
  if (!session.latest.ok) {
    terminal.emit({ ok: false, problems: session.latest.problems });
    if (session.latest.problems.length === 0)
      terminal.fail(problem('failed', { message: 'The project does not build.' }));
  }
  return {
    url: server.url,
    ok: session.latest.ok,
    close: async () => {
      session.close();
      await server.close();
    },
  };
}
