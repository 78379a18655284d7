import { CliError } from './cli-error.ts';
import type { ExitReason } from './exit-codes.ts';

const byErrorName: Record<string, { reason: ExitReason; remedy?: string }> = {
  ResourceNotFoundException: { reason: 'notFound' },
  AccessDeniedException: {
    reason: 'denied',
    remedy:
      'Ask an administrator for a policy that allows it (agentcore iam put-policy), or use other credentials (--profile).',
  },
  UnauthorizedException: {
    reason: 'denied',
    remedy: 'Check the credentials; agentcore env prints those of this platform.',
  },
  UnrecognizedClientException: {
    reason: 'denied',
    remedy: 'The access key does not belong to this platform; agentcore env prints the right ones.',
  },
  InvalidSignatureException: { reason: 'denied', remedy: 'Check the secret access key and this machine’s clock.' },
  ExpiredTokenException: { reason: 'denied', remedy: 'Get new temporary credentials.' },
  CredentialsProviderError: {
    reason: 'denied',
    remedy: 'Use the platform’s own: eval "$(agentcore env)", or pass --profile.',
  },
  RuntimeClientError: { reason: 'agentFailed', remedy: 'See what it printed with: agentcore logs' },
  // The platform knows more rules for names, ids and documents than this program: what it refuses was typed wrong all the same.
  ValidationException: { reason: 'usage' },
  InvalidParameterValueException: { reason: 'usage' },
  InvalidInputException: { reason: 'usage' },
  ConflictException: { reason: 'failure', remedy: 'Something else is changing it; try again in a moment.' },
};

// What TLS makes of a server that does not speak it, by who asked.
const notTls = ['EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG'];

/** A certificate that this program has no reason to trust. */
const notTrusted = [
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
];

const unreachableCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_SOCKET',
  ...notTls,
  ...notTrusted,
]);

/** Turns whatever was thrown into what the user is told; `endpoint` names the platform that was talked to, if any. */
export function explain(error: unknown, endpoint?: string): CliError {
  if (error instanceof CliError) return error;
  if (!(error instanceof Error)) return new CliError('failure', String(error));
  const why = whyNoAnswer(error);
  if (why !== undefined) {
    const message = `The platform${endpoint ? ` at ${endpoint}` : ''} does not answer (${why}).`;
    return new CliError('unreachable', message, remedyOfSilence(why, endpoint), { cause: error });
  }
  const known = byErrorName[error.name];
  const message = error.message && error.message !== 'UnknownError' ? error.message : error.name;
  // Of much that is missing there is no list; what is deployed is known by the platform's words for it.
  const remedy =
    known?.reason === 'notFound' && /\bno agent runtime\b/.test(message)
      ? 'See what is deployed with: agentcore list'
      : known?.remedy;
  return new CliError(known?.reason ?? 'failure', message, remedy, { cause: error });
}

/**
 * What kept a request from being answered: a code of the system (`ECONNREFUSED`), or the reason that `fetch` hides behind its "fetch failed".
 * undefined when the error is about something else.
 */
export function whyNoAnswer(error: unknown): string | undefined {
  const code = systemCode(error);
  if (code !== undefined && unreachableCodes.has(code)) return code;
  if (!(error instanceof TypeError) || error.message !== 'fetch failed') return undefined;
  const cause = error.cause instanceof Error ? error.cause.message : 'fetch failed';
  return cause === 'bad port' ? BLOCKED_PORT : cause;
}

const BLOCKED_PORT = 'the fetch standard blocks its port';

function remedyOfSilence(why: string, endpoint: string | undefined): string {
  if (why === BLOCKED_PORT) return 'Start the platform on another port: npm start -- --port 4100';
  if (notTrusted.includes(why)) return 'Trust the CA of its certificate: NODE_EXTRA_CA_CERTS=FILE';
  if (endpoint && notTls.includes(why))
    return `It seems to speak plain HTTP there: ${endpoint.replace(/^https:/, 'http:')}`;
  return 'Start it with "npm start" or "npm run platform" in the platform’s folder, or name another one with --endpoint URL.';
}

/** What a refusal of the platform's own routes means, by its HTTP status; as `explain` says it of the errors of the vendor's API. */
export function reasonOf(status: number): ExitReason {
  if (status === 404) return 'notFound';
  if (status === 401 || status === 403) return 'denied';
  if (status === 424) return 'agentFailed';
  return status === 400 || status === 413 ? 'usage' : 'failure';
}

/** The code of the system's error (`ECONNRESET`) that a failure comes from; undefined when it comes from none. */
export function systemCode(error: unknown): string | undefined {
  // Node wraps: fetch throws a TypeError whose cause is an AggregateError whose errors have the code.
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; depth++) {
    if ('code' in at && typeof at.code === 'string') return at.code;
    at = at instanceof AggregateError ? at.errors[0] : at.cause;
  }
  return undefined;
}
