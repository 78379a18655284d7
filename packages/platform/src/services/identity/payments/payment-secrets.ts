import { errors } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import type { Secret } from '../../../kernel/secrets/index.ts';

/** The secret of a provider by the wire's name of its field; undefined where none was given. */
export type PaymentSecrets = (field: string) => Promise<Secret | undefined>;

export interface PaymentTokenDeps {
  secrets: PaymentSecrets;
  clock: Pick<Clock, 'now'>;
}

/** Rejects with ValidationException, which says which field was never given. */
export async function needSecret(field: string, { secrets }: PaymentTokenDeps): Promise<Secret> {
  const secret = await secrets(field);
  if (secret) return secret;
  throw errors.validation(`The payment credential provider has no ${field}.`, {
    remedy: 'Give it one with UpdatePaymentCredentialProvider.',
  });
}
