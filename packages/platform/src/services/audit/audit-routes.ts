import { Readable } from 'node:stream';
import { errors } from '@agentplatform/contract';
import { type RouteSet, SIGNED } from '../../kernel/http/index.ts';
import type { AuditReport } from './verify.ts';

export interface AuditRoutesDeps {
  verify(): Promise<AuditReport>;
  /** The trail from that moment on and before the other, in milliseconds since the epoch: a line of JSON for each row. */
  export(from: number, to: number): AsyncIterable<string>;
}

/** What `agentcore audit` asks: whether the trail is whole, and all of it. */
export function auditRoutes({ verify, export: exported }: AuditRoutesDeps): RouteSet {
  return {
    name: 'audit',
    routes: [
      {
        method: 'GET',
        url: '/_platform/audit/verification',
        credentials: SIGNED,
        ask: () => ({ rights: { action: 'agentplatform:ValidateAudit', resource: '*' }, answer: verify }),
      },
      {
        method: 'GET',
        url: '/_platform/audit/records',
        credentials: SIGNED,
        ask: ({ query, reply }) => ({
          rights: { action: 'agentplatform:ReadAudit', resource: '*' },
          answer() {
            const from = momentIn(query, 'from') ?? 0;
            const to = momentIn(query, 'to') ?? Number.MAX_SAFE_INTEGER;
            return reply.type('application/x-ndjson').send(Readable.from(exported(from, to), { objectMode: false }));
          },
        }),
      },
    ],
  };
}

/** ISO 8601. Throws ValidationException. */
function momentIn(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const moment = /^\d{4}-\d\d-\d\d(T[\d:.]+Z?)?$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(moment)) throw errors.invalidField(name, 'must be a day or a moment such as 2026-11-27T09:30:00Z');
  return moment;
}
