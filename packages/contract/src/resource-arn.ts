import { type Arn, formatArn, parseArn } from './arn.ts';

/**
 * The resource part of every kind's ARN, as the model's patterns have it; `{}` are the identifiers in order.
 * A kind inside another (an endpoint, a policy) carries its owner's identifier first.
 */
export const resourceKinds = {
  runtime: 'runtime/{}',
  'runtime-endpoint': 'runtime/{}/runtime-endpoint/{}',
  'workload-identity': 'workload-identity-directory/{}/workload-identity/{}',
  'workload-identity-directory': 'workload-identity-directory/{}',
  'token-vault': 'token-vault/{}',
  'api-key-credential-provider': 'token-vault/{}/apikeycredentialprovider/{}',
  'oauth2-credential-provider': 'token-vault/{}/oauth2credentialprovider/{}',
  'payment-credential-provider': 'token-vault/{}/paymentcredentialprovider/{}',
  'consent-portal': 'consent-portal/{}',
  gateway: 'gateway/{}',
  'gateway-target': 'gateway/{}/target/{}',
  memory: 'memory/{}',
  browser: 'browser/{}',
  'browser-custom': 'browser-custom/{}',
  'browser-profile': 'browser-profile/{}',
  'code-interpreter': 'code-interpreter/{}',
  'code-interpreter-custom': 'code-interpreter-custom/{}',
  'capacity-provider': 'capacity-provider/{}',
  harness: 'harness/{}',
  'harness-endpoint': 'harness/{}/harness-endpoint/{}',
  evaluator: 'evaluator/{}',
  'online-evaluation-config': 'online-evaluation-config/{}',
  'batch-evaluation': 'batch-evaluation/{}',
  recommendation: 'recommendation/{}',
  'ab-test': 'ab-test/{}',
  dataset: 'dataset/{}',
  'configuration-bundle': 'configuration-bundle/{}',
  'policy-engine': 'policy-engine/{}',
  policy: 'policy-engine/{}/policy/{}',
  'policy-generation': 'policy-engine/{}/policy-generation/{}',
  'payment-manager': 'payment-manager/{}',
  'payment-connector': 'payment-manager/{}/connector/{}',
  registry: 'registry/{}',
  'registry-record': 'registry/{}/record/{}',
} as const satisfies Record<string, string>;

export type ResourceKind = keyof typeof resourceKinds;

/** A resource of this platform as its ARN names it. */
export interface ResourceName {
  kind: ResourceKind;
  partition: string;
  region: string;
  accountId: string;
  /** Identifiers from the outermost owner inwards. */
  ids: string[];
}

/** Where ARNs of this platform are made: its region and the owner's account. */
export interface ArnHome {
  region: string;
  accountId: string;
  partition?: string;
}

const IDENTIFIER = /^[^/\s]+$/;

/** What stands before, between and behind the identifiers: a request makes several ARNs. */
const templates = Object.fromEntries(
  Object.entries(resourceKinds).map(([kind, text]) => [kind, text.split('{}')]),
) as Record<ResourceKind, [string, ...string[]]>;

/** The ARN of a resource, e.g. `resourceArn('runtime-endpoint', home, runtimeId, 'DEFAULT')`. Throws RangeError when identifiers are too few, too many, empty or hold `/`. */
export function resourceArn(kind: ResourceKind, home: ArnHome, ...ids: string[]): string {
  const [first, ...others] = templates[kind];
  if (ids.length !== others.length) throw new RangeError(`The ARN of a ${kind} has ${others.length} identifiers`);
  let resource = first;
  for (const [index, part] of others.entries()) {
    const id = ids[index] ?? '';
    if (!IDENTIFIER.test(id)) throw new RangeError(`The ARN of a ${kind} cannot hold ${JSON.stringify(ids)}`);
    resource += id + part;
  }
  return formatArn({
    partition: home.partition ?? 'aws',
    service: 'bedrock-agentcore',
    region: home.region,
    accountId: home.accountId,
    resource,
  });
}

const byLength = (Object.keys(resourceKinds) as ResourceKind[]).map((kind) => ({
  kind,
  matches: new RegExp(`^${resourceKinds[kind].replaceAll('{}', '([^/\\s]+)')}$`),
}));

/** The resource that an ARN names, or undefined when it is not an ARN of this service or not of a known kind. */
export function parseResourceArn(text: string): ResourceName | undefined {
  const arn: Arn | undefined = parseArn(text);
  if (arn?.service !== 'bedrock-agentcore') return undefined;
  for (const { kind, matches } of byLength) {
    const found = matches.exec(arn.resource);
    if (found !== null) {
      return { kind, partition: arn.partition, region: arn.region, accountId: arn.accountId, ids: found.slice(1) };
    }
  }
  return undefined;
}
