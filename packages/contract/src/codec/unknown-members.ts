import { modelVersion } from '../generated/operations.ts';
import { reportAt, type Walk } from './walk.ts';

/**
 * Words of names that confine: who may, what may be reached or seen, how it is protected, how much and for how long. A word that is missing
 * here is a field that is passed over; one too many is a newer client that is refused although it need not be.
 */
export const confiningWords: ReadonlySet<string> = new Set([
  ...[
    'auth',
    'authentication',
    'authorization',
    'authorizer',
    'oauth',
    'jwt',
    'principal',
    'principals',
    'role',
    'scope',
  ],
  ...['scopes', 'permissions', 'policy', 'policies', 'enforcement', 'approval', 'guardrail', 'guardrails', 'waf'],
  ...[
    'allow',
    'allowed',
    'allowlist',
    'deny',
    'denied',
    'exclude',
    'filter',
    'filters',
    'condition',
    'conditions',
    'only',
  ],
  ...['network', 'vpc', 'subnets', 'security', 'private', 'ports', 'proxy'],
  ...[
    'encryption',
    'kms',
    'certificate',
    'certificates',
    'credential',
    'credentials',
    'secret',
    'signing',
    'redaction',
  ],
  ...['expiry', 'expiration', 'retention', 'limit', 'limits', 'timeout', 'budget'],
]);

/**
 * Refuses members that the model does not have where to pass over them would be unsafe: where their own name, or that of something that they
 * stand in, confines (ADR 22). All others are those of a newer SDK that asks for more than there is here, and are passed over.
 */
export function reportUnknownMembers(value: object, known: ReadonlySet<string>, walk: Walk): void {
  let within: boolean | undefined;
  for (const [name, member] of Object.entries(value)) {
    if (known.has(name) || member === null || name === '__type') continue;
    within ??= walk.path.some((step) => typeof step === 'string' && confines(step));
    if (!within && !confines(name)) continue;
    reportAt(
      walk,
      name,
      `is not known here (${modelVersion}), and to go on without it could allow more than was meant`,
    );
  }
}

/** Whether a name in camel case has one of the words. */
export function confines(name: string): boolean {
  const words = name.slice(0, 256).split(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+/);
  return words.some((word) => confiningWords.has(word.toLowerCase()));
}
