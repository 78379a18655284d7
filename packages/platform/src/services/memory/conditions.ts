import type { data } from '@agentplatform/contract';
import { namespaceKey } from './namespaces.ts';

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
   * Of what is written in an actor's name: a namespace that ends in `{actorId}` is the same for `jane` and `jane/`, who are two actors
   * otherwise, so both must be allowed.
   */
  written: (input: { actorId: string; sessionId?: string }): Conditions[] =>
    [...new Set([input.actorId, namespaceKey(input.actorId)])].map((actorId) =>
      conditionsOf.session({ ...input, actorId }),
    ),
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

function each(namespaces: readonly (string | undefined)[]): Conditions[] {
  const distinct = [...new Set(namespaces.map((namespace) => namespace && namespaceKey(namespace)))];
  return distinct.length === 0 ? [{}] : distinct.map(named);
}

function named(namespace: string | undefined): Conditions {
  return namespace === undefined ? {} : { [NAMESPACE]: namespaceKey(namespace) };
}
