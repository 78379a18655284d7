import { launchChromium } from '../browser/launch.ts';
import { createAssembler } from '../build/assembler.ts';
import { type CommandContext, type ExitStatus, untilAborted } from '../cli/context.ts';
import { bytes, type Terminal } from '../cli/terminal.ts';
import { DEFAULT_DEVICE, DEVICES, isDeviceName } from '../preview/devices.ts';
import { ProblemError } from '../problem.ts';
import { openProject } from '../project/project.ts';
import type { Exchange } from '../proxy/exchange.ts';
import { LIVE_PAGE_ARGS } from '../proxy/live-page.ts';
import { startProxy } from '../proxy/proxy-server.ts';
import { isLoopback } from '../server/loopback.ts';

export interface ProxyCommandOptions {
  readonly preview?: boolean;
  readonly port?: number;
  readonly host?: string;
  readonly device?: string;
  readonly visits?: number;
  readonly idle?: number;
}

/** `handset proxy`: run the application's pages here and send phones flat documents. */
export async function proxyCommand(
  options: ProxyCommandOptions,
  { cwd, terminal, signal, env }: CommandContext,
): Promise<ExitStatus> {
  const name = options.device ?? DEFAULT_DEVICE;
  if (!isDeviceName(name)) throw new ProblemError('usage', { message: `"${name}" is no device.` });
  const host = options.host ?? 'localhost';
  if (options.preview && !isLoopback(host)) {
    const message = '--preview shows the addresses of all visits, and who knows an address has the visit.';
    throw new ProblemError('usage', { message, remedy: 'Leave out --host, or --preview.' });
  }
  const { name: project, root, settings, plugins } = await openProject(cwd);
  const assembly = await createAssembler({ root, settings, plugins, production: true }).assemble();
  terminal.showProblems(assembly.problems);
  if (!assembly.outputs) {
    terminal.emit({ ok: false, problems: assembly.problems });
    return 1;
  }
  const browser = await launchChromium({ headless: true, webSecurity: false, env, args: LIVE_PAGE_ARGS });
  try {
    const proxy = await startProxy({
      browser,
      outputs: assembly.outputs,
      device: DEVICES[name],
      host,
      port: options.port ?? 3334,
      preview: options.preview ?? false,
      visits: options.visits ?? 8,
      idle: (options.idle ?? 600) * 1000,
      onExchange: (exchange) => logExchange(terminal, exchange),
      onRefused: (url) =>
        terminal.say(
          `refused    ${url.slice(0, 100)}: config.xml has no <access> for it, or it leads into this network`,
        ),
      onPageError: (message) => {
        terminal.emit({ event: 'page-error', message });
        terminal.say(`page error ${message.split('\n', 1)[0]}`);
      },
    });
    terminal.emit({
      event: 'serving',
      project,
      url: proxy.url,
      preview: options.preview ? `${proxy.url}/preview` : null,
    });
    terminal.say(`${project} for phones at ${proxy.url}`);
    if (options.preview) terminal.say(`what each interaction costs: ${proxy.url}/preview`);
    if (!proxy.local)
      terminal.say('  everyone in this network can use it; leave out --host to keep it to this machine');
    browser.once('disconnected', () => {
      if (!signal.aborted) terminal.say('Chromium has ended; press Ctrl-C and start the proxy again');
    });
    await untilAborted(signal);
    await proxy.close();
    return 0;
  } finally {
    await browser.close();
  }
}

function logExchange(terminal: Terminal, exchange: Exchange): void {
  terminal.emit({ event: 'exchange', ...exchange, milliseconds: Math.round(exchange.milliseconds) });
  const cost =
    exchange.kind === 'local'
      ? '0 B'
      : `sent ${bytes(exchange.bytesUp)}, received ${bytes(exchange.bytesDown)}, ${Math.round(exchange.milliseconds)}ms`;
  terminal.say(`${exchange.kind.padEnd(10)} ${exchange.type} ${exchange.label} (${cost})`.replace(/\s+\(/, ' ('));
}
