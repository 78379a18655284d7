import { Option } from '@commander-js/extra-typings';
import { commandGroup, platformCommand } from '../command.ts';
import { controlClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { kindOf, listProviders, PROVIDER_KINDS, removeProvider, showProvider } from '../platform/identity.ts';
import { note, printJson, type Terminal, typed } from '../terminal/terminal.ts';
import { printDone, printList, printMembers } from './iam-request.ts';
import { addCommand } from './identity-add.ts';
import { grantsCommand, revokeCommand } from './identity-grants.ts';
import { testProviderCommand } from './identity-test.ts';

/** Where agents get keys and tokens of other services from. */
export function identityCommand(terminal: Terminal) {
  return commandGroup('identity', 'Manage the API keys and OAuth2 clients from which agents get credentials.', [
    addCommand(terminal),
    listCommand(terminal),
    showCommand(terminal),
    removeCommand(terminal),
    grantsCommand(terminal),
    revokeCommand(terminal),
    testProviderCommand(terminal),
  ]);
}

function listCommand(terminal: Terminal) {
  return platformCommand('list', {
    summary: 'List credential providers: names, kinds and ARNs. Secrets are never shown.',
    examples: [
      { does: 'all of the account', line: 'agentcore identity list' },
      { does: 'names in a script', line: "agentcore identity list --json | jq -r '.[].name'" },
    ],
  }).action(async (options) => {
    const client = await controlClient(await findConnection(terminal, options));
    const providers = await listProviders(client);
    const none = typed(terminal, 'There are no providers; add one with: agentcore identity add api-key NAME');
    printList(
      terminal,
      options.json,
      { providers },
      { member: 'providers', fields: ['name', 'kind', 'vendor', 'arn'], none },
    );
  });
}

function showCommand(terminal: Terminal) {
  return platformCommand('show', {
    summary: 'Show a credential provider. The secret is never shown.',
    details: 'The callback URL of an OAuth2 provider is the redirect URI to register at its server.',
    examples: [
      { does: 'its settings', line: 'agentcore identity show orders' },
      { does: 'its redirect URI in a script', line: 'agentcore identity show orders --json | jq -r .callbackUrl' },
    ],
  })
    .argument('<name>', 'name of the provider')
    .addOption(kindOption())
    .action(async (name, { kind: wanted, ...flags }) => {
      const client = await controlClient(await findConnection(terminal, flags));
      const shown = await showProvider(client, await kindOf(client, name, wanted), name);
      if (flags.json) printJson(terminal, shown);
      else printMembers(terminal, false, shown, MEMBERS);
    });
}

const MEMBERS = [
  'name',
  'kind',
  'credentialProviderVendor',
  'credentialProviderArn',
  'callbackUrl',
  'status',
  'createdTime',
];

function removeCommand(terminal: Terminal) {
  return platformCommand('remove', {
    summary: 'Remove a credential provider, with its secret and all tokens from it.',
    examples: [
      { does: 'agents get no more credentials from it', line: 'agentcore identity remove search' },
      { does: 'where several kinds have that name', line: 'agentcore identity remove search --kind oauth2' },
    ],
  })
    .argument('<name>', 'name of the provider')
    .addOption(kindOption())
    .action(async (name, { kind: wanted, ...flags }) => {
      const client = await controlClient(await findConnection(terminal, flags));
      const kind = await kindOf(client, name, wanted);
      await removeProvider(client, kind, name);
      printDone(terminal, flags.json, { name, kind, removed: true }, `${name} is removed.`);
      if (kind === 'oauth2') note(terminal, 'The provider’s server is not told. Remove the client there as well.');
    });
}

function kindOption() {
  return new Option('--kind <kind>', 'kind of the provider, if several have that name').choices(PROVIDER_KINDS);
}
