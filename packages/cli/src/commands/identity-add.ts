import { Option } from '@commander-js/extra-typings';
import { CliError } from '../cli-error.ts';
import { commandGroup, platformCommand } from '../command.ts';
import { controlClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { addApiKey, addOauth2, addPayment } from '../platform/identity.ts';
import { oauth2Request, vendorOf } from '../platform/oauth2-vendors.ts';
import { externalSecrets, PAYMENT_VENDORS, paymentRequest, paymentSecrets } from '../platform/payment-vendors.ts';
import { note, type Terminal, typed } from '../terminal/terminal.ts';
import { printDone } from './iam-request.ts';
import { readSecret, readSecrets } from './read-secret.ts';

/** `agentcore identity add api-key`, `… add oauth2` and `… add payment`. */
export function addCommand(terminal: Terminal) {
  return commandGroup('add', 'Add a credential provider.', [
    apiKeyCommand(terminal),
    oauth2Command(terminal),
    paymentCommand(terminal),
  ]);
}

function apiKeyCommand(terminal: Terminal) {
  return platformCommand('api-key', {
    summary: 'Add an API key that agents ask for by name.',
    details: 'The key is read from standard input or asked for, is stored encrypted, and is never shown.',
    examples: [
      { does: 'be asked for the key', line: 'agentcore identity add api-key search' },
      { does: 'from a file or a password manager', line: 'agentcore identity add api-key search < key.txt' },
      {
        does: 'one that stays in a secret, under "key" of its JSON',
        line: 'agentcore identity add api-key search --secret-arn "$(agentcore secret show SEARCH --json | jq -r .arn)" --json-key key',
      },
    ],
  })
    .argument('<name>', 'name of the provider, by which agents ask for it')
    .option('--secret-arn <arn>', 'ARN of a secret that holds the key, instead of entering the key')
    .option('--json-key <key>', 'name of the value in the secret’s JSON')
    .action(async (name, { secretArn, jsonKey, ...flags }) => {
      const secret = secretOf(secretArn, jsonKey);
      const given = secret
        ? { apiKeySecretSource: 'EXTERNAL' as const, apiKeySecretConfig: secret }
        : { apiKey: await readSecret(terminal, `API key of ${name}`, `agentcore identity add api-key ${name} < FILE`) };
      const client = await controlClient(await findConnection(terminal, flags));
      const made = await addApiKey(client, { name, ...given });
      printDone(terminal, flags.json, made, `${name} is added.\n${made.credentialProviderArn}`);
    });
}

function oauth2Command(terminal: Terminal) {
  return platformCommand('oauth2', {
    summary: 'Add an OAuth2 client that agents get tokens with.',
    details:
      'The client secret is read from standard input or asked for, is stored encrypted, and is never shown. The command prints the ' +
      'redirect URI. Register it at the authorization server, or users cannot consent.',
    examples: [
      {
        does: 'a server with a discovery document (OpenID Connect Discovery, RFC 8414)',
        line: 'agentcore identity add oauth2 orders --client-id agents --discovery-url https://id.example.com/.well-known/openid-configuration',
      },
      {
        does: 'a vendor that the platform knows, with the client secret from a file',
        line: 'agentcore identity add oauth2 drive --vendor google --client-id 123.apps.example < secret.txt',
      },
      {
        does: 'a vendor where every customer has a server of its own',
        line: 'agentcore identity add oauth2 staff --vendor okta --issuer https://acme.okta.example --client-id agents',
      },
      {
        does: 'a server that exchanges the token of a user who is logged in',
        line: 'agentcore identity add oauth2 files --client-id agents --discovery-url https://id.example.com/.well-known/openid-configuration --on-behalf-of TOKEN_EXCHANGE',
      },
    ],
  })
    .argument('<name>', 'name of the provider, by which agents ask for it')
    .requiredOption('--client-id <id>', 'client id at the authorization server')
    .option('--vendor <vendor>', 'google, github, microsoft, okta, … (default: custom)', 'custom')
    .option('--discovery-url <url>', 'discovery URL of a custom authorization server')
    .option('--issuer <url>', 'issuer of a server without a discovery URL, or of your tenant at a vendor such as Okta')
    .option('--authorization-endpoint <url>', 'authorization endpoint; with --issuer')
    .option('--token-endpoint <url>', 'token endpoint; with --issuer')
    .option('--tenant <id>', 'id or domain of a tenant of Microsoft')
    .addOption(
      new Option('--client-authentication <method>', 'how the client authenticates at a custom server').choices([
        'CLIENT_SECRET_BASIC',
        'CLIENT_SECRET_POST',
      ] as const),
    )
    .addOption(
      new Option(
        '--on-behalf-of <grant>',
        'how a custom server gives tokens for a user whose token the agent has: by RFC 8693 or RFC 7523',
      ).choices(['TOKEN_EXCHANGE', 'JWT_AUTHORIZATION_GRANT'] as const),
    )
    .option(
      '--actor-scopes <scopes...>',
      'with TOKEN_EXCHANGE: send a token of the agent, with these scopes, as the actor',
    )
    .option('--secret-arn <arn>', 'ARN of a secret that holds the client secret, instead of entering it')
    .option('--json-key <key>', 'name of the value in the secret’s JSON')
    .action(async (name, { json, debug: _, endpoint, profile, vendor: named, secretArn, jsonKey, ...server }) => {
      const vendor = vendorOf(named);
      const secret = secretOf(secretArn, jsonKey);
      // What is wrong with the rest is said before anybody is asked for a secret.
      oauth2Request({ ...server, name, vendor });
      const given = secret
        ? { secret }
        : {
            clientSecret: await readSecret(
              terminal,
              `Client secret of ${server.clientId}`,
              `agentcore identity add oauth2 ${name} … < FILE`,
            ),
          };
      const client = await controlClient(await findConnection(terminal, { endpoint, profile }));
      const made = await addOauth2(client, oauth2Request({ ...server, ...given, name, vendor }));
      printDone(terminal, json, made, `${name} is added.\n${made.credentialProviderArn}`);
      if (json) return;
      note(terminal, `Register this redirect URI at its server:  ${made.callbackUrl}`);
      note(terminal, typed(terminal, `Then test it:  agentcore identity test-provider ${name}`));
    });
}

function paymentCommand(terminal: Terminal) {
  return platformCommand('payment', {
    summary: 'Add the keys of a payment vendor, by which agents get credentials for one payment request.',
    details:
      'The secrets are asked for, or read from standard input as a JSON object. They are stored encrypted and never shown. ' +
      'Their names are apiKeySecret and, with --wallet, walletSecret for coinbase; appSecret and authorizationPrivateKey for privy.',
    examples: [
      {
        does: 'Coinbase CDP, also for requests that write to wallets',
        line: 'agentcore identity add payment wallet --vendor coinbase --api-key-id KEY_ID --wallet < secrets.json',
      },
      {
        does: 'Privy, with secrets that stay in a secret of the platform',
        line: 'agentcore identity add payment card --vendor privy --app-id APP --authorization-id ID --secret-arn "$(agentcore secret show PRIVY --json | jq -r .arn)"',
      },
    ],
  })
    .argument('<name>', 'name of the provider, by which agents ask for it')
    .addOption(
      new Option('--vendor <vendor>', 'who takes the payments').choices(PAYMENT_VENDORS).makeOptionMandatory(true),
    )
    .option('--api-key-id <id>', 'id of the API key at Coinbase')
    .option('--wallet', 'with the wallet secret of Coinbase as well')
    .option('--app-id <id>', 'id of the app at Privy')
    .option('--authorization-id <id>', 'id of the authorization key at Privy')
    .option('--secret-arn <arn>', 'ARN of a secret whose JSON has the secrets, instead of entering them')
    .action(async (name, { json, debug: _, endpoint, profile, secretArn, ...app }) => {
      const wish = { ...app, name };
      // What is wrong with the rest is said before anybody is asked for a secret.
      paymentRequest(wish);
      const names = paymentSecrets(wish);
      const secrets =
        secretArn !== undefined
          ? externalSecrets(names, secretArn)
          : await readSecrets(terminal, names, `agentcore identity add payment ${name} … < secrets.json`);
      const client = await controlClient(await findConnection(terminal, { endpoint, profile }));
      const made = await addPayment(client, paymentRequest(wish, secrets));
      printDone(terminal, json, made, `${name} is added.\n${made.credentialProviderArn}`);
    });
}

function secretOf(secretId: string | undefined, jsonKey: string | undefined) {
  if ((secretId === undefined) !== (jsonKey === undefined))
    throw new CliError('usage', '--secret-arn and --json-key go together.');
  return secretId === undefined || jsonKey === undefined ? undefined : { secretId, jsonKey };
}
