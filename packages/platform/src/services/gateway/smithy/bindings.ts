import { isReservedHeader, isToken } from '../http-tools/header-rules.ts';
import type { HttpParameter } from '../http-tools/http-tool.ts';
import { BrokenModelError, type Member, type ModelShape } from './model.ts';
import type { TimestampFormat } from './schemas.ts';

/** A member that goes into the path, the query or the headers. */
export interface BoundMember {
  member: Member;
  parameter: HttpParameter;
  timestamps: TimestampFormat;
}

/** The members of an operation's input by where a request has them. */
export interface Bindings {
  bound: BoundMember[];
  /** The member that is the body. */
  payload?: Member;
  /** Members of the body. */
  body: Member[];
}

/** Sorts members by their HTTP traits. Throws `BrokenModelError` for a header that no argument may set. */
export function bindingsOf({ members }: ModelShape, greedy: ReadonlySet<string>): Bindings {
  const bindings: Bindings = { bound: [], body: [] };
  for (const member of members) {
    const bound = boundTo(member, greedy);
    if (bound) bindings.bound.push(bound);
    else if (member.traits.httpPayload !== undefined) bindings.payload = member;
    else bindings.body.push(member);
  }
  return bindings;
}

function boundTo(member: Member, greedy: ReadonlySet<string>): BoundMember | undefined {
  const { name: argument, traits } = member;
  const { httpLabel, httpQuery, httpQueryParams, httpHeader, httpPrefixHeaders } = traits;
  if (httpLabel !== undefined) {
    const parameter: HttpParameter = { argument, name: argument, in: 'path', style: 'simple', explode: false };
    return {
      member,
      parameter: greedy.has(argument) ? { ...parameter, greedy: true } : parameter,
      timestamps: 'date-time',
    };
  }
  if (typeof httpQuery === 'string')
    return {
      member,
      parameter: { argument, name: httpQuery, in: 'query', style: 'form', explode: true },
      timestamps: 'date-time',
    };
  if (httpQueryParams !== undefined)
    return {
      member,
      parameter: { argument, name: '', in: 'query', style: 'form', explode: true, each: 'named' },
      timestamps: 'date-time',
    };
  if (typeof httpHeader === 'string') {
    if (isReservedHeader(httpHeader) || !isToken(httpHeader))
      throw new BrokenModelError(
        `The member ${argument} is the header ${httpHeader.slice(0, 100)}, which is not for arguments to set.`,
      );
    return {
      member,
      parameter: { argument, name: httpHeader, in: 'header', style: 'simple', explode: false },
      timestamps: 'http-date',
    };
  }
  if (typeof httpPrefixHeaders === 'string')
    return {
      member,
      parameter: { argument, name: httpPrefixHeaders, in: 'header', style: 'simple', explode: false, each: 'prefixed' },
      timestamps: 'http-date',
    };
  return undefined;
}
