import { errors } from '@agentplatform/contract';
import { namespaceKey } from '../../kernel/namespace-key.ts';

export { namespaceKey };

/** What a namespace template's variables stand for in one piece of work. */
export interface NamespaceValues {
  actorId: string;
  sessionId: string;
  memoryStrategyId: string;
  /** The caller's own variables, as `extractionConfig.namespaceVariables` valued them. */
  variables: Readonly<Record<string, string>>;
}

const BUILT_IN = new Map<string, 'actorId' | 'sessionId' | 'memoryStrategyId'>([
  ['actorId', 'actorId'],
  ['sessionId', 'sessionId'],
  ['memoryStrategyId', 'memoryStrategyId'],
  // The specification's spellings.
  ['actor_id', 'actorId'],
  ['session_id', 'sessionId'],
  ['memory_strategy_id', 'memoryStrategyId'],
]);
const VARIABLE = /\{([^}]*)\}/g;

/** Names of the caller's own variables in a template. */
export function ownVariables(template: string): string[] {
  return [...template.matchAll(VARIABLE)].map((match) => match[1] ?? '').filter((name) => !BUILT_IN.has(name));
}

/** Throws a ValidationException naming `field` when the template uses a variable that is neither built in nor declared. */
export function checkTemplate(template: string, declared: readonly string[], field: string): void {
  const unknown = ownVariables(template).find((name) => !declared.includes(name));
  if (unknown === undefined) return;
  throw errors.invalidField(field, `uses {${unknown}}, which is not a variable of this memory`, {
    remedy: `Use {actorId}, {sessionId} or {memoryStrategyId}, or declare ${unknown} in namespaceKeys.`,
  });
}

/** The namespace that a template names for these values, or undefined when one of its own variables has no value. */
export function renderNamespace(template: string, values: NamespaceValues): string | undefined {
  let complete = true;
  const rendered = template.replace(VARIABLE, (_whole, name: string) => {
    const builtIn = BUILT_IN.get(name);
    const value = builtIn ? values[builtIn] : values.variables[name];
    if (value === undefined) complete = false;
    return value ?? '';
  });
  return complete ? rendered : undefined;
}

/** Where a lookup looks. A path takes in the namespace itself and all below it, never a sibling that begins alike. */
export type NamespaceScope = { kind: 'all' } | { kind: 'exact'; key: string } | { kind: 'path'; key: string };

/** The scope that a request names; throws a ValidationException when it names two. */
export function namespaceScope(input: { namespace?: string; namespacePath?: string }): NamespaceScope {
  const { namespace, namespacePath } = input;
  if (namespace !== undefined && namespacePath !== undefined) {
    throw errors.invalidField('namespacePath', 'cannot be given together with namespace');
  }
  if (namespace !== undefined) return { kind: 'exact', key: namespaceKey(namespace) };
  return namespacePath === undefined ? { kind: 'all' } : { kind: 'path', key: namespaceKey(namespacePath) };
}

/** The condition on `namespace_key` as SQL; appends its parameters. */
export function scopeSql(scope: NamespaceScope, params: unknown[], column = 'namespace_key'): string {
  // The root path holds everything.
  if (scope.kind === 'all' || (scope.kind === 'path' && scope.key === '')) return 'true';
  params.push(scope.key);
  const key = `$${params.length}::text COLLATE "C"`;
  if (scope.kind === 'exact') return `${column} = ${key}`;
  // '0' is the character after '/': what lies below the path begins at '/' and ends before it. An index follows the one range;
  // the siblings in it that begin alike are left out of what it finds, by an expression, since the planner would take two
  // conditions on the column for two that hold by chance, and the place for a hundredth of what it is.
  const range = `${column} >= ${key} AND ${column} < ${key} || '0'`;
  return `(${range} AND (${column} || '' = ${key} OR ${column} || '' >= ${key} || '/'))`;
}
