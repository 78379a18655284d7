import { DEFAULT_DEVICE, DEVICES } from '../preview/devices.ts';
import type { CommandContext, ExitStatus } from './context.ts';

export interface OptionSpec {
  readonly flags: string;
  readonly summary: string;
  readonly number?: { readonly min: number; readonly max: number };
  readonly choices?: readonly string[];
}

/** A command as data: the program, the help and the guide are made from it. */
export interface CommandSpec {
  readonly name: string;
  readonly summary: string;
  readonly args?: readonly { readonly name: string; readonly summary: string; readonly required: boolean }[];
  readonly options: readonly OptionSpec[];
  readonly examples: readonly string[];
  /** Commands load their code when they run, so that `build` starts without the browser driver. */
  readonly run: (options: object, args: readonly string[], context: CommandContext) => Promise<ExitStatus>;
}

const JSON_OPTION: OptionSpec = { flags: '--json', summary: 'write JSON lines for programs instead of sentences' };
const PRODUCTION: OptionSpec = {
  flags: '--production',
  summary: 'minify the JavaScript files and write no source maps',
};
const PORT: OptionSpec = { flags: '--port <number>', summary: 'port to listen on', number: { min: 0, max: 65_535 } };
const HOST: OptionSpec = { flags: '--host <address>', summary: 'address to listen on instead of this machine alone' };

const DEVICE: OptionSpec = {
  flags: '--device <name>',
  summary: `screen: ${Object.entries(DEVICES)
    .map(([name, d]) => `${name} ${d.width}×${d.height}`)
    .join(', ')} (default: ${DEFAULT_DEVICE})`,
  choices: Object.keys(DEVICES),
};

export const COMMANDS: readonly CommandSpec[] = [
  {
    name: 'new',
    summary: 'Make a new application from the scaffold.',
    args: [{ name: 'name', summary: 'folder to make; its last part names the application', required: true }],
    options: [
      { flags: '--theme <name>', summary: 'name of the theme folder' },
      { flags: '--handset <spec>', summary: 'what package.json asks for as "handset": a version, folder or archive' },
      JSON_OPTION,
    ],
    examples: ['npx handset new my-app', 'npx handset new my-app --theme night'],
    run: async (options, [name = ''], context) =>
      (await import('../commands/new.ts')).newCommand(name, options, context),
  },
  {
    name: 'watch',
    summary: 'Compile on every save; with --server also serve public/ and refresh the browser.',
    options: [
      { flags: '-s, --server', summary: 'serve public/ at http://localhost:3333' },
      {
        flags: '--proxy',
        summary: 'also show it as a phone behind the proxy does, at the next port: http://localhost:3334/preview',
      },
      PORT,
      HOST,
      PRODUCTION,
      JSON_OPTION,
    ],
    examples: [
      'npx handset watch --server',
      'npx handset watch --server --proxy',
      'npx handset watch --server --port 8080',
      'npx handset watch --production',
    ],
    run: async (options, _args, context) => (await import('../commands/watch.ts')).watchCommand(options, context),
  },
  {
    name: 'build',
    summary: 'Compile the sources into public/ once.',
    options: [
      PRODUCTION,
      { flags: '--clean', summary: 'also remove files in public/ that handset did not write' },
      JSON_OPTION,
    ],
    examples: ['npx handset build', 'npx handset build --production', 'npx handset build --json'],
    run: async (options, _args, context) => (await import('../commands/build.ts')).buildCommand(options, context),
  },
  {
    name: 'test',
    summary: 'Run the unit tests of CoffeeScript and JavaScript sources in a DOM.',
    options: [{ flags: '--grep <text>', summary: 'run only tests whose name holds this text' }, JSON_OPTION],
    examples: ['npx handset test', 'npx handset test --grep search', 'npx handset test --json'],
    run: async (options, _args, context) => (await import('../commands/test.ts')).testCommand(options, context),
  },
  {
    name: 'lint',
    summary: 'Hold the application against the limits of the devices.',
    options: [JSON_OPTION],
    examples: ['npx handset lint', 'npx handset lint --json'],
    run: async (options, _args, context) => (await import('../commands/lint.ts')).lintCommand(options, context),
  },
  {
    name: 'pack',
    summary: 'Build for production and write the .wgt archive that a device or an IDE imports.',
    options: [{ flags: '--out <file>', summary: 'archive to write instead of <name>.wgt' }, JSON_OPTION],
    examples: ['npx handset pack', 'npx handset pack --out build/my-app.wgt'],
    run: async (options, _args, context) => (await import('../commands/pack.ts')).packCommand(options, context),
  },
  {
    name: 'preview',
    summary: 'Open the application in Chromium as a device shows it, with web security off.',
    options: [
      DEVICE,
      { flags: '--url <address>', summary: 'show this address instead of building and serving the project' },
      { flags: '--screenshot <file>', summary: 'write a PNG and end, without a window' },
      { flags: '--headless', summary: 'open no window' },
      JSON_OPTION,
    ],
    examples: [
      'npx handset preview',
      'npx handset preview --device touch-landscape',
      'npx handset preview --device keys --screenshot keys.png',
    ],
    run: async (options, _args, context) => (await import('../commands/preview.ts')).previewCommand(options, context),
  },
  {
    name: 'proxy',
    summary:
      'Run pages here, in headless Chromium, and send phones flat documents with local shortcuts; follows every save.',
    options: [
      {
        flags: '--preview',
        summary: 'serve /preview: which interactions were local, which cost a round trip, and how much',
      },
      PORT,
      HOST,
      DEVICE,
      { flags: '--visits <number>', summary: 'most visits at a time (default: 8)', number: { min: 1, max: 200 } },
      {
        flags: '--idle <seconds>',
        summary: 'end a visit after this long without a request (default: 600)',
        number: { min: 5, max: 86_400 },
      },
      JSON_OPTION,
    ],
    examples: [
      'npx handset proxy --preview',
      'npx handset proxy --port 8080 --visits 20',
      'npx handset proxy --device keys',
    ],
    run: async (options, _args, context) => (await import('../commands/proxy.ts')).proxyCommand(options, context),
  },
];
