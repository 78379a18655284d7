import { CliError } from '../cli-error.ts';
import { type CommandText, commandGroup, platformCommand } from '../command.ts';
import { type AdminRequest, adminJson, segment } from '../platform/admin.ts';
import { type ConnectionFlags, findConnection } from '../platform/connection.ts';
import { print, type Terminal } from '../terminal/terminal.ts';
import { fieldOf, printDone, printList, printMembers } from './iam-request.ts';

const FIELDS = ['arn', 'spec', 'state', 'description', 'createdAt', 'createdBy', 'deletionAt'];
const EXAMPLE = '1b2c3d4e-5f60-4718-9a2b-3c4d5e6f7081';

/** Keys that never leave the platform, and the one that it seals everything secret with. */
export function keyCommand(terminal: Terminal) {
  return commandGroup('key', 'Manage keys that encrypt and sign. They never leave the platform.', [
    createCommand(terminal),
    listCommand(terminal),
    showCommand(terminal),
    stateCommand(terminal, 'disable', {
      summary: 'Make a key unusable until it is enabled again.',
      details: 'What it encrypts, such as the tokens of a token vault, cannot be used meanwhile.',
      examples: [{ does: 'at once, on every server', line: `agentcore key disable ${EXAMPLE}` }],
    }),
    stateCommand(terminal, 'enable', {
      summary: 'Make a disabled key usable again.',
      examples: [{ does: 'after its deletion was cancelled', line: `agentcore key enable ${EXAMPLE}` }],
    }),
    deleteCommand(terminal),
    stateCommand(terminal, 'cancel-deletion', {
      summary: 'Cancel the deletion of a key. The key stays disabled.',
      examples: [{ does: 'keep it', line: `agentcore key cancel-deletion ${EXAMPLE}` }],
    }),
    rotateMasterCommand(terminal),
  ]);
}

function createCommand(terminal: Terminal) {
  return platformCommand('create', {
    summary: 'Make a key, and show its ARN.',
    details:
      'SYMMETRIC_DEFAULT encrypts the token vault (SetTokenVaultCMK). RSA_2048 (RS256 and PS256) and ECC_NIST_P256 (ES256) sign, for ' +
      'OAuth2 clients that authenticate by a signature.',
    examples: [
      { does: 'for the token vault', line: 'agentcore key create --description "token vault"' },
      { does: 'for an OAuth2 client that signs', line: 'agentcore key create --spec ECC_NIST_P256 --description crm' },
    ],
  })
    .option('--spec <kind>', 'SYMMETRIC_DEFAULT, RSA_2048 or ECC_NIST_P256', 'SYMMETRIC_DEFAULT')
    .option('--description <text>', 'what it is for, up to 256 characters')
    .action(async ({ spec, description, ...flags }) => {
      const body = { spec, ...(description === undefined ? {} : { description }) };
      const made = await call(terminal, flags, { method: 'POST', path: '/keys', body });
      printDone(terminal, flags.json, made, String(fieldOf(made, 'arn')));
    });
}

function listCommand(terminal: Terminal) {
  return platformCommand('list', {
    summary: 'List keys: what they are for and whether they can be used.',
    examples: [{ does: 'all of the account', line: 'agentcore key list' }],
  }).action(async (flags) => {
    const value = await call(terminal, flags, { path: '/keys' });
    const none = 'There are no keys; make one with: agentcore key create';
    printList(terminal, flags.json, value, {
      member: 'keys',
      fields: ['id', 'spec', 'state', 'description', 'arn'],
      none,
    });
  });
}

function showCommand(terminal: Terminal) {
  return platformCommand('show', {
    summary: 'Show a key: its ARN and state, or its public key.',
    examples: [
      { does: 'what is known of it', line: `agentcore key show ${EXAMPLE}` },
      { does: 'its public key, for the provider that verifies', line: `agentcore key show ${EXAMPLE} --public-key` },
      { does: 'as JWK and PEM', line: `agentcore key show ${EXAMPLE} --public-key --json` },
    ],
  })
    .argument('<key>', 'id or ARN of the key')
    .option('--public-key', 'its public key in PEM; with --json also as JWK')
    .action(async (key, { publicKey, ...flags }) => {
      const path = `/keys/${segment(idOf(key))}`;
      if (!publicKey) {
        printMembers(terminal, flags.json, await call(terminal, flags, { path }), FIELDS);
        return;
      }
      const found = await call(terminal, flags, { path: `${path}/public-key` });
      if (flags.json) printMembers(terminal, true, found, []);
      else print(terminal, String(fieldOf(found, 'pem')).trim());
    });
}

function deleteCommand(terminal: Terminal) {
  return platformCommand('delete', {
    summary: 'Delete a key after some days. Until then you can cancel it.',
    details:
      'The key cannot be used from now on. Once it is deleted, everything that it encrypts is lost. A token vault then needs ResetTokenVaultKeyMaterial.',
    examples: [
      { does: 'in 30 days', line: `agentcore key delete ${EXAMPLE}` },
      { does: 'at once; it cannot be brought back', line: `agentcore key delete ${EXAMPLE} --days 0` },
    ],
  })
    .argument('<key>', 'id or ARN of the key')
    .option('--days <number>', 'from 0 to 30', '30')
    .action(async (key, { days, ...flags }) => {
      if (!/^\d{1,2}$/.test(days)) throw new CliError('usage', '--days must be a whole number from 0 to 30.');
      const path = `/keys/${segment(idOf(key))}/schedule-deletion`;
      const ended = await call(terminal, flags, { method: 'POST', path, body: { days: Number(days) } });
      const at = fieldOf(ended, 'deletionAt');
      const says = at === undefined ? `${key} is deleted.` : `${key} will be deleted at ${at}, unless you cancel it.`;
      printDone(terminal, flags.json, ended, says);
    });
}

/** A command that changes what may be done with a key. */
function stateCommand(terminal: Terminal, name: 'disable' | 'enable' | 'cancel-deletion', words: CommandText) {
  return platformCommand(name, words)
    .argument('<key>', 'id or ARN of the key')
    .action(async (key, flags) => {
      const changed = await call(terminal, flags, { method: 'POST', path: `/keys/${segment(idOf(key))}/${name}` });
      printDone(terminal, flags.json, changed, `${key}: ${fieldOf(changed, 'state')}`);
    });
}

function rotateMasterCommand(terminal: Terminal) {
  return platformCommand('rotate-master', {
    summary: 'Replace the master key that encrypts every secret. The platform keeps running.',
    details:
      'The command adds a key to the file of master keys, encrypts all data keys with it, and removes the old one. Back the file up again afterwards. With ' +
      'keys from the configuration, or with several servers, it encrypts everything with the first key. You can then remove the others.',
    examples: [{ does: 'and show the id of the new one', line: 'agentcore key rotate-master' }],
  }).action(async (flags) => {
    const done = await call(terminal, flags, { method: 'POST', path: '/master-key/rotate' });
    const kept = fieldOf(done, 'keysKept') === true;
    const next = kept
      ? 'Remove the other keys from the file or the configuration of every server.'
      : 'Back up the file of master keys now.';
    const says = `The master key is ${fieldOf(done, 'keyId')} now; ${fieldOf(done, 'resealed')} data keys were encrypted again. ${next}`;
    printDone(terminal, flags.json, done, says);
  });
}

/** The id of a key by its ARN; an id as it is. */
function idOf(key: string): string {
  return key.slice(key.lastIndexOf('/') + 1);
}

async function call(terminal: Terminal, flags: ConnectionFlags, request: AdminRequest): Promise<unknown> {
  return adminJson(await findConnection(terminal, flags), { ...request, signal: terminal.signal });
}
