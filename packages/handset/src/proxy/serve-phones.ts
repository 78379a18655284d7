import { launchChromium } from '../browser/launch.ts';
import type { MemoryFolder } from '../build/memory-folder.ts';
import type { CommandContext } from '../cli/context.ts';
import { bytes, type Terminal } from '../cli/terminal.ts';
import type { Device } from '../preview/devices.ts';
import type { Exchange } from './exchange.ts';
import { LIVE_PAGE_ARGS } from './live-page.ts';
import { startProxy } from './proxy-server.ts';

export interface PhoneOptions {
  readonly device: Device;
  readonly host: string;
  readonly port: number;
  readonly preview: boolean;
  readonly visits: number;
  readonly idle: number;
}

/** The proxy of a command that runs until it is interrupted. */
export interface Phones {
  readonly url: string;
  /** Show what the folder holds now. */
  refresh(): void;
  close(): Promise<void>;
}

/** Start Chromium and the proxy over the outputs of `folder`, and say on the terminal where it is and what happens there. */
export async function servePhones(
  project: string,
  folder: MemoryFolder,
  options: PhoneOptions,
  { terminal, signal, env }: Pick<CommandContext, 'terminal' | 'signal' | 'env'>,
): Promise<Phones> {
  const browser = await launchChromium({ headless: true, webSecurity: false, env, args: LIVE_PAGE_ARGS });
  const proxy = await startProxy({
    ...options,
    browser,
    outputs: () => folder.outputs,
    onExchange: (exchange) => logExchange(terminal, exchange),
    onRefused: (url) =>
      terminal.say(`refused    ${url.slice(0, 100)}: config.xml has no <access> for it, or it leads into this network`),
    onPageError: (message) => {
      terminal.emit({ event: 'page-error', message });
      terminal.say(`page error ${message.split('\n', 1)[0]}`);
    },
  }).catch(async (error: unknown) => {
    await browser.close();
    throw error;
  });
  const preview = options.preview ? `${proxy.url}/preview` : null;
  terminal.emit({ event: 'serving', project, url: proxy.url, preview });
  terminal.say(`${project} for phones at ${proxy.url}`);
  if (preview) terminal.say(`what each interaction costs: ${preview}`);
  if (!proxy.local) terminal.say('  everyone in this network can use it; leave out --host to keep it to this machine');
  browser.once('disconnected', () => {
    if (!signal.aborted) terminal.say('Chromium has ended; press Ctrl-C and start the command again');
  });
  return {
    url: proxy.url,
    refresh: () => proxy.refresh(),
    async close() {
      await proxy.close();
      await browser.close();
    },
  };
}

function logExchange(terminal: Terminal, exchange: Exchange): void {
  terminal.emit({ event: 'exchange', ...exchange, milliseconds: Math.round(exchange.milliseconds) });
  const cost =
    exchange.kind === 'local'
      ? '0 B'
      : `sent ${bytes(exchange.bytesUp)}, received ${bytes(exchange.bytesDown)}, ${Math.round(exchange.milliseconds)}ms`;
  terminal.say(`${exchange.kind.padEnd(10)} ${exchange.type} ${exchange.label} (${cost})`.replace(/\s+\(/, ' ('));
}
