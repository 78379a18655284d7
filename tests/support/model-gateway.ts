import {
  CreateGatewayCommand,
  type CreateGatewayCommandInput,
  CreateGatewayTargetCommand,
  type TargetConfiguration,
} from '@aws-sdk/client-bedrock-agentcore-control';
import type { Clients } from './clients.ts';
import { settledTarget } from './gateway.ts';
import type { TestPlatform } from './platform-process.ts';

let made = 0;

/** A gateway, open unless said, before servers of chat completions: the models of each by its name as a target. */
export async function modelGateway(
  platform: TestPlatform,
  clients: Clients,
  targets: Readonly<Record<string, { url: string; models: readonly string[] }>>,
  authorizer: Pick<CreateGatewayCommandInput, 'authorizerType'> = { authorizerType: 'NONE' },
): Promise<{ id: string; url: string }> {
  const roleArn = platform.ready.defaultRoleArn;
  const { gatewayId: id = '' } = await clients.control.send(
    new CreateGatewayCommand({ name: `models-${++made}`, roleArn, ...authorizer }),
  );
  for (const [name, { url, models }] of Object.entries(targets)) {
    const operations = [{ path: '/v1/chat/completions', models: models.map((model) => ({ model })) }];
    // The SDK lacks what is newer than it; the platform's own validators look at all of it.
    const targetConfiguration = {
      inference: { provider: { endpoint: url, operations } },
    } as unknown as TargetConfiguration;
    const { targetId = '' } = await clients.control.send(
      new CreateGatewayTargetCommand({ gatewayIdentifier: id, name, targetConfiguration }),
    );
    const { status } = await settledTarget(clients, id, targetId);
    if (status !== 'READY') throw new Error(`the target ${name} is ${status}`);
  }
  return { id, url: `${platform.ready.endpoint}/gateways/${id}/inference` };
}
