import type { Keys } from './keys.ts';
import { newSecretSuffix, SECRET_KIND, secretNameProblem } from './secret.ts';
import type { StoredSecrets } from './stored-secrets.ts';

export type { GivenSecrets } from './stored-secrets.ts';

/** Secrets of agents, as a service hands them to the agents that it runs. */
export interface AgentSecretsPort extends Pick<StoredSecrets, 'give' | 'revision' | 'forget'> {
  /** What the change feed calls a change of a secret. */
  topic: string;
  /** What a policy has to allow for an agent to be given the account's secret of that name; a pattern where there is none. */
  arnOf(accountId: string, name: string): Promise<string>;
  /** Why no secret has that name; undefined when one may. */
  nameProblem(name: string): string | undefined;
}

/** Secrets and keys with an ARN of their own; each use is asked for in the name of a caller, whose policies must allow it. */
export interface SecretsPort extends Pick<StoredSecrets, 'read'>, Pick<Keys, 'sign' | 'wrap' | 'unwrap' | 'need'> {
  agents: AgentSecretsPort;
  /** What ends the ARN of a secret, a fresh one. */
  newSuffix(): string;
  /** What a key says of itself; undefined for one that is not there (any more). Asks for no right. */
  key: Keys['find'];
}

export function secretsPort(secrets: StoredSecrets, keys: Keys): SecretsPort {
  return {
    agents: {
      give: (holder, names) => secrets.give(holder, names),
      revision: (holder, names) => secrets.revision(holder, names),
      forget: (holder, tx) => secrets.forget(holder, tx),
      topic: SECRET_KIND,
      arnOf: (accountId, name) => secrets.arnFor({ accountId }, name, '*'),
      nameProblem: secretNameProblem,
    },
    read: (id, jsonKey, caller) => secrets.read(id, jsonKey, caller),
    newSuffix: newSecretSuffix,
    key: (accountId, arn) => keys.find(accountId, arn),
    sign: (arn, algorithm, bytes, caller) => keys.sign(arn, algorithm, bytes, caller),
    wrap: (arn, bytes, caller) => keys.wrap(arn, bytes, caller),
    unwrap: (arn, wrapped, caller) => keys.unwrap(arn, wrapped, caller),
    need: (arn, caller) => keys.need(arn, caller),
  };
}
