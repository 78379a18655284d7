import { hash } from 'node:crypto';
import {
  clientTokenOf,
  type Inputs,
  inputFingerprint,
  type OperationName,
  operations,
  type WireResponse,
} from '@agentplatform/contract';
import type { Principal } from '../auth/index.ts';
import type { OperationHandler } from '../service.ts';
import type { IdempotencyKey } from '../storage/index.ts';
import { number, object, orAbsent, record, type Shape, text } from '../stored-shape.ts';
import { nameOf } from './audit-record.ts';

/**
 * What the answer to a call is kept under, so that a repeated one gets that of the first (spec wire: `clientToken`). Undefined where nothing is kept: the call has no
 * token, its handler sees to it itself, or its answer streams.
 */
export function clientTokenKey<K extends OperationName>(
  operation: K,
  input: Inputs[K],
  principal: Principal,
  { ownIdempotency }: Pick<OperationHandler<K>, 'ownIdempotency'>,
): IdempotencyKey | undefined {
  if (ownIdempotency || operations[operation].responds !== 'json') return undefined;
  const token = clientTokenOf(operation, input);
  if (token === undefined) return undefined;
  // A token is its caller's own: another's could otherwise be answered without the rights that its handler asks for, or be spoilt.
  const own = hash('sha256', `${nameOf(principal)}\n${token}`);
  const fingerprint = inputFingerprint(operation, input);
  return { accountId: principal.accountId, operation, token: own, fingerprint };
}

/** An answer that was kept, as it was written. */
export const keptAnswer = (stored: unknown): WireResponse => ANSWER(stored, '');

const ANSWER: Shape<WireResponse> = object({ status: number, headers: record(text), body: orAbsent(text) });
