import { type control, errors } from '@agentplatform/contract';
import type { Strategy } from './memory.ts';
import { checkTemplate } from './namespaces.ts';
import { newExpiry, wantedExpiry } from './record-expiry.ts';
import { customConfiguration, modifiedConfiguration } from './strategy-configuration.ts';

export interface StrategyMaking {
  now: number;
  newIdSuffix(): string;
  /** The memory's own namespace variables. */
  declared: readonly string[];
}

const ACTOR_NAMESPACE = '/strategies/{memoryStrategyId}/actors/{actorId}';
const SESSION_NAMESPACE = `${ACTOR_NAMESPACE}/sessions/{sessionId}`;

const NOT_SELF_MANAGED =
  'cannot be given for a self-managed strategy, whose records others write: it belongs to BatchCreateMemoryRecords';

interface Templates {
  namespaces?: string[];
  namespaceTemplates?: string[];
}

/** The strategies that a request names, each with its id; throws a ValidationException naming the field that is wrong. */
export function newStrategies(
  inputs: readonly control.MemoryStrategyInput[],
  existing: readonly Strategy[],
  making: StrategyMaking,
  field: string,
): Strategy[] {
  const names = new Set(existing.map((strategy) => strategy.name));
  return inputs.map((input, index) => {
    const strategy = newStrategy(input, making, `${field}[${index}]`);
    if (names.has(strategy.name)) {
      throw errors.invalidField(
        `${field}[${index}].name`,
        `is ${strategy.name}, which another strategy of this memory has`,
      );
    }
    names.add(strategy.name);
    return strategy;
  });
}

function newStrategy(input: control.MemoryStrategyInput, making: StrategyMaking, at: string): Strategy {
  if (input.semanticMemoryStrategy) return plain('SEMANTIC', input.semanticMemoryStrategy, ACTOR_NAMESPACE, making, at);
  if (input.userPreferenceMemoryStrategy)
    return plain('USER_PREFERENCE', input.userPreferenceMemoryStrategy, ACTOR_NAMESPACE, making, at);
  if (input.summaryMemoryStrategy)
    return plain('SUMMARIZATION', input.summaryMemoryStrategy, SESSION_NAMESPACE, making, at);
  if (input.episodicMemoryStrategy) {
    const { reflectionConfiguration } = input.episodicMemoryStrategy;
    const strategy = plain('EPISODIC', input.episodicMemoryStrategy, SESSION_NAMESPACE, making, at);
    return withReflection(
      strategy,
      reflectionConfiguration,
      making,
      `${at}.episodicMemoryStrategy.reflectionConfiguration`,
    );
  }
  const custom = input.customMemoryStrategy;
  const { configuration, sessionScoped, reflection } = customConfiguration(custom.configuration);
  const strategy = plain('CUSTOM', custom, sessionScoped ? SESSION_NAMESPACE : ACTOR_NAMESPACE, making, at);
  const configured = { ...strategy, configuration };
  if (configuration.selfManagedConfiguration && custom.recordExpirySpecification)
    throw errors.invalidField(`${at}.customMemoryStrategy.recordExpirySpecification`, NOT_SELF_MANAGED);
  return configuration.type === 'EPISODIC_OVERRIDE'
    ? withReflection(configured, reflection, making, `${at}.customMemoryStrategy.configuration`)
    : configured;
}

function plain(
  type: control.MemoryStrategyType,
  input: Templates & {
    name: string;
    description?: string;
    memoryRecordSchema?: control.MemoryRecordSchema;
    recordExpirySpecification?: control.RecordExpirySpecification;
  },
  fallback: string,
  { now, newIdSuffix, declared }: StrategyMaking,
  at: string,
): Strategy {
  const recordExpiryDays = newExpiry(input.recordExpirySpecification, `${at}.recordExpirySpecification`);
  return {
    id: `${input.name}-${newIdSuffix()}`,
    name: input.name,
    type,
    template: templateOf(input, declared, at) ?? fallback,
    createdAt: now,
    updatedAt: now,
    ...(input.description === undefined ? {} : { description: input.description }),
    ...(input.memoryRecordSchema === undefined ? {} : { schema: input.memoryRecordSchema }),
    ...(recordExpiryDays === undefined ? {} : { recordExpiryDays }),
  };
}

function templateOf(input: Templates, declared: readonly string[], at: string): string | undefined {
  const field = input.namespaceTemplates === undefined ? 'namespaces' : 'namespaceTemplates';
  const template = (input.namespaceTemplates ?? input.namespaces)?.[0];
  if (template !== undefined) checkTemplate(template, declared, `${at}.${field}[0]`);
  return template;
}

function withReflection(
  strategy: Strategy,
  reflection: Templates | undefined,
  { declared }: StrategyMaking,
  at: string,
): Strategy {
  const reflectionTemplate = (reflection && templateOf(reflection, declared, at)) ?? ACTOR_NAMESPACE;
  const episodic = { namespaces: [reflectionTemplate], namespaceTemplates: [reflectionTemplate] };
  const configuration = strategy.configuration ?? { reflection: { episodicReflectionConfiguration: episodic } };
  return { ...strategy, reflectionTemplate, configuration };
}

/** The strategies after `modifyMemoryStrategies` and `deleteMemoryStrategies`; an unknown id is a ValidationException. */
export function changedStrategies(
  strategies: readonly Strategy[],
  change: control.ModifyMemoryStrategies,
  making: StrategyMaking,
): Strategy[] {
  const deleted = new Set<string>();
  for (const [index, { memoryStrategyId }] of (change.deleteMemoryStrategies ?? []).entries()) {
    known(strategies, memoryStrategyId, `memoryStrategies.deleteMemoryStrategies[${index}].memoryStrategyId`);
    deleted.add(memoryStrategyId);
  }
  let left = strategies.filter((strategy) => !deleted.has(strategy.id));
  for (const [index, modify] of (change.modifyMemoryStrategies ?? []).entries()) {
    const at = `memoryStrategies.modifyMemoryStrategies[${index}]`;
    const before = known(left, modify.memoryStrategyId, `${at}.memoryStrategyId`);
    const after = modified(before, modify, making, at);
    left = left.map((strategy) => (strategy === before ? after : strategy));
  }
  return [
    ...left,
    ...newStrategies(change.addMemoryStrategies ?? [], left, making, 'memoryStrategies.addMemoryStrategies'),
  ];
}

function known(strategies: readonly Strategy[], id: string, field: string): Strategy {
  const found = strategies.find((strategy) => strategy.id === id);
  if (found) return found;
  throw errors.invalidField(field, `is ${id}, which is not a strategy of this memory`);
}

function modified(
  before: Strategy,
  modify: control.ModifyMemoryStrategyInput,
  { now, declared }: StrategyMaking,
  at: string,
): Strategy {
  const template = templateOf(modify, declared, at);
  const reflection = modify.configuration?.reflection;
  const reflectionPlaces =
    reflection?.episodicReflectionConfiguration ??
    reflection?.customReflectionConfiguration?.episodicReflectionOverride;
  const reflectionTemplate =
    reflectionPlaces && templateOf(reflectionPlaces, declared, `${at}.configuration.reflection`);
  const { recordExpiryDays: _, ...rest } = before;
  const recordExpiryDays = daysAfter(before, modify.recordExpirySpecification, `${at}.recordExpirySpecification`);
  return {
    ...rest,
    updatedAt: now,
    ...(recordExpiryDays === undefined ? {} : { recordExpiryDays }),
    ...(modify.description === undefined ? {} : { description: modify.description }),
    ...(modify.memoryRecordSchema === undefined ? {} : { schema: modify.memoryRecordSchema }),
    ...(template === undefined ? {} : { template }),
    ...(reflectionTemplate === undefined ? {} : { reflectionTemplate }),
    ...(modify.configuration === undefined
      ? {}
      : { configuration: modifiedConfiguration(before, modify.configuration, `${at}.configuration`) }),
  };
}

/** The days for new records of the strategy. Existing records keep their own. */
function daysAfter(
  before: Strategy,
  specification: control.RecordExpirySpecification | undefined,
  field: string,
): number | undefined {
  if (specification === undefined) return before.recordExpiryDays;
  if (before.configuration?.selfManagedConfiguration) throw errors.invalidField(field, NOT_SELF_MANAGED);
  const wanted = wantedExpiry(specification, field);
  return wanted === 'never' ? undefined : wanted;
}

/** A strategy in the wire's shape. */
export function strategyView(strategy: Strategy): control.MemoryStrategy {
  const { id, name, type, template, description, configuration, schema, createdAt, updatedAt } = strategy;
  const { recordExpiryDays } = strategy;
  return {
    strategyId: id,
    name,
    type,
    namespaces: [template],
    namespaceTemplates: [template],
    status: 'ACTIVE',
    createdAt: new Date(createdAt),
    updatedAt: new Date(updatedAt),
    ...(description === undefined ? {} : { description }),
    ...(configuration === undefined ? {} : { configuration }),
    ...(schema === undefined ? {} : { memoryRecordSchema: schema }),
    ...(recordExpiryDays === undefined ? {} : { recordExpiryDurationDays: recordExpiryDays }),
  };
}
