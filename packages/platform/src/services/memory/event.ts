import type { data } from '@agentplatform/contract';
import { list, record, text, wire } from '../../kernel/stored-shape.ts';

/** Where events live: one log per memory, actor and session. */
export interface SessionKey {
  memoryId: string;
  actorId: string;
  sessionId: string;
}

/** One event as it is kept. */
export interface StoredEvent extends SessionKey {
  eventId: string;
  at: Date;
  payload: data.PayloadType[];
  metadata: Record<string, data.MetadataValue>;
  branch: data.Branch | undefined;
  /** Values of the memory's own namespace variables. */
  variables: Record<string, string>;
}

/** The payload of an event, as JSON in the tables. */
export const storedPayload = list(wire<data.PayloadType>());
/** Its metadata there, and the values of namespace variables. */
export const storedMetadata = record(wire<data.MetadataValue>());
export const storedVariables = record(text);

/** An event in the wire's shape; without its payload when that was not wanted. */
export function eventView(event: StoredEvent, memoryId: string, includePayload = true): data.Event {
  const { actorId, sessionId, eventId, at, payload, branch, metadata } = event;
  const view = {
    memoryId,
    actorId,
    sessionId,
    eventId,
    eventTimestamp: at,
    ...(branch === undefined ? {} : { branch }),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
  };
  // The model calls the payload required, yet the service leaves it out when `includePayloads` is false.
  return includePayload ? { ...view, payload } : (view as data.Event);
}
