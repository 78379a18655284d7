import { isIPv6 } from 'node:net';
import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { type Connection, type ConnectionFlags, findConnection } from '../platform/connection.ts';
import { credentialsOf } from '../platform/credentials.ts';
import { print, printJson, type Terminal } from '../terminal/terminal.ts';
import { reachGateway, TOKEN_VARIABLE } from './reach-gateway.ts';

export function envCommand(terminal: Terminal) {
  return platformCommand('env', {
    summary: 'Print the variables that point every AWS SDK, and AWS’s own tools, at this platform.',
    details:
      '--hosts is for clients that connect only to host names of AWS. The platform must serve TLS on those names ' +
      '(npm run platform -- --tls). The command prints the lines that /etc/hosts then needs, as comments.',
    examples: [
      {
        does: 'use AWS SDKs, boto3 and the aws command with the platform, in this shell',
        line: 'eval "$(agentcore env)"',
      },
      {
        does: 'use them in a shell that cannot read the platform’s files, such as outside its container',
        line: 'eval "$(docker exec agentplatform npx agentcore env --keys)"',
      },
      {
        does: 'use the SDKs of OpenAI and Anthropic with the models behind a gateway',
        line: 'eval "$(agentcore env --openai --gateway models)"',
      },
      { does: 'use clients that connect only to host names of AWS', line: 'eval "$(agentcore env --hosts)"' },
    ],
  })
    .option('--keys', 'print the keys themselves, not the name of their file')
    .option('--hosts', 'for clients that connect only to host names of AWS: certificates, and lines for /etc/hosts')
    .option('--openai', 'for the SDKs of OpenAI and Anthropic: the address of the models behind a gateway')
    .option('--gateway <name>', 'with --openai: name or id of the gateway (default: the only one)')
    .action(async (options) => {
      if (options.openai) return showModels(terminal, options);
      if (options.gateway !== undefined) throw new CliError('usage', '--gateway needs --openai.');
      const connection = await findConnection(terminal, options);
      if (!connection.credentialsFile) {
        throw new CliError(
          'usage',
          `No credentials file is known for ${connection.endpoint}, which was named by ${connection.source}.`,
          'Run this where the platform’s .agentplatform/connection.json is, or set AWS_SHARED_CREDENTIALS_FILE.',
        );
      }
      if (options.keys && options.hosts)
        throw new CliError(
          'usage',
          '--keys and --hosts cannot be combined.',
          '--hosts needs files of the platform, which --keys does without.',
        );
      const { endpoint } = connection;
      const { credentialsFile, profile = 'default' } = connection;
      const common = {
        ...(options.keys
          ? await keysOf(connection)
          : { AWS_SHARED_CREDENTIALS_FILE: credentialsFile, AWS_PROFILE: profile }),
        AWS_REGION: connection.region,
        // Whatever else is set: without it, S3 and STS would be asked at the original, with keys of this platform.
        AWS_ENDPOINT_URL: endpoint,
        BEDROCK_AGENTCORE_CP_ENDPOINT: endpoint,
      };
      if (options.hosts) return showHosts(terminal, common, connection, options.json === true);
      const variables = { ...common, [DATA_PLANE]: endpoint };
      if (options.json) return printJson(terminal, variables);
      exportAll(terminal, variables);
      // A profile would go before the keys, and its file may be nowhere here.
      if (options.keys) print(terminal, 'unset AWS_PROFILE AWS_SHARED_CREDENTIALS_FILE AWS_SESSION_TOKEN');
    });
}

/** SDKs of model vendors send a bearer token and sign nothing. */
async function showModels(
  terminal: Terminal,
  options: ConnectionFlags & { gateway?: string | undefined; json?: true | undefined } & Partial<
      Record<'keys' | 'hosts', true | undefined>
    >,
): Promise<void> {
  if (options.keys || options.hosts)
    throw new CliError('usage', '--openai cannot be combined with --keys and --hosts.', 'Run agentcore env twice.');
  const { baseUrl, name, authorizerType, access } = await reachGateway(terminal, options, options.gateway);
  if (authorizerType === 'AWS_IAM')
    throw new CliError(
      'usage',
      `The gateway ${name} accepts only signed requests, but the SDKs of OpenAI and Anthropic do not sign.`,
      'Use a gateway that accepts tokens, or one that is open to everyone: agentcore add gateway NAME --jwt URL, or --open.',
    );
  if (access === 'signed')
    throw new CliError(
      'usage',
      `The gateway ${name} needs a token, but there is none.`,
      `Put one into ${TOKEN_VARIABLE}.`,
    );
  const key = typeof access === 'object' ? access.token : 'none';
  const variables = {
    OPENAI_BASE_URL: `${baseUrl}/inference/v1`,
    OPENAI_API_KEY: key,
    ANTHROPIC_BASE_URL: `${baseUrl}/inference`,
    // As a bearer token; with a key the SDK would send it in a header of its own.
    ANTHROPIC_AUTH_TOKEN: key,
  };
  if (options.json) return printJson(terminal, variables);
  exportAll(terminal, variables);
  print(terminal, 'unset ANTHROPIC_API_KEY');
}

async function keysOf(connection: Connection): Promise<Record<string, string>> {
  const { accessKeyId, secretAccessKey } = await credentialsOf(connection)();
  return { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey };
}

/**
 * The address of the data plane for the vendor's starter toolkit, which does not read AWS_ENDPOINT_URL, as BEDROCK_AGENTCORE_CP_ENDPOINT is that of
 * the control plane. The streams of the vendor's Python SDK refuse any but the original's host names there, which they take without it.
 */
const DATA_PLANE = 'BEDROCK_AGENTCORE_DP_ENDPOINT';

function showHosts(terminal: Terminal, common: Record<string, string>, connection: Connection, json: boolean): void {
  const { tls, endpoint } = connection;
  if (!tls)
    throw new CliError(
      'usage',
      `The platform at ${endpoint} serves no TLS on AWS’s host names, according to its connection.json.`,
      'Start it with: npm run platform -- --tls',
    );
  const variables = {
    ...common,
    AWS_CA_BUNDLE: tls.bundleFile,
    REQUESTS_CA_BUNDLE: tls.bundleFile,
    SSL_CERT_FILE: tls.bundleFile,
    NODE_EXTRA_CA_CERTS: tls.caFile,
  };
  const address = reachedAt(tls.address);
  const lines = tls.hosts.map((host) => `${address} ${host}`);
  if (json) {
    printJson(terminal, { variables, unset: [DATA_PLANE], hosts: lines, port: tls.port });
    return;
  }
  exportAll(terminal, variables);
  print(terminal, `unset ${DATA_PLANE}`);
  print(terminal, '# Add these lines to /etc/hosts as root. Remove them to reach AWS again:');
  for (const line of lines) print(terminal, `#   ${line}`);
  if (tls.port !== 443)
    print(
      terminal,
      `# Clients use port 443, but the platform listens on ${tls.port}. Start it with --tls-port 443, or redirect the port.`,
    );
}

// Who listens everywhere is met on the loopback interface.
function reachedAt(address: string): string {
  if (address === '0.0.0.0') return '127.0.0.1';
  return isIPv6(address) && /^[0:]+$/.test(address) ? '::1' : address;
}

function exportAll(terminal: Terminal, variables: Record<string, string>): void {
  for (const [name, value] of Object.entries(variables)) print(terminal, `export ${name}=${quoted(value)}`);
}

function quoted(value: string): string {
  return /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
}
