import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { findConnection } from '../platform/connection.ts';
import { type AtProvider, type ListedGrant, listGrants, revokeGrant } from '../platform/grants.ts';
import { print, printJson, type Terminal } from '../terminal/terminal.ts';
import { printList } from './iam-request.ts';

/** `agentcore identity grants`: what users have allowed agents. */
export function grantsCommand(terminal: Terminal) {
  return platformCommand('grants', {
    summary: 'List what users have allowed agents: who, which agent, which provider, which scopes.',
    details:
      'All grants of the account, newest first, or those of a user, a provider or an agent. Tokens are never shown.',
    examples: [
      { does: 'of one user, by the id that your application uses', line: 'agentcore identity grants --user ada' },
      {
        does: 'of a user of an identity provider',
        line: 'agentcore identity grants --issuer https://id.example.com --subject 00u1',
      },
      { does: 'at one provider', line: 'agentcore identity grants --provider orders' },
      {
        does: 'take back all of one user',
        line: "agentcore identity grants --user ada --json | jq -r '.[].id' | xargs -r agentcore identity revoke",
      },
    ],
  })
    .option('--user <id>', 'grants of this user, by the id that your application uses')
    .option('--issuer <url>', 'with --subject: issuer of the user’s tokens')
    .option('--subject <subject>', 'with --issuer: subject of the user at that issuer')
    .option('--provider <name>', 'an OAuth2 credential provider')
    .option('--workload <name>', 'an agent, by the name of its workload identity')
    .action(async ({ user, issuer, subject, provider, workload, ...flags }) => {
      const half = (issuer === undefined) !== (subject === undefined);
      if (half || (user !== undefined && issuer !== undefined))
        throw new CliError('usage', 'Name a user by --user, or by both --issuer and --subject.');
      const connection = await findConnection(terminal, flags);
      const filter = { user, issuer, subject, provider, workload };
      const grants = await listGrants(connection, filter, terminal.signal);
      if (flags.json) printJson(terminal, grants);
      else {
        const fields = ['id', 'user', 'workload', 'provider', 'scopes', 'granted'];
        const none = 'There are no such grants.';
        printList(terminal, false, { grants: grants.map(row) }, { member: 'grants', fields, none });
      }
    });
}

function row({ id, user, workload, credentialProviderArn, scopes, grantedAt }: ListedGrant) {
  return {
    ...{ id, workload, scopes: scopes.join(' '), granted: grantedAt },
    user: 'userId' in user ? user.userId : `${user.subject} of ${user.issuer}`,
    provider: credentialProviderArn.slice(credentialProviderArn.lastIndexOf('/') + 1),
  };
}

/** What became of a grant at its provider, after "is over here". */
const AT_PROVIDER: Readonly<Record<AtProvider, string>> = {
  revoked: 'its provider was told',
  'not-offered':
    'its provider does not support revocation, so tokens that the agent already has may work until they expire',
  failed: 'its provider could not be told, so tokens that the agent already has may work until they expire',
};

/** `agentcore identity revoke`: ends grants. */
export function revokeCommand(terminal: Terminal) {
  return platformCommand('revoke', {
    summary: 'Take back what a user has allowed an agent.',
    details:
      'The grant ends at once. The platform also tells the provider, if the provider supports revocation. The next time the agent needs access, the user is asked again.',
    examples: [
      { does: 'one, by the id that `agentcore identity grants` shows', line: 'agentcore identity revoke grant-Zm9v' },
      {
        does: 'all at one provider',
        line: "agentcore identity grants --provider orders --json | jq -r '.[].id' | xargs -r agentcore identity revoke",
      },
    ],
  })
    .argument('<grant...>', 'ids of grants')
    .action(async (ids, flags) => {
      const connection = await findConnection(terminal, flags);
      const done: { id: string; atProvider: AtProvider }[] = [];
      for (const id of ids) {
        const atProvider = await revokeGrant(connection, id, terminal.signal);
        done.push({ id, atProvider });
        if (!flags.json) print(terminal, `${id} is revoked here; ${AT_PROVIDER[atProvider]}.`);
      }
      if (flags.json) printJson(terminal, done);
    });
}
