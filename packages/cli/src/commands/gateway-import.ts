import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { readApiDocument, schemaOf } from '../platform/api-document.ts';
import { controlClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { addGateway, addTarget, findGateway, listGateways } from '../platform/gateways.ts';
import { harmless, note, printJson, type Terminal, typed } from '../terminal/terminal.ts';
import { roleOf } from './gateway-add.ts';

/** What of a name a gateway and a target may have. */
const nameOf = (text: string): string =>
  text
    .replace(/[^0-9a-zA-Z]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 40) || 'api';

/** `agentcore gateway import`: from an API's document to tools that work. */
export function importCommand(terminal: Terminal) {
  return platformCommand('import', {
    summary: 'Turn an OpenAPI document into tools, in one step.',
    details:
      'Creates the gateway if there is none of that name; its callers sign their requests. Every operation becomes a tool. The command prints what it left out, and why. ' +
      'For an API that asks for credentials add the target by hand: agentcore add target.',
    examples: [
      { does: 'from a file', line: 'agentcore gateway import petstore.yaml' },
      {
        does: 'from an address, into an existing gateway',
        line: 'agentcore gateway import https://api.example.com/openapi.json --gateway shop',
      },
    ],
  })
    .argument('<document>', 'file or http(s) address of an OpenAPI document, JSON or YAML')
    .option('--gateway <name>', 'the gateway to add it to (default: named after the document)')
    .option('--name <name>', 'name of the target, before the names of its tools (default: named after the document)')
    .action(async (from, { gateway: wanted, name, ...options }) => {
      const connection = await findConnection(terminal, options);
      const client = await controlClient(connection);
      const document = await readApiDocument(from, terminal.cwd, terminal.signal);
      const gatewayName = wanted ?? nameOf(document.name);
      const there = (await listGateways(client)).some(
        (one) => one.name === gatewayName || one.gatewayId === gatewayName,
      );
      if (!there)
        await addGateway(client, {
          ...{ name: gatewayName, roleArn: roleOf(connection, undefined), authorizerType: 'AWS_IAM' },
          protocolConfiguration: { mcp: { searchType: 'SEMANTIC' } },
        });
      const { gatewayId, gatewayUrl } = await findGateway(client, gatewayName);
      const openApiSchema = await schemaOf(connection, document, terminal.signal);
      const wish = { gatewayIdentifier: gatewayId, name: name ?? nameOf(document.name) };
      const target = await addTarget(
        client,
        { ...wish, targetConfiguration: { mcp: { openApiSchema } } },
        { signal: terminal.signal },
      );
      const { statusReasons = [], status } = target;
      if (options.json) printJson(terminal, { gatewayId, gatewayUrl, target });
      for (const reason of statusReasons) note(terminal, harmless(reason));
      if (status !== 'READY') throw new CliError('failure', `No tool could be made of ${from}.`);
      if (options.json) return;
      note(terminal, `Its tools are at ${gatewayUrl}`);
      note(terminal, typed(terminal, `See them: agentcore gateway tools --gateway ${gatewayName}`));
    });
}
