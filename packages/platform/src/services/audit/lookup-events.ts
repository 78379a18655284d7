import { type PageScope, type Paginator, ServiceError } from '@agentplatform/contract';
import type { Executor } from '../../kernel/storage/index.ts';
import { number, object, type Shape, text } from '../../kernel/stored-shape.ts';
import { CHAINED_COLUMNS } from './audit-row.ts';
import { cloudTrailRecord, eventIdOf, eventOf, isLook, type TrailRow, typeOf, usernameOf } from './cloudtrail-event.ts';
import { lookupErrors } from './error-kinds.ts';

/** What `LookupEvents` asks for (CloudTrail API reference, LookupEvents). */
export interface Lookup {
  attribute: { key: AttributeKey; value: string } | undefined;
  /** Milliseconds since the epoch. */
  from: number;
  to: number;
  most: number;
  token: string | undefined;
}

const ATTRIBUTES = [
  'EventId',
  'EventName',
  'ReadOnly',
  'Username',
  'ResourceType',
  'ResourceName',
  'EventSource',
  'AccessKeyId',
] as const;
type AttributeKey = (typeof ATTRIBUTES)[number];

const MOST_EVENTS = 50;
/** Rows that one call looks at for those that it is asked for; with a rare attribute it answers fewer, and a token. */
const MOST_ROWS = 10_000;
const PAGE = 500;

/** Reads the body of a request. Throws what CloudTrail has for it (`error-kinds.ts`). */
export function readLookup(body: Record<string, unknown>): Lookup {
  const { LookupAttributes = [], StartTime, EndTime, MaxResults = MOST_EVENTS, NextToken } = body;
  if (!Array.isArray(LookupAttributes) || LookupAttributes.length > 1)
    throw lookupErrors.InvalidLookupAttributesException('LookupAttributes must be a list of at most one attribute.');
  if (typeof MaxResults !== 'number' || !Number.isInteger(MaxResults) || MaxResults < 1 || MaxResults > MOST_EVENTS)
    throw lookupErrors.InvalidMaxResultsException(`MaxResults must be a whole number from 1 to ${MOST_EVENTS}.`);
  if (NextToken !== undefined && typeof NextToken !== 'string')
    throw lookupErrors.InvalidNextTokenException('NextToken must be a text.');
  const from = momentOf('StartTime', StartTime, 0);
  const to = momentOf('EndTime', EndTime, Number.MAX_SAFE_INTEGER);
  if (from > to) throw lookupErrors.InvalidTimeRangeException('StartTime must not be after EndTime.');
  return { attribute: attributeOf(LookupAttributes[0]), from, to, most: MaxResults, token: NextToken };
}

export interface LookupDeps {
  database: Pick<Executor, 'query'>;
  paginator: Paginator;
  region: string;
  accountId: string;
}

/** An event as `LookupEvents` lists it; `CloudTrailEvent` is the whole of it as JSON. */
export interface LookedUpEvent {
  EventId: string;
  EventName: string;
  ReadOnly: 'true' | 'false';
  /** Seconds since the epoch. */
  EventTime: number;
  EventSource: string;
  Username?: string;
  Resources: { ResourceType: string; ResourceName: string }[];
  CloudTrailEvent: string;
}

/** The last row that was looked at: rows are only ever added, and keep their place in the table. */
interface Place {
  at: number;
  ctid: string;
}

const placeShape: Shape<Place> = object({ at: number, ctid: text });

/** The account's events, the newest first, up to `most`; a token where there may be more. */
export async function lookupEvents(
  { database, paginator, region, accountId }: LookupDeps,
  { attribute, from, to, most, token }: Lookup,
): Promise<{ Events: LookedUpEvent[]; NextToken?: string }> {
  const filter = { attribute: attribute ? [attribute.key, attribute.value] : [], from, to };
  const scope: PageScope = { operation: 'LookupEvents', accountId, filter };
  let place = token === undefined ? undefined : placeOf(paginator, scope, token);
  const events: LookedUpEvent[] = [];
  for (let looked = 0; looked < MOST_ROWS; looked += PAGE) {
    const rows = await database.query<TrailRow & { ctid: string }>(READ, [
      ...[accountId, from, to, place?.at ?? null, place?.ctid ?? '(0,0)', PAGE],
    ]);
    for (const row of rows) {
      if (events.length === most) return { Events: events, NextToken: paginator.encode(scope, { ...place }) };
      place = { at: row.at, ctid: row.ctid };
      const event = eventIn(row, { region, accountId });
      if (!attribute || MATCHES[attribute.key](event, attribute.value)) events.push(event);
    }
    if (rows.length < PAGE) return { Events: events };
  }
  return { Events: events, NextToken: paginator.encode(scope, { ...place }) };
}

function placeOf(paginator: Paginator, scope: PageScope, token: string): Place {
  try {
    return placeShape(paginator.decode(scope, token), '');
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw lookupErrors.InvalidNextTokenException('NextToken is not one that an answer to this question gave.');
  }
}

const READ = `
  SELECT ${CHAINED_COLUMNS}, ctid::text AS ctid FROM audit
  WHERE account_id = $1 AND at >= $2 AND at <= $3 AND ($4::bigint IS NULL OR at < $4 OR (at = $4 AND ctid < $5::tid))
  ORDER BY at DESC, ctid DESC LIMIT $6`;

const MATCHES: Record<AttributeKey, (event: LookedUpEvent, value: string) => boolean> = {
  EventId: ({ EventId }, value) => EventId === value,
  EventName: ({ EventName }, value) => EventName === value,
  ReadOnly: ({ ReadOnly }, value) => ReadOnly === value,
  Username: ({ Username }, value) => Username === value,
  ResourceType: ({ Resources }, value) => Resources.some(({ ResourceType }) => ResourceType === value),
  ResourceName: ({ Resources }, value) =>
    Resources.some(({ ResourceName: name }) => name === value || name.slice(name.lastIndexOf('/') + 1) === value),
  EventSource: ({ EventSource }, value) => EventSource === value,
  // The trail keeps no keys.
  AccessKeyId: () => false,
};

function eventIn(row: TrailRow, at: { region: string; accountId: string }): LookedUpEvent {
  const { name, source } = eventOf(row.operation);
  const { principal, resource } = row;
  return {
    EventId: eventIdOf(row),
    EventName: name,
    ReadOnly: isLook(name) ? 'true' : 'false',
    EventTime: row.at / 1000,
    EventSource: source,
    ...(principal !== null && { Username: usernameOf(principal) }),
    Resources: resource === null ? [] : [{ ResourceType: typeOf(resource), ResourceName: resource }],
    CloudTrailEvent: JSON.stringify(cloudTrailRecord(row, at)),
  };
}

function attributeOf(value: unknown): Lookup['attribute'] {
  if (value === undefined) return undefined;
  const { AttributeKey, AttributeValue } =
    typeof value === 'object' && value !== null ? (value as Partial<Record<string, unknown>>) : {};
  const key = ATTRIBUTES.find((one) => one === AttributeKey);
  if (!key)
    throw lookupErrors.InvalidLookupAttributesException(`AttributeKey must be one of ${ATTRIBUTES.join(', ')}.`);
  if (typeof AttributeValue !== 'string' || AttributeValue === '' || AttributeValue.length > 2000)
    throw lookupErrors.InvalidLookupAttributesException('AttributeValue must have 1 to 2000 characters.');
  return { key, value: AttributeValue };
}

/** Seconds since the epoch, as JSON protocols of AWS write moments. */
function momentOf(field: string, value: unknown, absent: number): number {
  if (value === undefined) return absent;
  const seconds = typeof value === 'number' ? value : Number.NaN;
  if (!(Math.abs(seconds) < 1e11))
    throw lookupErrors.InvalidTimeRangeException(`${field} must be a moment in seconds since the epoch.`);
  return Math.round(seconds * 1000);
}
