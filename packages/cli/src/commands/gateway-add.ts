import type {
  CreateGatewayTargetRequest,
  CredentialProviderConfiguration,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { Option } from '@commander-js/extra-typings';
import { CliError } from '../cli-error.ts';
import { commandGroup, platformCommand } from '../command.ts';
import { readApiDocument, schemaOf } from '../platform/api-document.ts';
import { controlClient } from '../platform/clients.ts';
import { type Connection, findConnection } from '../platform/connection.ts';
import { functionTarget } from '../platform/functions.ts';
import { addGateway, addTarget, findGateway } from '../platform/gateways.ts';
import { type ProviderKind, showProvider } from '../platform/identity.ts';
import { harmless, note, type Terminal, typed } from '../terminal/terminal.ts';
import { addFunctionCommand } from './function-add.ts';
import { printDone } from './iam-request.ts';

/** `agentcore add gateway`, `agentcore add target` and `agentcore add function`. */
export function addCommand(terminal: Terminal) {
  return commandGroup('add', 'Add a gateway, an API behind one, or a function.', [
    gatewayCommand(terminal),
    targetCommand(terminal),
    addFunctionCommand(terminal),
  ]);
}

/** The role that a gateway acts in. Throws a `CliError` when there is none to choose. */
export function roleOf({ defaultRoleArn }: Connection, role: string | undefined): string {
  const found = role ?? defaultRoleArn;
  if (found !== undefined) return found;
  throw new CliError(
    'usage',
    'A gateway needs a role, and this connection names none.',
    'Name one: --role ARN. agentcore iam roles lists them.',
  );
}

function gatewayCommand(terminal: Terminal) {
  return platformCommand('gateway', {
    summary: 'Add a gateway: one MCP address for the tools of many APIs.',
    details: 'Callers sign their requests unless --jwt says that they bring tokens of an identity provider.',
    examples: [
      { does: 'for callers who sign', line: 'agentcore add gateway shop --search' },
      {
        does: 'for users of an identity provider',
        line: 'agentcore add gateway shop --jwt https://id.example.com/.well-known/openid-configuration --audience shop',
      },
    ],
  })
    .argument('<name>', 'letters, digits and -')
    .option('--jwt <discovery-url>', 'take bearer tokens of the identity provider with this discovery document')
    .option('--audience <audience...>', 'with --jwt: tokens must be for one of these')
    .option('--client <id...>', 'with --jwt: tokens must be issued to one of these clients')
    .option('--scope <scope...>', 'with --jwt: tokens must have one of these')
    .option('--open', 'take every request, without credentials')
    .option('--search', 'add a tool that finds tools')
    .option('--description <text>', 'what it is for')
    .option('--role <arn>', 'the role that it acts in (default: the default role)')
    .action(async (name, { jwt, audience, client: clients, scope, open, search, description, role, ...options }) => {
      if (jwt !== undefined && open)
        throw new CliError('usage', 'A gateway takes tokens or everybody: --jwt or --open, not both.');
      if (jwt === undefined && (audience ?? clients ?? scope))
        throw new CliError('usage', '--audience, --client and --scope judge tokens, and need --jwt.');
      const connection = await findConnection(terminal, options);
      const customJWTAuthorizer = {
        discoveryUrl: jwt,
        allowedAudience: audience,
        allowedClients: clients,
        allowedScopes: scope,
      };
      const made = await addGateway(await controlClient(connection), {
        ...{ name, description, roleArn: roleOf(connection, role) },
        authorizerType: jwt !== undefined ? 'CUSTOM_JWT' : open ? 'NONE' : 'AWS_IAM',
        ...(jwt !== undefined && { authorizerConfiguration: { customJWTAuthorizer } }),
        ...(search && { protocolConfiguration: { mcp: { searchType: 'SEMANTIC' } } }),
      });
      printDone(terminal, options.json, made, `${name} is added.\n${made.gatewayUrl}`);
      if (open) note(terminal, 'Everybody who reaches the platform can use its targets.');
      if (!options.json)
        note(terminal, typed(terminal, `Add an API: agentcore add target NAME --gateway ${name} --openapi FILE`));
    });
}

function targetCommand(terminal: Terminal) {
  return platformCommand('target', {
    summary: 'Add an API behind a gateway: each of its operations becomes a tool.',
    details: 'A credential is named by its provider (agentcore identity add); agents never see it.',
    examples: [
      { does: 'an OpenAPI document', line: 'agentcore add target orders --openapi orders.yaml' },
      { does: 'an MCP server', line: 'agentcore add target docs --mcp https://docs.example.com/mcp' },
      { does: 'a function', line: 'agentcore add target words --function words --tools tools.json' },
      {
        does: 'with an API key in a header',
        line: 'agentcore add target orders --openapi orders.yaml --api-key orders-key --key-name X-Api-Key',
      },
      {
        does: 'with a token for each user',
        line: 'agentcore add target orders --openapi orders.yaml --oauth orders --grant token-exchange --scope read',
      },
    ],
  })
    .argument('<name>', 'letters, digits and -; before the names of its tools')
    .option('--gateway <name>', 'name or id of the gateway (default: the only one)')
    .option('--openapi <document>', 'file, http(s) address or s3:// location of an OpenAPI document')
    .option('--smithy <document>', 'the same of a Smithy model, as JSON')
    .option('--mcp <url>', 'address of an MCP server')
    .option('--function <name>', 'name or ARN of a function, with --tools')
    .option('--tools <file>', 'file or s3:// location of the tool schema of a function: a JSON list of tools')
    .option('--description <text>', 'what it is for')
    .option('--api-key <provider>', 'name of the API key provider')
    .option('--key-name <name>', 'header or query parameter of the key')
    .addOption(new Option('--key-in <place>', 'where the key goes').choices(['header', 'query'] as const))
    .option('--key-prefix <prefix>', 'before the key, such as Bearer')
    .option('--oauth <provider>', 'name of the OAuth2 provider')
    .addOption(
      new Option('--grant <grant>', 'how a token is got').choices([
        'client-credentials',
        'token-exchange',
        'authorization-code',
      ] as const),
    )
    .option('--scope <scope...>', 'scopes to ask for')
    .option('--pass-token', 'hand the token of the caller on')
    .action(async (name, options) => {
      const connection = await findConnection(terminal, options);
      const client = await controlClient(connection);
      const arnOf = async (kind: ProviderKind, provider: string): Promise<string> =>
        (await showProvider(client, kind, provider)).credentialProviderArn ?? '';
      const targetConfiguration = await configurationOf(connection, terminal, options);
      const { gatewayId: gatewayIdentifier } = await findGateway(client, options.gateway);
      const credentialProviderConfigurations = await credentialsOf(options, arnOf);
      const target = await addTarget(
        client,
        {
          ...{ gatewayIdentifier, name, description: options.description, targetConfiguration },
          ...(credentialProviderConfigurations.length > 0 && { credentialProviderConfigurations }),
        },
        terminal.signal,
      );
      printDone(terminal, options.json, target, `${name} is ${target.status}.`);
      for (const reason of target.statusReasons ?? []) note(terminal, harmless(reason));
      if (target.status !== 'READY') throw new CliError('failure', `The target ${name} has no tools.`);
    });
}

type Sources = { openapi?: string; smithy?: string; mcp?: string; function?: string; tools?: string };

async function configurationOf(
  connection: Connection,
  terminal: Terminal,
  { openapi, smithy, mcp, function: name, tools }: Sources,
): Promise<CreateGatewayTargetRequest['targetConfiguration']> {
  if ([openapi, smithy, mcp, name].filter((one) => one !== undefined).length !== 1)
    throw new CliError('usage', 'Say what the target is: one of --openapi, --smithy, --mcp and --function.');
  if ((name === undefined) !== (tools === undefined))
    throw new CliError('usage', 'A function needs its tools, and tools their function: --function NAME --tools FILE.');
  if (name !== undefined) return { mcp: { lambda: await functionTarget(connection, terminal, name, tools ?? '') } };
  if (mcp !== undefined) return { mcp: { mcpServer: { endpoint: mcp } } };
  const from = openapi ?? smithy ?? '';
  const schema = from.startsWith('s3://')
    ? { s3: { uri: from } }
    : await schemaOf(connection, await readApiDocument(from, terminal.cwd, terminal.signal), terminal.signal);
  return { mcp: openapi === undefined ? { smithyModel: schema } : { openApiSchema: schema } };
}

interface CredentialFlags {
  apiKey?: string;
  keyName?: string;
  keyIn?: 'header' | 'query';
  keyPrefix?: string;
  oauth?: string;
  grant?: 'client-credentials' | 'token-exchange' | 'authorization-code';
  scope?: string[];
  passToken?: true;
}

const GRANTS = {
  'client-credentials': 'CLIENT_CREDENTIALS',
  'token-exchange': 'TOKEN_EXCHANGE',
  'authorization-code': 'AUTHORIZATION_CODE',
} as const;

async function credentialsOf(
  flags: CredentialFlags,
  arnOf: (kind: ProviderKind, name: string) => Promise<string>,
): Promise<CredentialProviderConfiguration[]> {
  const { apiKey, keyName, keyIn, keyPrefix, oauth, grant = 'client-credentials', scope = [], passToken } = flags;
  if ([apiKey, oauth, passToken].filter((one) => one !== undefined).length > 1)
    throw new CliError('usage', 'A target takes one credential: --api-key, --oauth or --pass-token.');
  if (passToken) return [{ credentialProviderType: 'JWT_PASSTHROUGH' }];
  if (apiKey !== undefined) {
    const apiKeyCredentialProvider = {
      providerArn: await arnOf('api-key', apiKey),
      credentialParameterName: keyName,
      credentialPrefix: keyPrefix,
      credentialLocation: keyIn === 'query' ? ('QUERY_PARAMETER' as const) : ('HEADER' as const),
    };
    return [{ credentialProviderType: 'API_KEY', credentialProvider: { apiKeyCredentialProvider } }];
  }
  if (oauth === undefined) return [];
  const oauthCredentialProvider = {
    providerArn: await arnOf('oauth2', oauth),
    scopes: scope,
    grantType: GRANTS[grant],
  };
  return [{ credentialProviderType: 'OAUTH', credentialProvider: { oauthCredentialProvider } }];
}
