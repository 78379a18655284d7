import { type DocumentValue, errors } from '@agentplatform/contract';

/** The members of a request's body. Throws ValidationException, which has nothing of the body, for what is no JSON object. */
export function readBody(field: string, text: string): Record<string, DocumentValue> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw errors.invalidField(field, 'must be JSON');
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  throw errors.invalidField(field, 'must be a JSON object');
}
