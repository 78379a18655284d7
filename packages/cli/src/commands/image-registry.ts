import { text } from 'node:stream/consumers';
import { CliError } from '../cli-error.ts';
import { commandGroup, platformCommand } from '../command.ts';
import { adminJson, segment } from '../platform/admin.ts';
import { type ConnectionFlags, findConnection } from '../platform/connection.ts';
import { askSecret, askText } from '../terminal/ask.ts';
import { isInteractive, type Terminal } from '../terminal/terminal.ts';
import { printDone } from './iam-request.ts';

/** What the platform asks private registries with when it fetches an agent's image. */
export function imageRegistryCommand(terminal: Terminal) {
  return commandGroup('image-registry', 'Give the platform the credentials of private image registries.', [
    loginCommand(terminal),
    logoutCommand(terminal),
  ]);
}

function loginCommand(terminal: Terminal) {
  return platformCommand('login', {
    summary: 'Store the user name and password for a private registry.',
    details:
      'The platform keeps them encrypted, for this account, and never gives them back. It uses them when it fetches an image ' +
      'of that registry, and does not check them now. They replace what was stored for that registry before.',
    examples: [
      { does: 'be asked for the password', line: 'agentcore image-registry login ghcr.io --username ada' },
      {
        does: 'in a script; the password is not seen in the list of processes',
        line: 'agentcore image-registry login registry.example.com:5000 --username ci --password-stdin < password.txt',
      },
    ],
  })
    .argument('<host>', 'the registry, as in the image’s name: ghcr.io, localhost:5000; docker.io for Docker Hub')
    .option('-u, --username <name>', 'user name in that registry')
    .option('--password-stdin', 'read the password, or an access token, from standard input')
    .action(async (host, options) => {
      const username = options.username ?? (await askUsername(terminal));
      const password = await readPassword(terminal, options.passwordStdin);
      await call(terminal, options, 'PUT', host, { username, password });
      printDone(
        terminal,
        options.json,
        { host, username },
        `Images of ${host} are fetched as ${username} from now on.`,
      );
    });
}

function logoutCommand(terminal: Terminal) {
  return platformCommand('logout', {
    summary: 'Forget the credentials of a registry.',
    examples: [
      { does: 'images of ghcr.io are fetched without a name', line: 'agentcore image-registry logout ghcr.io' },
    ],
  })
    .argument('<host>', 'the registry, as it was given to login')
    .action(async (host, options) => {
      await call(terminal, options, 'DELETE', host);
      printDone(terminal, options.json, { host, deleted: true }, `The credentials for ${host} are forgotten.`);
    });
}

async function call(
  terminal: Terminal,
  flags: ConnectionFlags,
  method: 'PUT' | 'DELETE',
  host: string,
  body?: { username: string; password: string },
): Promise<void> {
  const connection = await findConnection(terminal, flags);
  const path = `/registry-credentials/${segment(host)}`;
  await adminJson(connection, { method, path, body, signal: terminal.signal });
}

async function askUsername(terminal: Terminal): Promise<string> {
  if (!isInteractive(terminal)) throw new CliError('usage', 'Say who: --username NAME.');
  return askText(terminal, 'User name in the registry', '', (value) => (value ? undefined : 'A name is needed.'));
}

async function readPassword(terminal: Terminal, fromStdin: boolean | undefined): Promise<string> {
  if (!fromStdin && isInteractive(terminal)) return askSecret(terminal, 'Password or access token');
  if (!fromStdin) throw new CliError('usage', 'There is no terminal to ask for the password. Use --password-stdin.');
  // An editor or echo leaves a line end behind, which is no part of it.
  const password = (await text(terminal.stdin)).replace(/\r?\n$/, '');
  if (password === '') throw new CliError('usage', 'The password on standard input is empty.');
  return password;
}
