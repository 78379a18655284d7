import { errors, ServiceError } from '@agentplatform/contract';
import type { Logger } from 'pino';
import { ModelError } from '../model-error.ts';

/**
 * What a client of Bedrock is told of a model that gave no answer; anything else stays what it is. What the service said of a request that it refused goes to the
 * caller, who alone can correct it; the rest goes to the log, for the operator. The cause is the `ModelError`.
 */
export function serviceErrorOf(
  error: unknown,
  { model, log, streaming }: { model: string; log: Logger; streaming: boolean },
): unknown {
  if (!(error instanceof ModelError)) return error;
  const said = error.said === undefined ? '' : ` It said: ${error.said}`;
  if (error.kind === 'refused')
    return errors.validation(`The model "${model}" refused the request.${said}`, { cause: error });
  // Clients know it by these words, and shorten the conversation.
  if (error.kind === 'too-long')
    return errors.validation(`Input is too long for requested model.${said}`, { cause: error });
  if (error.kind === 'throttled')
    return errors.throttling(`The service of the model "${model}" has had too many requests.`, { cause: error });
  log.warn({ err: error, model }, 'a model gave no answer');
  const message = `The model "${model}" gave no answer: ${error.message}.`;
  const remedy = 'The log of the platform says more.';
  if (streaming) return new ServiceError('ModelStreamErrorException', message, { remedy, cause: error });
  return error.kind === 'unavailable'
    ? errors.unavailable(message, { remedy, cause: error })
    : errors.model(message, { remedy, cause: error });
}
