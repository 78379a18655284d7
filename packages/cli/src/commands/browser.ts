import { resolve } from 'node:path';
import type { BrowserSessionSummary } from '@aws-sdk/client-bedrock-agentcore';
import { InvalidArgumentError } from '@commander-js/extra-typings';
import { CliError } from '../cli-error.ts';
import { commandGroup, platformCommand } from '../command.ts';
import { dataClient, objectClient } from '../platform/clients.ts';
import { type Connection, findConnection } from '../platform/connection.ts';
import { credentialsOf } from '../platform/credentials.ts';
import { patience } from '../terminal/progress.ts';
import { columns, harmless, note, print, printJson, type Terminal, typed } from '../terminal/terminal.ts';
import { printDone } from './iam-request.ts';

const BUILT_IN = 'aws.browser.v1';

/** Sessions of browsers. */
export function browserCommand(terminal: Terminal) {
  return commandGroup('browser', 'Start, watch, replay, list and stop browser sessions.', [
    startCommand(terminal),
    openCommand(terminal),
    replayCommand(terminal),
    listCommand(terminal),
    stopCommand(terminal),
  ]);
}

function startCommand(terminal: Terminal) {
  return platformCommand('start', {
    summary: 'Start a browser session: a Chromium in a sandbox of its own.',
    details:
      'Prints the id of the session and where programs drive it (CDP). The handshake has to be signed: BrowserClient.generateWsHeaders() in ' +
      'TypeScript and generate_ws_headers() in Python do so.',
    examples: [
      { does: 'of the built-in browser, for an hour', line: 'agentcore browser start' },
      { does: 'a small page for ten minutes', line: 'agentcore browser start --view-port 800x600 --timeout 600' },
    ],
  })
    .option('--browser <id>', 'browser', BUILT_IN)
    .option('--name <name>', 'name of the session')
    .option('--timeout <seconds>', 'when it ends by itself; at most 28800 (default: 3600)', wholeNumber)
    .option('--view-port <size>', 'size of the page (default: 1456x819)', size)
    .action(async (options) => {
      const connection = await findConnection(terminal, options);
      const { StartBrowserSessionCommand } = await import('@aws-sdk/client-bedrock-agentcore');
      const client = await dataClient(connection);
      const started = patience(terminal, 'starting a session (the first one of a machine makes its image)');
      const answer = await client
        .send(
          new StartBrowserSessionCommand({
            browserIdentifier: options.browser,
            name: options.name,
            sessionTimeoutSeconds: options.timeout,
            viewPort: options.viewPort,
          }),
        )
        .finally(started);
      const automation = answer.streams?.automationStream?.streamEndpoint;
      if (options.json)
        return printJson(terminal, {
          browserIdentifier: answer.browserIdentifier,
          sessionId: answer.sessionId,
          automation,
        });
      print(terminal, harmless(answer.sessionId ?? ''));
      note(terminal, harmless(`Programs drive it at ${automation}`));
      note(terminal, typed(terminal, `Watch it at the address of: agentcore browser open ${answer.sessionId}`));
      note(terminal, typed(terminal, `End it with: agentcore browser stop ${answer.sessionId}`));
    });
}

function openCommand(terminal: Terminal) {
  return platformCommand('open', {
    summary: 'Print an address at which a person watches a session and takes control of it.',
    details:
      'Open the address in a browser within five minutes. The page stays whole through reloads, as long as the session lives and your ' +
      'access key counts. Whoever has the address can use the session.',
    examples: [
      { does: 'to watch and to take control', line: 'agentcore browser open e75c051150d44b30972d83425dcdbd17' },
      { does: 'only to watch', line: 'agentcore browser open e75c051150d44b30972d83425dcdbd17 --read-only' },
    ],
  })
    .argument('<session>', 'id of the session')
    .option('--browser <id>', 'browser', BUILT_IN)
    .option('--read-only', 'an address that only shows')
    .action(async (sessionId, options) => {
      const connection = await findConnection(terminal, options);
      // Loaded here: the SDK costs a third of a second, which --help must not pay.
      const { BrowserClient } = await import('agentplatform/browser');
      const client = new BrowserClient(connection.region, {
        endpoint: connection.endpoint,
        credentials: credentialsOf(connection),
        identifier: options.browser,
        sessionId,
      });
      const url = await client.generateLiveViewUrl({ readOnly: options.readOnly === true });
      if (options.json) return printJson(terminal, { sessionId, url });
      print(terminal, harmless(url));
    });
}

function replayCommand(terminal: Terminal) {
  return platformCommand('replay', {
    summary: 'Save the recording of a session as one page that plays it.',
    details:
      'The page needs no network: open it in any browser. A list shows what happened, and a click on a line shows the picture of that moment. ' +
      'What is still being recorded is saved as far as it is.',
    examples: [
      {
        does: 'of a session',
        line: 'agentcore browser replay e75c051150d44b30972d83425dcdbd17 --browser shop-AbCdEf0123',
      },
      { does: 'of a place', line: 'agentcore browser replay s3://recordings/shop/e75c051150d44b30972d83425dcdbd17/' },
    ],
  })
    .argument('<recording>', 'id of the session, or the s3:// place of its recording')
    .option('--browser <id>', 'browser', BUILT_IN)
    .option('--out <file>', 'where the page is saved (default: replay.html)')
    .action(async (named, options) => {
      const connection = await findConnection(terminal, options);
      const place = named.startsWith('s3://') ? named : await recordingOf(connection, options.browser, named);
      const { recordingLocation, writeReplay } = await import('../replay/write-replay.ts');
      const from = recordingLocation(place);
      if (!from) throw new CliError('usage', `${place} is no place of a recording.`, 'It must be s3://BUCKET/PREFIX/.');
      const file = resolve(terminal.cwd, options.out ?? 'replay.html');
      const segments = await writeReplay(await objectClient(connection), from, file);
      if (segments === 0)
        throw new CliError(
          'notFound',
          `There is no recording at ${place}.`,
          'The first second of a session may not be stored yet.',
        );
      printDone(terminal, options.json, { file, segments }, `The recording is in ${file}. Open it in a browser.`);
    });
}

async function recordingOf(connection: Connection, browserIdentifier: string, sessionId: string): Promise<string> {
  const { GetBrowserSessionCommand } = await import('@aws-sdk/client-bedrock-agentcore');
  const client = await dataClient(connection);
  const { sessionReplayArtifact } = await client.send(new GetBrowserSessionCommand({ browserIdentifier, sessionId }));
  if (sessionReplayArtifact) return sessionReplayArtifact;
  throw new CliError(
    'usage',
    `Session ${sessionId} is not recorded.`,
    'Make a browser with recording, and start its sessions there.',
  );
}

function listCommand(terminal: Terminal) {
  return platformCommand('list', {
    summary: 'List your sessions of a browser, the newest first.',
    examples: [
      { does: 'those that live', line: 'agentcore browser list' },
      { does: 'those that have ended, too', line: 'agentcore browser list --all' },
    ],
  })
    .option('--browser <id>', 'browser', BUILT_IN)
    .option('--all', 'also those that have ended')
    .action(async (options) => {
      const connection = await findConnection(terminal, options);
      const { ListBrowserSessionsCommand } = await import('@aws-sdk/client-bedrock-agentcore');
      const client = await dataClient(connection);
      const wanted = { browserIdentifier: options.browser, ...(options.all ? {} : { status: 'READY' as const }) };
      const sessions: BrowserSessionSummary[] = [];
      let nextToken: string | undefined;
      do {
        const page = await client.send(new ListBrowserSessionsCommand({ ...wanted, nextToken }));
        sessions.push(...(page.items ?? []));
        nextToken = page.nextToken;
      } while (nextToken !== undefined);
      if (options.json) return printJson(terminal, sessions);
      if (sessions.length === 0)
        return note(terminal, typed(terminal, 'There are no sessions. Start one with: agentcore browser start'));
      const rows = sessions.map(({ sessionId = '', name = '', status = '', createdAt }) =>
        [sessionId, name, status, createdAt?.toISOString() ?? ''].map(harmless),
      );
      for (const line of columns([['SESSION', 'NAME', 'STATUS', 'STARTED'], ...rows])) print(terminal, line);
    });
}

function stopCommand(terminal: Terminal) {
  return platformCommand('stop', {
    summary: 'End a browser session. What it has on its disk is gone then.',
    examples: [{ does: 'end one', line: 'agentcore browser stop e75c051150d44b30972d83425dcdbd17' }],
  })
    .argument('<session>', 'id of the session')
    .option('--browser <id>', 'browser', BUILT_IN)
    .action(async (sessionId, options) => {
      const connection = await findConnection(terminal, options);
      const { StopBrowserSessionCommand } = await import('@aws-sdk/client-bedrock-agentcore');
      const client = await dataClient(connection);
      await client.send(new StopBrowserSessionCommand({ browserIdentifier: options.browser, sessionId }));
      printDone(terminal, options.json, { sessionId, stopped: true }, `Session ${sessionId} has ended.`);
    });
}

function wholeNumber(text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number of seconds.');
}

function size(text: string): { width: number; height: number } {
  const [, width, height] = /^(\d{3,4})x(\d{3,4})$/.exec(text) ?? [];
  if (width !== undefined && height !== undefined) return { width: Number(width), height: Number(height) };
  throw new InvalidArgumentError('It must be WIDTHxHEIGHT, such as 1280x720.');
}
