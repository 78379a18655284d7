import { isReservedHeader, isToken } from '../http-tools/header-rules.ts';
import type { HttpParameter } from '../http-tools/http-tool.ts';
import { BrokenModelError, type Member, type Model, type ModelShape } from './model.ts';
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

/** Sorts members by their HTTP traits. A header that no argument may set is none; where it is required, throws `BrokenModelError`. */
export function bindingsOf({ members }: ModelShape, greedy: ReadonlySet<string>, model: Model): Bindings {
  const bindings: Bindings = { bound: [], body: [] };
  for (const member of members) {
    if (isWithheld(member)) continue;
    const bound = boundTo(member, greedy, model);
    if (bound) bindings.bound.push(bound);
    else if (member.traits.httpPayload !== undefined) bindings.payload = member;
    else bindings.body.push(member);
  }
  return bindings;
}

function isWithheld({ name, traits: { httpHeader, required } }: Member): boolean {
  if (typeof httpHeader !== 'string' || (isToken(httpHeader) && !isReservedHeader(httpHeader))) return false;
  if (required === undefined) return true;
  throw new BrokenModelError(
    `It needs the header ${httpHeader.slice(0, 100)} (${name}), which is not for arguments to set.`,
  );
}

function boundTo(member: Member, greedy: ReadonlySet<string>, model: Model): BoundMember | undefined {
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
  if (typeof httpHeader === 'string')
    return {
      member,
      parameter: {
        argument,
        name: httpHeader,
        in: 'header',
        style: 'simple',
        explode: false,
        ...inHeader(member, model),
      },
      timestamps: 'http-date',
    };
  if (typeof httpPrefixHeaders === 'string')
    return {
      member,
      parameter: { argument, name: httpPrefixHeaders, in: 'header', style: 'simple', explode: false, each: 'prefixed' },
      timestamps: 'http-date',
    };
  return undefined;
}

/** How a header carries what that member is of: items of texts are quoted, and a text of a media type goes in base64. */
function inHeader({ target, traits }: Member, model: Model): Pick<HttpParameter, 'items' | 'base64'> {
  const shape = model.shape(target);
  if (shape.type === 'string' && (traits.mediaType ?? shape.traits.mediaType) !== undefined) return { base64: true };
  const [item] = shape.type === 'list' || shape.type === 'set' ? shape.members : [];
  if (!item) return {};
  return { items: ['string', 'enum'].includes(model.shape(item.target).type) ? 'quoted' : 'bare' };
}
