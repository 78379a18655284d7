import { StartFailure } from '../../kernel/sessions/index.ts';
import type { GivenSecrets } from '../secrets/index.ts';

/** The secrets of one runtime, as they are now. */
export interface RuntimeSecrets {
  give(names: readonly string[]): Promise<GivenSecrets>;
  /** Another text after each change of any of these. */
  revision(names: readonly string[]): Promise<string>;
}

/** The label of a sandbox that says how old the secrets are that it was made with. */
export const SECRETS_LABEL = 'secrets';

/** What a sandbox is made with. */
export interface SecretEnvironment {
  env: Record<string, string>;
  revision: string;
}

/** The values of these variables, each of which names its secret; undefined without any. Rejects with `StartFailure` when one is not set. */
export async function secretEnvironment(
  variables: Record<string, string>,
  secrets: RuntimeSecrets,
): Promise<SecretEnvironment | undefined> {
  const names = [...new Set(Object.values(variables))];
  if (names.length === 0) return undefined;
  const { values, missing, revision } = await secrets.give(names);
  if (missing.length > 0)
    throw new StartFailure(
      `The agent is given secrets that are not set: ${missing.join(', ')}. Set each with: agentcore secret set NAME`,
    );
  const env: Record<string, string> = {};
  for (const [variable, name] of Object.entries(variables)) env[variable] = values.get(name)?.reveal() ?? '';
  return { env, revision };
}
