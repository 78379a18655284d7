import { errors } from '@agentplatform/contract';
import { expect, it } from 'vitest';
import type { IamPrincipal } from '../../auth/principal.ts';
import { FakeClock } from '../../fake-clock.ts';
import type { AuditRecord } from '../audit-record.ts';
import { auditedAuthorize, decisionAudit } from './decision-audit.ts';

const arn = 'arn:aws:iam::123456789012:user/mate';
const principal: IamPrincipal = { kind: 'iam', accountId: '123456789012', arn, accessKeyId: 'AKIAMATE', tags: {} };

it('keeps what was changed and what was refused, and not every look', () => {
  const kept: AuditRecord[] = [];
  const audit = decisionAudit({ audit: (row) => kept.push(row), newRequestId: () => 'r', clock: new FakeClock() });
  const authorize = auditedAuthorize(({ resource }) => {
    if (resource === 'closed') throw errors.accessDenied('No policy allows it.');
    if (resource === 'broken') throw new TypeError('a defect of ours');
  }, audit);
  const ask = (action: string, resource: string) => (): void =>
    authorize({ principal, action, resource, conditions: {}, sourceIp: '127.0.0.1' });

  ask('iam:CreateUser', 'open')();
  ask('s3:GetObject', 'open')();
  ask('agentplatform:ReadMetrics', 'open')();
  expect(ask('s3:GetObject', 'closed')).toThrow('No policy allows it.');
  expect(ask('iam:PutUserPolicy', 'broken')).toThrow(TypeError);

  expect(kept.map(({ operation, status, errorCode }) => [operation, status, errorCode])).toEqual([
    ['iam:CreateUser', 200, undefined],
    ['s3:GetObject', 403, 'AccessDeniedException'],
    ['iam:PutUserPolicy', 500, undefined],
  ]);
  expect(kept[0]).toMatchObject({ principal: arn, resource: 'open', sourceIp: '127.0.0.1', requestId: 'r' });
});
