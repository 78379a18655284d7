import type { FieldProblem } from '@agentplatform/contract';
import { type Endpoint, egressProblem, endpointsOf } from './egress.ts';
import type { RuntimeDefinition } from './runtime.ts';

/** A variable with this value gets that secret's instead, which stands nowhere in the definition: `secretref:NAME`. */
const REFERENCE = 'secretref:';

/** Names the services that the sandbox may reach besides: `HOST:PORT[,HOST:PORT…]`. */
const ALLOW_EGRESS = 'AGENTPLATFORM_ALLOW_EGRESS';

type Variables = Pick<RuntimeDefinition, 'environmentVariables'>;

/** What a definition's environment variables say, by kind. */
export interface AgentEnvironment {
  /** As they are. */
  plain: Record<string, string>;
  /** The name of the secret, by that of the variable that gets it. */
  secrets: Record<string, string>;
  endpoints: Endpoint[];
}

export function environmentOf({ environmentVariables = {} }: Variables): AgentEnvironment {
  const plain: Record<string, string> = {};
  const secrets: Record<string, string> = {};
  for (const [name, value] of Object.entries(environmentVariables)) {
    if (value.startsWith(REFERENCE)) secrets[name] = value.slice(REFERENCE.length);
    else plain[name] = value;
  }
  return { plain, secrets, endpoints: endpointsOf(plain[ALLOW_EGRESS] ?? '') };
}

/** What is wrong with the variables; `nameProblem` says why no secret has a name. */
export function environmentProblems(
  definition: Variables,
  nameProblem: (name: string) => string | undefined,
): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const say = (name: string, message: string | undefined): void => {
    if (message !== undefined) problems.push({ name: `environmentVariables.${name}`, message });
  };
  const { plain, secrets } = environmentOf(definition);
  for (const name of Object.keys(plain)) {
    const fits = /^[A-Za-z_][A-Za-z0-9_]*$/.test(name);
    say(name, fits ? undefined : 'must be letters, digits and underscores and not begin with a digit');
  }
  for (const [name, secret] of Object.entries(secrets)) {
    // What decides how a program begins must not come from whoever sets a secret.
    say(name, nameProblem(name));
    const problem = nameProblem(secret);
    say(name, problem && `refers to a secret whose name ${problem}`);
  }
  const list = plain[ALLOW_EGRESS];
  say(ALLOW_EGRESS, list === undefined ? undefined : egressProblem(list));
  return problems;
}
