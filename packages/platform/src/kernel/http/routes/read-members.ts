import { errors } from '@agentplatform/contract';

/** The members of a JSON body, none when it is no object. Throws ValidationException, which shows `example`, when it is no JSON. */
export function readMembers(body: Buffer, example: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    throw errors.validation(`The body must be JSON: ${example}.`);
  }
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
