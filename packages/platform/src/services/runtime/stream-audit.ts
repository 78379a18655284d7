import { type AuditRecord, auditRecord } from '../../kernel/http/audit-record.ts';
import type { StreamRecord } from './index.ts';

/** The audit record of a WebSocket, written when it was opened or refused; `at` in milliseconds since the epoch. */
export function auditOfStream({ error, req, ...stream }: StreamRecord, at: number): AuditRecord {
  const { requestId, operation, principal, resource, status } = stream;
  return auditRecord({
    at,
    requestId,
    operation,
    principal,
    resource,
    status,
    errorCode: error?.name,
    sourceIp: req.socket.remoteAddress,
    userAgent: req.headers['user-agent'],
  });
}
