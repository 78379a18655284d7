import { type AuditRecord, auditText, nameOf } from './kernel/http/pipeline.ts';
import type { StreamRecord } from './services/runtime/index.ts';

/** The audit record of a WebSocket, written when it was opened or refused; `at` in milliseconds since the epoch. */
export function auditOfStream(stream: StreamRecord, at: number): AuditRecord {
  const { requestId, operation, principal, resource, status, error, req } = stream;
  return {
    at,
    requestId,
    operation,
    accountId: principal?.accountId,
    principal: principal && auditText(nameOf(principal)),
    resource: auditText(resource),
    status,
    errorCode: error?.name,
    sourceIp: req.socket.remoteAddress,
    userAgent: auditText(req.headers['user-agent'], 256),
  };
}
