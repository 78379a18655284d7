import type { data } from '@agentplatform/contract';
import { extractionKind, type Strategy } from './memory.ts';
import { namespaceKey, ownVariables, renderNamespace } from './namespaces.ts';

type Conditions = Record<string, string>;

const ACTOR = 'bedrock-agentcore:actorId';
const SESSION = 'bedrock-agentcore:sessionId';
const NAMESPACE = 'bedrock-agentcore:namespace';
const NAMESPACE_PATH = 'bedrock-agentcore:namespacePath';
const STRATEGY = 'bedrock-agentcore:strategyId';

/**
 * The condition keys that policies can confine a role with (spec: Authentication, Memory). A key is there only when the
 * request says it, so a policy that asks for one refuses what is not confined. A namespace is there by the name that the store compares
 * it by. Requests on several namespaces give one set of keys for each, and each must be allowed by itself.
 */
export const conditionsOf = {
  session: (input: { actorId: string; sessionId?: string }): Conditions => ({
    [ACTOR]: input.actorId,
    ...(input.sessionId === undefined ? {} : { [SESSION]: input.sessionId }),
  }),
  /**
   * The conditions that must all be allowed to write an event for an actor. `jane` and `jane/` are two actors, but a namespace that ends in `{actorId}` is the
   * same for both, so both actors must be allowed. Each namespace that can get records of the event must be allowed together with the actor. A namespace
   * that the caller chooses with `namespaceVariables` must also be allowed without the actor, because a right to an actor does not cover it.
   */
  written: (input: Written, strategies: readonly Strategy[]): Conditions[] => {
    const actors = [...new Set([input.actorId, namespaceKey(input.actorId)])];
    const sessions = actors.map((actorId) => conditionsOf.session({ ...input, actorId }));
    const reached = input.extractionMode === 'SKIP' ? [] : reachedBy(input, strategies);
    if (reached.length === 0) return sessions;
    const places = [...new Set(reached.map(({ namespace }) => namespace))].map(named);
    const chosen = [...new Set(reached.flatMap(({ namespace, own }) => (own ? [namespace] : [])))].map(named);
    return [...sessions.flatMap((session) => places.map((place) => ({ ...session, ...place }))), ...chosen];
  },
  namespace: (input: {
    namespace?: string;
    namespacePath?: string;
    memoryStrategyId?: string;
    searchCriteria?: { memoryStrategyId?: string };
  }): Conditions => {
    const strategy = input.memoryStrategyId ?? input.searchCriteria?.memoryStrategyId;
    return {
      ...named(input.namespace),
      ...(input.namespacePath === undefined ? {} : { [NAMESPACE_PATH]: namespaceKey(input.namespacePath) }),
      ...(strategy === undefined ? {} : { [STRATEGY]: strategy }),
    };
  },
  createdRecords: (input: { records: data.MemoryRecordCreateInput[] }): Conditions[] =>
    each(input.records.map(({ namespaces }) => namespaces[0])),
  /** Where a record is now counts as much as where it goes. */
  updatedRecords: (input: { records: data.MemoryRecordUpdateInput[] }): Conditions[] =>
    each(
      input.records.flatMap(({ sourceNamespaces, namespaces }) => [
        sourceNamespaces?.[0],
        ...(namespaces === undefined ? [] : [namespaces[0]]),
      ]),
    ),
  deletedRecords: (input: { records: data.MemoryRecordDeleteInput[] }): Conditions[] =>
    each(input.records.map(({ namespace }) => namespace)),
  jobs: (input: { filter?: data.ExtractionJobFilterInput }): Conditions => ({
    ...(input.filter?.actorId === undefined ? {} : { [ACTOR]: input.filter.actorId }),
    ...(input.filter?.sessionId === undefined ? {} : { [SESSION]: input.filter.sessionId }),
  }),
};

interface Written {
  actorId: string;
  sessionId?: string;
  extractionMode?: data.ExtractionMode;
  extractionConfig?: data.ExtractionConfig;
}

/** The namespaces that records of it can go to, and whether variables of the caller's own have a part in them. */
function reachedBy(input: Written, strategies: readonly Strategy[]): { namespace: string; own: boolean }[] {
  const variables = input.extractionConfig?.namespaceVariables ?? {};
  return strategies.filter(extractionKind).flatMap(({ id, template, reflectionTemplate }) =>
    [template, reflectionTemplate ?? template].flatMap((one) => {
      // A session that is yet to be named is new, and so is its place.
      if (input.sessionId === undefined && /\{session_?id\}/i.test(one)) return [];
      const values = { actorId: input.actorId, sessionId: input.sessionId ?? '', memoryStrategyId: id, variables };
      const namespace = renderNamespace(one, values);
      return namespace === undefined ? [] : [{ namespace, own: ownVariables(one).length > 0 }];
    }),
  );
}

function each(namespaces: readonly (string | undefined)[]): Conditions[] {
  const distinct = [...new Set(namespaces.map((namespace) => namespace && namespaceKey(namespace)))];
  return distinct.length === 0 ? [{}] : distinct.map(named);
}

function named(namespace: string | undefined): Conditions {
  return namespace === undefined ? {} : { [NAMESPACE]: namespaceKey(namespace) };
}
