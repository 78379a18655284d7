import { createHash } from 'node:crypto';
import type { Diagnostic, LoadedSet, PolicyEvaluator, PolicySetSource } from '../engine/door.ts';
import type { Policy } from '../policies/policy.ts';
import { concerns, mayForbid, type PolicyScope, scopesOf } from '../policies/policy-scope.ts';

/** The policies of an engine as one gateway has them: loaded, type-checked against its tools. */
export interface PolicySet {
  loaded: LoadedSet;
  /** The policies that check the answers of tools; undefined if there are none. */
  output: LoadedSet | undefined;
  /** Those that do not fit the tools of the gateway (any more). */
  broken: readonly BrokenPolicy[];
}

export interface BrokenPolicy {
  id: string;
  active: boolean;
  scopes: readonly PolicyScope[];
  problems: readonly Diagnostic[];
}

type SourcePolicy = PolicySetSource['policies'][number];

interface Candidate extends SourcePolicy {
  scopes: readonly PolicyScope[];
}

/** What of a policy decides. */
export type Deciding = Pick<Policy, 'id' | 'live' | 'enforcementMode'>;

/** What of the engine's policies is about that gateway. */
export function candidatesOf(policies: readonly Deciding[], gatewayArn: string): Candidate[] {
  return policies
    .flatMap(({ id, live, enforcementMode: mode }) =>
      live ? [{ id, ...live, mode, scopes: scopesOf(live.text) }] : [],
    )
    .filter(({ scopes }) => concerns(scopes, gatewayArn));
}

/** Loads a set. A policy with problems is left out and named: it permits nothing, and `brokenFor` tells what it keeps from being permitted. */
export async function loadSet(
  evaluator: PolicyEvaluator,
  gatewayArn: string,
  schema: string,
  candidates: readonly Candidate[],
): Promise<PolicySet> {
  const outputs = candidates.filter(isOutput);
  const load = (some: readonly Candidate[], phase: Phase) =>
    loadWithout(evaluator, { gatewayArn, schema, phase }, some);
  const request = await load(
    candidates.filter((one) => !isOutput(one)),
    'request',
  );
  const answered = outputs.map((one) => ({ ...one, text: asForbid(one.text) }));
  const permitAll: Candidate = {
    ...{ id: PERMIT_ALL, text: 'permit(principal, action, resource);', language: 'cedar', mode: 'ACTIVE', scopes: [] },
  };
  const response = outputs.length > 0 ? await load([permitAll, ...answered], 'response') : undefined;
  return {
    loaded: request.loaded,
    output: response?.loaded,
    broken: [...request.broken, ...(response?.broken ?? [])],
  };
}

/** The broken policies for whose sake an action is denied: nobody knows whether they would forbid it. */
export function brokenFor({ broken }: PolicySet, action: string): BrokenPolicy[] {
  return broken.filter(({ active, scopes }) => active && mayForbid(scopes, action));
}

export async function unloadSet(evaluator: PolicyEvaluator, { loaded, output }: PolicySet): Promise<void> {
  await evaluator.unload(loaded.id);
  if (output) await evaluator.unload(output.id);
}

/** Permits what the request phase has let through, so that policies on answers can forbid. */
export const PERMIT_ALL = 'agentplatform-permit-all';

type Phase = 'request' | 'response';

/** What makes sets of the same policies others. */
interface Around {
  gatewayArn: string;
  schema: string;
  phase: Phase;
}

async function loadWithout(
  evaluator: PolicyEvaluator,
  around: Around,
  candidates: readonly Candidate[],
): Promise<{ loaded: LoadedSet; broken: BrokenPolicy[] }> {
  const first = await evaluator.load(setOf(around, candidates));
  const { problems } = first;
  const errorsOf = (id: string | null) =>
    problems.filter(({ policyId, severity }) => policyId === id && severity === 'error');
  const broken = candidates
    .filter(({ id }) => first.broken.includes(id) || errorsOf(id).length > 0)
    .map(({ id, mode, scopes }) => ({ id, active: mode === 'ACTIVE', scopes, problems: errorsOf(id) }));
  // What is of no policy is of all of them: the tools of the gateway make no schema, or they are too many.
  if (errorsOf(null).length > 0)
    throw new Error(
      errorsOf(null)
        .map(({ message }) => message)
        .join('; '),
    );
  if (broken.length === 0 && first.loaded && first.closed === null) return { loaded: first, broken };
  const sound = candidates.filter(({ id }) => !broken.some((one) => one.id === id));
  const loaded = broken.length > 0 ? await evaluator.load(setOf(around, sound)) : first;
  await evaluator.unload(first.id);
  if (loaded.loaded && loaded.closed === null && loaded.id !== first.id) return { loaded, broken };
  throw new Error(loaded.closed ?? 'the policies could not be loaded');
}

let setsMade = 0;

/** What a set says, the same for all that say so. */
export function contentOf({ id }: Pick<LoadedSet, 'id'>): string {
  return id.replace(/#.*/, '');
}

function setOf(around: Around, candidates: readonly Candidate[]): PolicySetSource {
  const policies = candidates.map(({ scopes: _, ...policy }) => policy);
  const hash = createHash('sha256')
    .update(JSON.stringify([around, policies]))
    .digest('hex');
  // Each is loaded and let go by itself, also where another says the same.
  return { id: `${hash}#${++setsMade}`, schema: around.schema, policies };
}

function isOutput({ scopes }: Candidate): boolean {
  return scopes.some(({ effect }) => effect === 'suppressOutput');
}

/** The effect of the original on answers, in the words of the language that decides. */
function asForbid(text: string): string {
  return text.replace(/^((?:\s|\/\/[^\n]*\n|@[A-Za-z_]\w*(?:\("(?:[^"\\]|\\.)*"\))?)*)suppressOutput\b/, '$1forbid');
}
