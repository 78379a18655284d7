import { commandGroup, platformCommand } from '../command.ts';
import { type AdminRequest, adminJson, segment } from '../platform/admin.ts';
import { type ConnectionFlags, findConnection } from '../platform/connection.ts';
import { resolveRuntime } from '../platform/runtimes.ts';
import { findProject } from '../project/load-project.ts';
import { note, type Terminal, typed } from '../terminal/terminal.ts';
import { fieldOf, printDone, printList, printMembers } from './iam-request.ts';
import { readSecret } from './read-secret.ts';

interface SecretFlags extends ConnectionFlags {
  runtime?: string;
}

/** What agents work with and nobody is to read, such as keys of models. */
export function secretCommand(terminal: Terminal) {
  return commandGroup('secret', 'Keep keys and passwords for agents.', [
    setCommand(terminal),
    listCommand(terminal),
    showCommand(terminal),
    deleteCommand(terminal),
  ]);
}

function setCommand(terminal: Terminal) {
  return secretSubcommand('set', {
    summary: 'Set a secret, such as the key of a model.',
    details:
      'The platform keeps it encrypted and never shows it. An agent gets it as an environment variable of that name when agentcore.json ' +
      'names it in "secrets" (agentcore deploy --secret NAME). New sessions get a new value. Running sessions keep the old one. ' +
      'A credential provider can read it, too: store JSON, and give the provider the ARN and the name in the JSON.',
    examples: [
      { does: 'type the value at a prompt', line: 'agentcore secret set OPENAI_API_KEY' },
      { does: 'from a file or a password manager', line: 'agentcore secret set OPENAI_API_KEY < key.txt' },
      { does: 'for one agent alone', line: 'agentcore secret set OPENAI_API_KEY --runtime my_agent' },
      {
        does: 'for a credential provider: JSON with the secret under a key',
        line: 'agentcore secret set CRM < crm.json',
      },
    ],
  })
    .argument('<name>', 'name of the secret and of the environment variable: capital letters, digits and _')
    .action(async (name, options) => {
      const value = await readSecret(terminal, `Value of ${name}`, `agentcore secret set ${name} < FILE`);
      await call(terminal, options, { method: 'PUT', path: `/secrets/${segment(name)}`, body: { value } });
      const arn = await arnOf(terminal, options, name);
      const says = `${name} is set. New sessions get it.${arn === undefined ? '' : `\n${arn}`}`;
      printDone(terminal, options.json, { name, set: true, arn }, says);
      const project = await findProject(terminal.cwd).catch(() => undefined);
      if (project && !project.file.secrets?.includes(name))
        note(terminal, typed(terminal, `Give it to the agent in this folder:  agentcore deploy --secret ${name}`));
    });
}

function listCommand(terminal: Terminal) {
  return secretSubcommand('list', {
    summary: 'List secrets: names, when they were set and by whom. Values are never shown.',
    examples: [
      { does: 'the secrets that any agent may use', line: 'agentcore secret list' },
      { does: 'those of one agent alone', line: 'agentcore secret list --runtime my_agent' },
    ],
  }).action(async (options) => {
    const value = await call(terminal, options, { path: '/secrets' });
    const none = typed(terminal, 'There are no secrets; set one with: agentcore secret set NAME');
    printList(terminal, options.json, value, { member: 'secrets', fields: ['name', 'setAt', 'setBy', 'arn'], none });
  });
}

function showCommand(terminal: Terminal) {
  return secretSubcommand('show', {
    summary: 'Show what is known of a secret: its ARN, when it was set and by whom. The value is never shown.',
    examples: [
      { does: 'its ARN, for a credential provider', line: 'agentcore secret show CRM' },
      { does: 'the same in a script', line: 'agentcore secret show CRM --json | jq -r .arn' },
    ],
  })
    .argument('<name>', 'name of the secret')
    .action(async (name, options) => {
      const value = await call(terminal, options, { path: `/secrets/${segment(name)}` });
      printMembers(terminal, options.json, value, ['name', 'arn', 'setAt', 'setBy', 'runtimeId']);
    });
}

function deleteCommand(terminal: Terminal) {
  return secretSubcommand('delete', {
    summary: 'Delete a secret.',
    details: 'Agents that use it start no new sessions until it is set again.',
    examples: [{ does: 'forget it', line: 'agentcore secret delete OPENAI_API_KEY' }],
  })
    .argument('<name>', 'name of the secret')
    .action(async (name, options) => {
      await call(terminal, options, { method: 'DELETE', path: `/secrets/${segment(name)}` });
      printDone(terminal, options.json, { name, deleted: true }, `${name} is deleted.`);
    });
}

function secretSubcommand(name: string, words: Parameters<typeof platformCommand>[1]) {
  return platformCommand(name, words).option(
    '--runtime <name>',
    'for this agent alone; name, id or ARN (default: for every agent of the account)',
  );
}

async function call(terminal: Terminal, flags: SecretFlags, request: AdminRequest): Promise<unknown> {
  const connection = await findConnection(terminal, flags);
  const runtime = flags.runtime === undefined ? undefined : await resolveRuntime(terminal, connection, flags.runtime);
  const query = runtime && { query: { runtime: runtime.id } };
  return adminJson(connection, { ...request, ...query, signal: terminal.signal });
}

/** Undefined where the user may set the secret and not look at it. */
async function arnOf(terminal: Terminal, flags: SecretFlags, name: string): Promise<string | undefined> {
  const found = await call(terminal, flags, { path: `/secrets/${segment(name)}` }).catch(() => undefined);
  const arn = fieldOf(found, 'arn');
  return typeof arn === 'string' ? arn : undefined;
}
