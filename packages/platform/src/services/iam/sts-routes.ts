import { errors, ServiceError } from '@agentplatform/contract';
import type { Iam, IamPrincipal } from '../../kernel/auth/index.ts';
import type { RouteSet } from '../../kernel/http/index.ts';

const NAMESPACE = 'https://sts.amazonaws.com/doc/2011-06-15/';

/** STS names its errors in its own way (AWS STS API reference, common errors). */
const CODES: Readonly<Record<string, string>> = {
  AccessDeniedException: 'AccessDenied',
  ValidationException: 'ValidationError',
  InvalidInputException: 'InvalidAction',
  InvalidSignatureException: 'SignatureDoesNotMatch',
  UnrecognizedClientException: 'InvalidClientTokenId',
  MissingAuthenticationTokenException: 'MissingAuthenticationToken',
  IncompleteSignatureException: 'IncompleteSignature',
};

/** What can change who a session is, or what it may do, is refused rather than left out. */
const REFUSED = ['Policy', 'PolicyArns', 'SerialNumber', 'TokenCode', 'TransitiveTagKeys', 'ProvidedContexts'];

/** The STS Query API as far as it is needed: `POST /` with Action AssumeRole or GetCallerIdentity, answers in XML. */
export function stsRoutes(iam: Iam): RouteSet {
  return {
    name: 'sts',
    listeners: ['everybody', 'sandboxes'],
    routes: [
      {
        method: 'POST',
        url: '/',
        credentials: { kind: 'signature', service: 'sts' },
        ask({ principal, body, decide, reply, requestId }) {
          const form = new URLSearchParams(body.toString('utf8'));
          const action = form.get('Action') ?? '';
          const assumes = action === 'AssumeRole';
          // Whether the role may be assumed is for its trust policy to say, too.
          const asking = { action: 'sts:AssumeRole', resource: form.get('RoleArn') ?? '' };
          const work = (): Xml => run(iam, principal, action, form);
          return {
            rights: assumes ? 'later' : 'known',
            answer: () => {
              const result = assumes ? decide(asking, work) : work();
              return reply.type('text/xml').send(document(action, result, requestId));
            },
          };
        },
      },
    ],
    writeError(error, { reply, requestId }) {
      if (!(error instanceof ServiceError)) return undefined;
      const type = error.status < 500 ? 'Sender' : 'Receiver';
      const code = CODES[error.code] ?? error.code;
      const body = `<Error>${xml({ Type: type, Code: code, Message: error.wireMessage })}</Error>`;
      return reply
        .code(error.status)
        .type('text/xml')
        .send(`<ErrorResponse xmlns="${NAMESPACE}">${body}${xml({ RequestId: requestId })}</ErrorResponse>`);
    },
  };
}

function document(action: string, result: Xml, requestId: string): string {
  const metadata = `<ResponseMetadata>${xml({ RequestId: requestId })}</ResponseMetadata>`;
  return `<${action}Response xmlns="${NAMESPACE}"><${action}Result>${xml(result)}</${action}Result>${metadata}</${action}Response>`;
}

function run(iam: Iam, principal: IamPrincipal, action: string, form: URLSearchParams): Xml {
  if (action === 'GetCallerIdentity') {
    return { Arn: principal.arn, UserId: userIdOf(iam, principal), Account: principal.accountId };
  }
  if (action !== 'AssumeRole') {
    throw errors.invalidInput(
      `The action "${action.slice(0, 80)}" is not served; AssumeRole and GetCallerIdentity are.`,
    );
  }
  for (const name of form.keys()) {
    const refused = REFUSED.find((one) => name === one || name.startsWith(`${one}.`));
    if (refused) throw errors.invalidField(refused, 'is not supported');
  }
  const required = (name: string): string => {
    const value = form.get(name);
    if (!value) throw errors.invalidField(name, 'is required');
    return value;
  };
  const duration = form.get('DurationSeconds');
  const issued = iam.assumeRole(principal, {
    roleArn: required('RoleArn'),
    sessionName: required('RoleSessionName'),
    externalId: form.get('ExternalId') ?? undefined,
    sourceIdentity: form.get('SourceIdentity') ?? undefined,
    ttlSeconds: duration === null ? undefined : /^\d{1,6}$/.test(duration) ? Number(duration) : Number.NaN,
    tags: tagsOf(form),
  });
  return {
    AssumedRoleUser: { Arn: issued.arn, AssumedRoleId: issued.assumedRoleId },
    ...(issued.sourceIdentity !== undefined && { SourceIdentity: issued.sourceIdentity }),
    Credentials: {
      AccessKeyId: issued.accessKeyId,
      SecretAccessKey: issued.secretAccessKey,
      SessionToken: issued.sessionToken,
      Expiration: new Date(issued.expiresAt).toISOString(),
    },
  };
}

function tagsOf(form: URLSearchParams): Record<string, string> {
  const tags: [string, string][] = [];
  for (let i = 1; i <= 51; i++) {
    const key = form.get(`Tags.member.${i}.Key`);
    if (key === null) break;
    if (tags.some(([known]) => known === key)) throw errors.invalidField('Tags', `hold "${key}" twice`);
    tags.push([key, form.get(`Tags.member.${i}.Value`) ?? '']);
  }
  return Object.fromEntries(tags);
}

function userIdOf(iam: Iam, { accountId, arn }: IamPrincipal): string {
  const [, kind, name = '', session] = /:(user|assumed-role)\/([^/]+)(?:\/(.+))?$/.exec(arn) ?? [];
  if (kind === 'user') return iam.admin.getUser(name).userId;
  return kind === 'assumed-role' ? `${iam.admin.getRole(name).roleId}:${session}` : accountId;
}

interface Xml {
  [name: string]: string | Xml;
}

function xml(value: Xml): string {
  return Object.entries(value)
    .map(([name, inner]) => `<${name}>${typeof inner === 'string' ? escapeXml(inner) : xml(inner)}</${name}>`)
    .join('');
}

/** XML 1.0 has no place for other control characters, escaped or not. */
function escapeXml(text: string): string {
  return text.replace(/[<>&"']/g, (c) => `&#${c.charCodeAt(0)};`).replace(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd]/g, '?');
}
