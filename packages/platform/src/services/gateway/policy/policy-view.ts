import type { PolicyGateway, PolicyGateways } from '../../policy/index.ts';
import type { GatewayTools, OpenGateway } from '../gateway-tools.ts';
import type { GatewayDefinition } from '../gateways/gateway.ts';
import type { LiveTarget } from '../targets/target.ts';

type Attachment = NonNullable<GatewayDefinition['policyEngineConfiguration']>;

/** The same as long as the gateway is: what is made of it is kept by it. */
const views = new WeakMap<OpenGateway, Map<string, PolicyGateway>>();

/** A gateway as policies see it; undefined where no engine is attached. */
export function policyView(open: OpenGateway): PolicyGateway | undefined {
  const { policyEngineConfiguration } = open.gateway.definition;
  return policyEngineConfiguration && viewWith(open, policyEngineConfiguration);
}

/** The gateways that policies are about, in their state of now. */
export function policyGateways(tools: Pick<GatewayTools, 'find'>): PolicyGateways {
  return {
    async find(arn, engineArn) {
      const open = await tools.find(arn);
      if (!open) return undefined;
      const view = policyView(open);
      return view?.engineArn === engineArn ? view : viewWith(open, { arn: engineArn, mode: 'ENFORCE' });
    },
  };
}

function viewWith(open: OpenGateway, attachment: Attachment): PolicyGateway {
  const known = views.get(open) ?? new Map<string, PolicyGateway>();
  views.set(open, known);
  const view = known.get(attachment.arn) ?? made(open, attachment);
  known.set(attachment.arn, view);
  return view;
}

function made({ gateway, targets, tools }: OpenGateway, { arn: engineArn, mode }: Attachment): PolicyGateway {
  const { arn, id, accountId, definition } = gateway;
  const toolsOf = (target: LiveTarget) =>
    tools
      .filter((one) => one.target === target)
      .map(({ tool: { name, inputSchema, outputSchema } }) => ({ name, inputSchema, outputSchema }));
  return {
    ...{ arn, id, accountId, engineArn, mode },
    principalType: definition.authorizerType === 'AWS_IAM' ? 'IamEntity' : 'OAuthUser',
    targets: targets.map((target) => ({ name: target.name, tools: toolsOf(target) })),
    http: targets.some(({ live }) => live.targetConfiguration.http ?? live.targetConfiguration.inference),
  };
}
