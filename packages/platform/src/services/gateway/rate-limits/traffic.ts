import { createHash } from 'node:crypto';
import type { Principal } from '../../../kernel/auth/index.ts';
import { isObject } from '../tools/json-pointer.ts';

/** What rate limits see of one request. */
export interface Traffic {
  principal: Principal;
  /** Names in small letters. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** What the body says, where it is JSON. */
  body: unknown;
  /** Absent where the request is for no target. */
  targetName?: string | undefined;
  /** With the prefix of its target. */
  toolName?: string | undefined;
  /** `target/model`, the model as its provider calls it. */
  qualifiedModelId?: string | undefined;
  /** About how many it may take; absent where it asks no model. */
  tokens?: number | undefined;
  /** It goes on with what is under way, or ends it: no connection of its own, so that a limit of connections never keeps a client from its own session. */
  carriesOn?: boolean;
}

const JWT = '$.context.jwt.';
const HEADER = '$.context.request.header.';
const BODY = '$.context.request.body.';
/** Longer ones are known by their hash: they match no entry but a wildcard. */
const LONGEST_VALUE = 256;

/** Whether a dimension is a header of the request. */
export function isHeader(key: string): boolean {
  return key.startsWith(HEADER);
}

/** Whether a dimension is in the body of the request. */
export function isBody(key: string): boolean {
  return key.startsWith(BODY);
}

/** Whether a caller says by himself what a dimension is: it then stands beside one that says who he is. */
export function isOwnWord(key: string): boolean {
  return key.startsWith(HEADER) || key.startsWith(BODY);
}

/** Whether a dimension says who calls, by what his credentials prove. */
export function saysWho(key: string): boolean {
  return key.startsWith(JWT) || key.startsWith('$.context.iam.');
}

/** What a request has at a dimension; undefined where it has nothing, which no limit of that dimension counts. */
export function valueAt(key: string, traffic: Traffic): string | undefined {
  if (key === 'targetName' || key === 'toolName' || key === 'qualifiedModelId') return textOf(traffic[key]);
  if (key === '$.context.iam.principal') return roleOrUser(traffic.principal);
  if (key === '$.context.iam.sourceIdentity') return sourceIdentityOf(traffic.principal);
  if (key.startsWith(JWT)) return textOf(claimOf(traffic.principal, key.slice(JWT.length)));
  if (key.startsWith(HEADER)) return textOf(headerOf(traffic, key.slice(HEADER.length).toLowerCase()));
  if (key.startsWith(BODY)) return textOf(atPath(traffic.body, key.slice(BODY.length).split('.')));
  return undefined;
}

function headerOf({ headers }: Traffic, name: string): string | undefined {
  return Object.hasOwn(headers, name) ? [headers[name]].flat().join(',') : undefined;
}

/** ARN of a user, or of the role whose session it is: each session of it is the same caller. Undefined for a caller without an ARN. */
export function roleOrUser(principal: Principal): string | undefined {
  if (principal.kind !== 'iam') return undefined;
  return principal.arn.replace(/^arn:([^:]*):sts::(\d+):assumed-role\/([^/]+)\/.*$/, 'arn:$1:iam::$2:role/$3');
}

function sourceIdentityOf(principal: Principal): string | undefined {
  return principal.kind === 'iam' ? principal.sourceIdentity : undefined;
}

function claimOf(principal: Principal, name: string): unknown {
  if (principal.kind !== 'oauth') return undefined;
  // A claim may have dots in its name, and be inside of others.
  return Object.hasOwn(principal.claims, name) ? principal.claims[name] : atPath(principal.claims, name.split('.'));
}

function atPath(value: unknown, path: readonly string[]): unknown {
  let at = value;
  for (const name of path) {
    if (!isObject(at) || !Object.hasOwn(at, name)) return undefined;
    at = at[name];
  }
  return at;
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value !== 'string' || value === '') return undefined;
  return value.length > LONGEST_VALUE
    ? createHash('sha256')
        .update(value)
        .digest('hex')
        .padStart(LONGEST_VALUE + 1)
    : value;
}
