import { type control, errors } from '@agentplatform/contract';
import { Secret } from '../../../kernel/secrets/index.ts';
import type { Caller } from '../../../kernel/service.ts';
import { flag, object, oneOf, type Shape, text } from '../../../kernel/stored-shape.ts';

/** One secret as a request gives it. */
export interface GivenSecret {
  /** The text itself; empty is as good as absent. */
  value: string | undefined;
  source: control.SecretSourceType | undefined;
  config: control.SecretReference | undefined;
  /** What the wire calls the members for source and reference, without `Source` and `Config`, where that is not the field's own name. */
  prefix?: string;
  /** Absent: it must be given when the provider is made. */
  optional?: true;
}

/** Where a secret of a provider stands. Holds no secret. */
export type KeptSecret =
  | { source: 'MANAGED'; secretArn: string; set: boolean }
  | { source: 'EXTERNAL'; secretArn: string; jsonKey: string };

const MANAGED: Shape<KeptSecret> = object({ source: oneOf('MANAGED'), secretArn: text, set: flag });
const EXTERNAL: Shape<KeptSecret> = object({ source: oneOf('EXTERNAL'), secretArn: text, jsonKey: text });
const SOURCE = object({ source: oneOf('MANAGED', 'EXTERNAL') });

export const storedSecret: Shape<KeptSecret> = (value, at) =>
  (SOURCE(value, at).source === 'MANAGED' ? MANAGED : EXTERNAL)(value, at);

/** Secrets with an ARN of their own. */
export interface ExternalSecrets {
  /**
   * The text under that key of the JSON that a secret holds, by the secret's ARN or name. Rejects with AccessDeniedException unless the
   * caller may read it, ResourceNotFoundException, and ValidationException when there is no such text.
   */
  read(secretId: string, jsonKey: string, caller: Caller): Promise<{ arn: string; value: Secret }>;
}

/** What a request says of one secret, after its rules: a new text, another place, or nothing. */
export type SecretChange =
  | { source: 'MANAGED'; value: Secret }
  | { source: 'EXTERNAL'; secretId: string; jsonKey: string }
  | undefined;

/** Throws ValidationException for what contradicts itself or is not whole. No message has anything of the secret. */
export function secretChange(field: string, given: GivenSecret): SecretChange {
  const { value = '', config, source, prefix = field } = given;
  if (source === 'EXTERNAL') {
    if (value !== '') throw errors.invalidField(field, `cannot be given with ${prefix}Source EXTERNAL`);
    if (!config)
      throw errors.invalidField(`${prefix}Config`, `must say where the secret is, with ${prefix}Source EXTERNAL`);
    return { source, secretId: config.secretId, jsonKey: config.jsonKey };
  }
  if (config) throw errors.invalidField(`${prefix}Config`, `needs ${prefix}Source EXTERNAL`);
  if (value !== '') return { source: 'MANAGED', value: new Secret(value) };
  if (source === 'MANAGED' && !given.optional)
    throw errors.invalidField(field, `must be given with ${prefix}Source MANAGED`);
  return undefined;
}

/** Where a secret stands, as the wire shows it. */
export interface ShownSecret {
  arn: control.Secret;
  source: control.SecretSourceType;
  jsonKey: string | undefined;
}

export function shownSecret(kept: KeptSecret | undefined): ShownSecret {
  if (!kept) throw new Error('a stored credential provider lacks a secret that its kind has');
  const jsonKey = kept.source === 'EXTERNAL' ? kept.jsonKey : undefined;
  return { arn: { secretArn: kept.secretArn }, source: kept.source, jsonKey };
}
