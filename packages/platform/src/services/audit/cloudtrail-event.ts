import type { ChainedRow } from './audit-row.ts';

/** A row as CloudTrail writes an event (CloudTrail user guide, "CloudTrail record contents"), without what was sent or answered. */
export interface CloudTrailRecord {
  eventVersion: '1.11';
  userIdentity: Record<string, unknown>;
  eventTime: string;
  eventSource: string;
  eventName: string;
  awsRegion: string;
  sourceIPAddress?: string;
  userAgent?: string;
  errorCode?: string;
  requestParameters: null;
  responseElements: null;
  additionalEventData: Record<string, unknown>;
  requestID: string;
  eventID: string;
  readOnly: boolean;
  resources: { ARN: string; accountId?: string; type: string }[];
  eventType: 'AwsApiCall';
  managementEvent: boolean;
  recipientAccountId: string;
  eventCategory: 'Management' | 'Data';
}

/** A row that may be from before there were chains. */
export type TrailRow = Omit<ChainedRow, 'chain' | 'seq' | 'previous' | 'hash'> & {
  [Place in 'chain' | 'seq' | 'previous' | 'hash']: ChainedRow[Place] | null;
};

const ITSELF = 'bedrock-agentcore';
/** What is done with what is there: CloudTrail's data events. */
const DATA =
  /^(Invoke|Converse|Retrieve|Search|Batch|CreateEvent|GetEvent|ListEvents|DeleteEvent|PutObject|GetObject|DeleteObject)/;
const SESSIONS = /^(Start|Stop)(Runtime|Browser|CodeInterpreter)Session$/;
const LOOKS = /^(Get|List|Read|Describe|Search|Retrieve|Lookup|Validate|Head|Pull|Doctor)/;
/** Types of resources, by what their ARN has after the account; harnesses are recorded under the type of runtimes (spec, Audit). */
const TYPES: Readonly<Record<string, string>> = {
  runtime: 'AWS::BedrockAgentCore::Runtime',
  harness: 'AWS::BedrockAgentCore::Runtime',
  gateway: 'AWS::BedrockAgentCore::Gateway',
  memory: 'AWS::BedrockAgentCore::Memory',
  browser: 'AWS::BedrockAgentCore::Browser',
  'browser-custom': 'AWS::BedrockAgentCore::Browser',
  'code-interpreter': 'AWS::BedrockAgentCore::CodeInterpreter',
  'code-interpreter-custom': 'AWS::BedrockAgentCore::CodeInterpreter',
  'workload-identity-directory': 'AWS::BedrockAgentCore::WorkloadIdentity',
  'token-vault': 'AWS::BedrockAgentCore::TokenVault',
  'policy-engine': 'AWS::BedrockAgentCore::PolicyEngine',
  function: 'AWS::Lambda::Function',
  role: 'AWS::IAM::Role',
  user: 'AWS::IAM::User',
  secret: 'AWS::SecretsManager::Secret',
  key: 'AWS::KMS::Key',
};

/** `iam:CreateRole` is CreateRole of IAM; an operation of the contract has no service before it. */
export function eventOf(operation: string): { name: string; source: string } {
  const colon = operation.indexOf(':');
  const service = colon < 0 ? ITSELF : operation.slice(0, colon);
  return { name: operation.slice(colon + 1), source: `${service}.amazonaws.com` };
}

/** Whether nothing was changed by it. */
export const isLook = (name: string): boolean => LOOKS.test(name);

/** Of a resource by its ARN; `AWS::S3::Object` and the like where the part of an ARN names none. */
export function typeOf(arn: string): string {
  const [, , service = '', , , rest = ''] = arn.split(':');
  const kind = rest.split('/')[0] ?? '';
  if (service === 's3') return arn.includes('/') ? 'AWS::S3::Object' : 'AWS::S3::Bucket';
  return TYPES[kind] ?? (service === '' ? 'Other' : `AWS::${service}::${kind || 'Resource'}`);
}

/** The id of an event: from its hash, so that it can be told to which row of the chain it belongs; of a row without one that of the request. */
export function eventIdOf({ hash, requestId }: Pick<TrailRow, 'hash' | 'requestId'>): string {
  if (hash === null) return requestId;
  const cuts = [0, 8, 12, 16, 20, 32];
  return cuts
    .slice(1)
    .map((to, part) => hash.slice(cuts[part], to))
    .join('-');
}

/** The name that a caller goes by in lists: of a user, or of the session of a role. */
export const usernameOf = (principal: string): string => principal.slice(principal.lastIndexOf('/') + 1);

/** Writes a row as an event of that region and account. */
export function cloudTrailRecord(
  row: TrailRow,
  { region, accountId }: { region: string; accountId: string },
): CloudTrailRecord {
  const { name, source } = eventOf(row.operation);
  const data = DATA.test(name) || SESSIONS.test(name);
  const { resource, sourceIp, userAgent, errorCode } = row;
  return {
    eventVersion: '1.11',
    userIdentity: identityOf(row),
    eventTime: `${new Date(row.at).toISOString().slice(0, 19)}Z`,
    eventSource: source,
    eventName: name,
    awsRegion: region,
    ...(sourceIp !== null && { sourceIPAddress: sourceIp }),
    ...(userAgent !== null && { userAgent }),
    ...(errorCode !== null && { errorCode }),
    requestParameters: null,
    responseElements: null,
    additionalEventData: additionOf(row),
    requestID: row.requestId,
    eventID: eventIdOf(row),
    readOnly: isLook(name),
    resources:
      resource === null
        ? []
        : [{ ARN: resource, ...(row.accountId !== null && { accountId: row.accountId }), type: typeOf(resource) }],
    eventType: 'AwsApiCall',
    managementEvent: !data,
    recipientAccountId: accountId,
    eventCategory: data ? 'Data' : 'Management',
  };
}

function identityOf({ principal, accountId }: TrailRow): Record<string, unknown> {
  if (principal === null) return { type: 'Unknown' };
  const account = accountId === null ? {} : { accountId };
  if (!principal.startsWith('arn:'))
    return { type: 'WebIdentityUser', principalId: principal, userName: principal, ...account };
  const [, , , , , rest = ''] = principal.split(':');
  if (rest === 'root') return { type: 'Root', arn: principal, ...account };
  const userName = usernameOf(principal);
  if (rest.startsWith('assumed-role/'))
    return { type: 'AssumedRole', arn: principal, principalId: userName, ...account };
  return { type: 'IAMUser', arn: principal, userName, ...account };
}

function additionOf(row: TrailRow): Record<string, unknown> {
  const { status, count, until, sessionId, onBehalfOf, chain, seq, previous, hash } = row;
  return {
    status,
    ...(count > 1 && { count }),
    ...(until !== null && { until: new Date(until).toISOString() }),
    ...(sessionId !== null && { sessionId }),
    ...(onBehalfOf !== null && { onBehalfOf }),
    at: row.at,
    ...(chain !== null && { chain, seq, previous, hash }),
  };
}
