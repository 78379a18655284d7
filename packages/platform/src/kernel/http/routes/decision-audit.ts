import { ServiceError } from '@agentplatform/contract';
import type { Principal } from '../../auth/principal.ts';
import type { Clock } from '../../clock.ts';
import { type AuditRecord, auditRecord } from '../audit-record.ts';
import type { PipelineDeps } from '../pipeline.ts';

/** Who asked for what at a door beside the contract's operations. */
export interface Decision {
  principal: Principal;
  /** `service:Action`, as policies name it. */
  action: string;
  resource: string;
  sourceIp: string | undefined;
}

export interface DecisionAuditDeps {
  audit(record: AuditRecord): void;
  newRequestId(): string;
  clock: Clock;
}

/** Looking is not kept when it was allowed: scrapes and polls would fill the trail with nothing that anybody did. */
const LOOKS = /:(Get|List|Read|Pull|Validate|Doctor$)/;

/**
 * The audit trail of IAM, STS, S3, the registry and administration: what the pipeline keeps of each operation of the contract with its
 * answer, these doors keep of each decision.
 */
export function decisionAudit({ audit, newRequestId, clock }: DecisionAuditDeps) {
  /** Runs `decide` and keeps its outcome; hands on what it returns or throws. */
  return <Result>({ principal, action, resource, sourceIp }: Decision, decide: () => Result): Result => {
    const keep = (status: number, errorCode?: string): void =>
      audit(
        auditRecord({
          at: clock.now(),
          requestId: newRequestId(),
          operation: action,
          principal,
          resource,
          status,
          errorCode,
          sourceIp,
          userAgent: undefined,
        }),
      );
    let result: Result;
    try {
      result = decide();
    } catch (error) {
      if (error instanceof ServiceError) keep(error.status, error.code);
      else keep(500);
      throw error;
    }
    if (!LOOKS.test(action)) keep(200);
    return result;
  };
}

export type DecisionAudit = ReturnType<typeof decisionAudit>;

/** `authorize` with each of its decisions in the audit trail. */
export function auditedAuthorize(
  authorize: PipelineDeps['authorize'],
  audit: DecisionAudit,
): PipelineDeps['authorize'] {
  return (request) => audit(request, () => authorize(request));
}
