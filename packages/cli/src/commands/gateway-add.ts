import type {
  ApiGatewayToolFilter,
  ApiSchemaConfiguration,
  ConnectorTargetConfiguration,
  CreateGatewayTargetRequest,
  CredentialProviderConfiguration,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { Option } from '@commander-js/extra-typings';
import { CliError } from '../cli-error.ts';
import { commandGroup, platformCommand } from '../command.ts';
import { putDocument, readApiDocument, schemaOf } from '../platform/api-document.ts';
import { controlClient } from '../platform/clients.ts';
import { type Connection, findConnection } from '../platform/connection.ts';
import { functionTarget } from '../platform/functions.ts';
import { addGateway, addTarget, findGateway } from '../platform/gateways.ts';
import { type ProviderKind, showProvider } from '../platform/identity.ts';
import { resolveRuntime } from '../platform/runtimes.ts';
import { harmless, note, type Terminal, typed } from '../terminal/terminal.ts';
import { addFunctionCommand } from './function-add.ts';
import { accessOf } from './gateway-access.ts';
import { printDone } from './iam-request.ts';
import { FORMATS, inferenceTarget, type ModelFlags, VENDORS } from './inference-target.ts';
import { addLimitCommand } from './limit-add.ts';
import { addPolicyCommand, addPolicyEngineCommand } from './policy-add.ts';
import { addRouteCommand } from './route-add.ts';

/** `agentcore add gateway`, `target`, `limit`, `route`, `policy-engine`, `policy` and `function`. */
export function addCommand(terminal: Terminal) {
  return commandGroup(
    'add',
    'Add a gateway, an API behind one, a limit or a route of its requests, policies, or a function.',
    [
      gatewayCommand(terminal),
      targetCommand(terminal),
      addLimitCommand(terminal),
      addRouteCommand(terminal),
      addPolicyEngineCommand(terminal),
      addPolicyCommand(terminal),
      addFunctionCommand(terminal),
    ],
  );
}

/** The role that a gateway acts in. Throws a `CliError` when there is none to choose. */
export function roleOf({ defaultRoleArn }: Connection, role: string | undefined): string {
  const found = role ?? defaultRoleArn;
  if (found !== undefined) return found;
  throw new CliError(
    'usage',
    'A gateway needs a role, but this connection names none.',
    'Name one: --role ARN. agentcore iam roles lists them.',
  );
}

function gatewayCommand(terminal: Terminal) {
  return platformCommand('gateway', {
    summary: 'Add a gateway: one MCP address for the tools of many APIs.',
    details:
      'Callers sign their requests. With --jwt they send tokens of an identity provider instead; with --open they need neither.',
    examples: [
      { does: 'for callers who sign', line: 'agentcore add gateway shop --search' },
      {
        does: 'for users of an identity provider',
        line: 'agentcore add gateway shop --jwt https://id.example.com/.well-known/openid-configuration --audience shop',
      },
    ],
  })
    .argument('<name>', 'letters, digits and -')
    .option('--jwt <discovery-url>', 'accept bearer tokens of the identity provider with this discovery URL')
    .option('--audience <audience...>', 'with --jwt: tokens must be for one of these')
    .option('--client <id...>', 'with --jwt: tokens must be issued to one of these clients')
    .option('--scope <scope...>', 'with --jwt: tokens must have one of these scopes')
    .option('--open', 'accept every request, without credentials')
    .option('--search', 'add a tool that finds tools')
    .option('--explain-errors', 'also tell callers about errors inside the platform')
    .option('--description <text>', 'what it is for')
    .option('--role <arn>', 'IAM role of the gateway (default: the platform’s default role)')
    .action(
      async (name, { jwt, audience, client, scope, open, search, explainErrors, description, role, ...options }) => {
        const access = accessOf({ jwt, audience, client, scope, open }) ?? { authorizerType: 'AWS_IAM' };
        const connection = await findConnection(terminal, options);
        const made = await addGateway(await controlClient(connection), {
          ...{ name, description, roleArn: roleOf(connection, role), ...access },
          ...(explainErrors && { exceptionLevel: 'DEBUG' }),
          ...(search && { protocolConfiguration: { mcp: { searchType: 'SEMANTIC' } } }),
        });
        printDone(terminal, options.json, made, `${name} is added.\n${made.gatewayUrl}`);
        if (open) note(terminal, 'Everybody who reaches the platform can use its targets.');
        if (!options.json)
          note(terminal, typed(terminal, `Add an API: agentcore add target NAME --gateway ${name} --openapi FILE`));
      },
    );
}

function targetCommand(terminal: Terminal) {
  return platformCommand('target', {
    summary:
      'Add an API, an MCP server, an agent, models or a function to a gateway. Each operation of an API becomes a tool.',
    details:
      'For an API that needs a credential, name its credential provider (agentcore identity add). Agents never see the credential.',
    examples: [
      { does: 'an OpenAPI document', line: 'agentcore add target orders --openapi orders.yaml' },
      { does: 'an MCP server', line: 'agentcore add target docs --mcp https://docs.example.com/mcp' },
      { does: 'models of a vendor', line: 'agentcore add target openai --models openai --api-key openai-key' },
      {
        does: 'models of a server of your own',
        line: 'agentcore add target local --models http://10.0.0.5:8000/v1 --model qwen3-8b',
      },
      { does: 'a function', line: 'agentcore add target words --function words --tools tools.json' },
      { does: 'an A2A agent', line: 'agentcore add target helper --http https://agents.example.com --protocol a2a' },
      { does: 'an agent of this platform', line: 'agentcore add target helper --runtime helper --as-role' },
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
    .argument('<name>', 'letters, digits and -; the names of its tools begin with it')
    .option('--gateway <name>', 'name or id of the gateway (default: the only one)')
    .option('--openapi <document>', 'file, http(s) address or s3:// location of an OpenAPI document')
    .option('--smithy <document>', 'the same for a Smithy model in JSON')
    .option('--mcp <url>', 'address of an MCP server')
    .option('--dynamic', 'with --mcp: ask the server for its tools with each request, as the caller')
    .option('--http <url>', 'address of any HTTP server; requests are passed on unchanged')
    .addOption(
      new Option('--protocol <protocol>', 'with --http: what the server speaks (default: custom)').choices(PROTOCOLS),
    )
    .option(
      '--runtime <name>',
      'an agent of this platform (name, id or ARN), with --as-role, --as-caller, --pass-token or --oauth',
    )
    .option('--qualifier <name>', 'with --runtime: its endpoint (default: DEFAULT)')
    .option(
      '--models <provider>',
      `a provider of models: ${Object.keys(VENDORS).join(', ')}, or the address of a server`,
    )
    .option(
      '--model <ids...>',
      'with --models: the models that clients may ask for; * and ? stand for any (default: all)',
    )
    .addOption(
      new Option('--format <format>', 'with --models and an address: what the server speaks (default: openai)').choices(
        FORMATS,
      ),
    )
    .option('--function <name>', 'name or ARN of a function, with --tools')
    .option(
      '--tools <file>',
      'file or s3:// location of the tools as a JSON list: of a function, or of an MCP server that is not to be asked',
    )
    .option('--rest-api <id>', 'id of a REST API of API Gateway; --openapi uploads its exported document')
    .option('--stage <name>', 'with --rest-api: its stage (default: prod)')
    .option('--take <operations...>', 'with --rest-api: what becomes tools, such as "GET,POST /pets/*" (default: all)')
    .option(
      '--connector <id>',
      'a part of the platform: agentcore-memory or agentcore-code-interpreter (with --as-role)',
    )
    .option('--enable <tools...>', 'with --connector: the tools that it has (default: all)')
    .option('--set <values...>', 'with --enable: fixed arguments of these tools, such as memoryId=notes-0123456789')
    .option('--description <text>', 'what it is for')
    .option('--api-key <provider>', 'name of the API key provider')
    .option('--key-name <name>', 'header or query parameter of the key')
    .addOption(new Option('--key-in <place>', 'where the key goes').choices(['header', 'query'] as const))
    .option('--key-prefix <prefix>', 'text to put before the key, such as Bearer')
    .option('--oauth <provider>', 'name of the OAuth2 provider')
    .addOption(
      new Option('--grant <grant>', 'how the gateway gets a token').choices([
        'client-credentials',
        'token-exchange',
        'authorization-code',
      ] as const),
    )
    .option('--scope <scope...>', 'scopes to ask for')
    .option('--return-url <url>', 'with authorization-code: the page where your application confirms who consented')
    .option('--pass-token', 'pass the caller’s token on to the API')
    .option('--as-role', 'sign requests as the gateway’s role')
    .option('--as-caller', 'sign requests as the caller: for MCP servers and agents on this platform')
    .option(
      '--sign-for <service>',
      'the service that requests are signed for, such as s3 (with --mcp default: bedrock-agentcore)',
    )
    .option('--sign-region <region>', 'the region that they are signed for (default: that of the platform)')
    .action(async (name, options) => {
      const connection = await findConnection(terminal, options);
      const client = await controlClient(connection);
      const arnOf = async (kind: ProviderKind, provider: string): Promise<string> =>
        (await showProvider(client, kind, provider)).credentialProviderArn ?? '';
      refuseUnfit(options);
      const targetConfiguration = await configurationOf(connection, terminal, options);
      const { gatewayId: gatewayIdentifier } = await findGateway(client, options.gateway);
      const credentialProviderConfigurations = await credentialsOf(options, arnOf);
      const target = await addTarget(
        client,
        {
          ...{ gatewayIdentifier, name, description: options.description, targetConfiguration },
          ...(credentialProviderConfigurations.length > 0 && { credentialProviderConfigurations }),
        },
        {
          signal: terminal.signal,
          onLink: (url) =>
            note(terminal, `Open this page and allow the access. Its tools are listed then: ${harmless(url)}`),
        },
      );
      printDone(terminal, options.json, target, `${name} is ${target.status}.`);
      for (const reason of target.statusReasons ?? []) note(terminal, harmless(reason));
      if (target.status !== 'READY') throw new CliError('failure', `The target ${name} cannot be called.`);
    });
}

/** Throws for two credentials, and for one that targets of the kind never take. */
function refuseUnfit(flags: Sources & CredentialFlags): void {
  const { connector, mcp, runtime, apiKey, oauth, passToken, asRole, asCaller } = flags;
  if ([apiKey, oauth, passToken, asRole, asCaller].filter((one) => one !== undefined).length > 1)
    throw new CliError(
      'usage',
      'A target takes one credential: --api-key, --oauth, --pass-token, --as-role or --as-caller.',
    );
  if (connector !== undefined && !asRole)
    throw new CliError(
      'usage',
      'The gateway calls a part of the platform only as its own role: --connector needs --as-role.',
    );
  if (asCaller && mcp === undefined && runtime === undefined)
    throw new CliError(
      'usage',
      'Only MCP servers and agents on this platform can be called as the caller: --as-caller needs --mcp or --runtime.',
    );
}

/** What servers behind `--http` speak. */
const PROTOCOLS = ['mcp', 'a2a', 'inference', 'custom'] as const;
const PROTOCOL_TYPES = { mcp: 'MCP', a2a: 'A2A', inference: 'INFERENCE', custom: 'CUSTOM' } as const;

interface Sources extends ModelFlags {
  http?: string;
  protocol?: (typeof PROTOCOLS)[number];
  runtime?: string;
  qualifier?: string;
  openapi?: string;
  smithy?: string;
  mcp?: string;
  dynamic?: true;
  function?: string;
  tools?: string;
  restApi?: string;
  stage?: string;
  take?: string[];
  connector?: string;
  enable?: string[];
  set?: string[];
}

async function configurationOf(
  connection: Connection,
  terminal: Terminal,
  { openapi, smithy, mcp, dynamic, function: name, tools, restApi, stage = 'prod', take, ...more }: Sources,
): Promise<CreateGatewayTargetRequest['targetConfiguration']> {
  const connector = connectorOf(more);
  const { http, protocol, runtime, qualifier } = more;
  const inference = inferenceTarget(more);
  const given = [restApi ?? openapi, smithy, mcp, http, runtime, name, connector, inference].filter(
    (one) => one !== undefined,
  );
  if (given.length !== 1)
    throw new CliError(
      'usage',
      'Say what the target is: one of --openapi, --smithy, --mcp, --http, --runtime, --models, --function, --rest-api and --connector.',
    );
  if (mcp === undefined && dynamic) throw new CliError('usage', '--dynamic needs --mcp.');
  if (mcp === undefined && (name === undefined) !== (tools === undefined))
    throw new CliError('usage', '--function and --tools go together: --function NAME --tools FILE.');
  if (http === undefined && protocol) throw new CliError('usage', '--protocol needs --http.');
  if (runtime === undefined && qualifier !== undefined) throw new CliError('usage', '--qualifier needs --runtime.');
  if (http !== undefined)
    return { http: { passthrough: { endpoint: http, protocolType: PROTOCOL_TYPES[protocol ?? 'custom'] } } };
  if (runtime !== undefined) {
    const { arn } = await resolveRuntime(terminal, connection, runtime);
    return { http: { agentcoreRuntime: { arn, ...(qualifier !== undefined && { qualifier }) } } };
  }
  if (inference) return { inference };
  if (connector) return { mcp: { connector } };
  if (name !== undefined) return { mcp: { lambda: await functionTarget(connection, terminal, name, tools ?? '') } };
  if (restApi !== undefined) {
    if (openapi !== undefined) {
      const { text } = await readApiDocument(openapi, terminal.cwd, terminal.signal);
      await putDocument(connection, { bucket: REST_APIS, key: `${restApi}/${stage}.json`, text }, terminal.signal);
    }
    const toolFilters = (take ?? ['* /*']).map(toolFilter);
    return { mcp: { apiGateway: { restApiId: restApi, stage, apiGatewayToolConfiguration: { toolFilters } } } };
  }
  const schemaFrom = async (from: string): Promise<ApiSchemaConfiguration> =>
    from.startsWith('s3://')
      ? { s3: { uri: from } }
      : schemaOf(connection, await readApiDocument(from, terminal.cwd, terminal.signal), terminal.signal);
  if (mcp !== undefined) {
    const listing = dynamic && { listingMode: 'DYNAMIC' as const };
    const mcpToolSchema = tools === undefined ? undefined : await schemaFrom(tools);
    return { mcp: { mcpServer: { endpoint: mcp, ...listing, ...(mcpToolSchema && { mcpToolSchema }) } } };
  }
  const schema = await schemaFrom(openapi ?? smithy ?? '');
  return { mcp: openapi === undefined ? { smithyModel: schema } : { openApiSchema: schema } };
}

function connectorOf({ connector, enable, set = [] }: Sources): ConnectorTargetConfiguration | undefined {
  if (connector === undefined) return undefined;
  if (set.length > 0 && !enable) throw new CliError('usage', '--set needs --enable, which names the tools.');
  const parameterValues = Object.fromEntries(
    set.map((text): [string, string] => {
      const at = text.indexOf('=');
      if (at < 1) throw new CliError('usage', `"${text}" sets nothing.`, 'Write NAME=VALUE.');
      return [text.slice(0, at), text.slice(at + 1)];
    }),
  );
  const configurations = set.length > 0 ? enable?.map((name) => ({ name, parameterValues })) : undefined;
  return {
    source: { connectorId: connector },
    ...(enable && { enabled: enable }),
    ...(configurations && { configurations }),
  };
}

/** Where the platform looks for exported documents unless its setting gateway.restApis says otherwise. */
const REST_APIS = 'agentplatform-rest-apis';
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const;

function toolFilter(text: string): ApiGatewayToolFilter {
  const [, named = '', filterPath = ''] = /^(\*|[A-Za-z,]+) (\/\S*)$/.exec(text) ?? [];
  const wanted = named.toUpperCase().split(',');
  const methods = METHODS.filter((method) => named === '*' || wanted.includes(method));
  if (filterPath === '' || (named !== '*' && methods.length !== wanted.length))
    throw new CliError(
      'usage',
      `"${text}" names no operations.`,
      'Write methods and a path: --take "GET,POST /pets/*"',
    );
  return { filterPath, methods };
}

interface CredentialFlags extends Pick<Sources, 'openapi' | 'mcp' | 'restApi'> {
  apiKey?: string;
  keyName?: string;
  keyIn?: 'header' | 'query';
  keyPrefix?: string;
  oauth?: string;
  grant?: 'client-credentials' | 'token-exchange' | 'authorization-code';
  scope?: string[];
  returnUrl?: string;
  passToken?: true;
  asRole?: true;
  asCaller?: true;
  signFor?: string;
  signRegion?: string;
}

/** Of the kinds whose documents do not say which service they are, the target does. */
function signedAs({
  asRole,
  signFor,
  signRegion,
  openapi,
  mcp,
  restApi,
}: CredentialFlags): CredentialProviderConfiguration {
  const credentialProviderType = asRole ? 'GATEWAY_IAM_ROLE' : 'CALLER_IAM_CREDENTIALS';
  if (signFor === undefined && openapi !== undefined && restApi === undefined)
    throw new CliError('usage', 'Name the service that requests are signed for: --sign-for NAME.');
  const named = signFor ?? (mcp === undefined ? undefined : 'bedrock-agentcore');
  if (named === undefined) return { credentialProviderType };
  const iamCredentialProvider = { service: named, ...(signRegion !== undefined && { region: signRegion }) };
  return { credentialProviderType, credentialProvider: { iamCredentialProvider } };
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
  if (flags.asRole || flags.asCaller) return [signedAs(flags)];
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
    ...(flags.returnUrl !== undefined && { defaultReturnUrl: flags.returnUrl }),
  };
  return [{ credentialProviderType: 'OAUTH', credentialProvider: { oauthCredentialProvider } }];
}
