import type { control } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import type { Executor, Resource } from '../../kernel/storage/index.ts';
import { ResourceStore } from '../../kernel/storage/index.ts';
import { list, number, object, stored, text, wire, word } from '../../kernel/stored-shape.ts';

/** One strategy as it is kept; times are epoch milliseconds. */
export interface Strategy {
  id: string;
  name: string;
  description?: string;
  type: control.MemoryStrategyType;
  /** Where its records go. */
  template: string;
  /** Where reflections over several episodes go (episodic only). */
  reflectionTemplate?: string;
  configuration?: control.StrategyConfiguration;
  schema?: control.MemoryRecordSchema;
  /** Days that a record which it makes from now on is kept; absent: for ever. */
  recordExpiryDays?: number;
  createdAt: number;
  updatedAt: number;
}

/** What a memory is, beside what every resource has. */
export interface MemoryData {
  description?: string;
  encryptionKeyArn?: string;
  executionRoleArn?: string;
  /** Days that an event is kept. */
  eventExpiryDays: number;
  strategies: Strategy[];
  indexedKeys?: control.IndexedKey[];
  namespaceKeys?: control.NamespaceKeyEntry[];
}

const STRATEGY = object(
  {
    ...{ id: text, name: text, type: word<control.MemoryStrategyType>(), template: text },
    ...{ createdAt: number, updatedAt: number },
  },
  {
    ...{ description: text, reflectionTemplate: text, recordExpiryDays: number },
    configuration: wire<control.StrategyConfiguration>(),
    schema: wire<control.MemoryRecordSchema>(),
  },
);
const STORED = stored<MemoryData>(
  object(
    { eventExpiryDays: number, strategies: list(STRATEGY) },
    {
      ...{ description: text, encryptionKeyArn: text, executionRoleArn: text },
      indexedKeys: list(wire<control.IndexedKey>()),
      namespaceKeys: list(wire<control.NamespaceKeyEntry>()),
    },
  ),
);

export type Memory = Resource<MemoryData>;

/** In the table `resources`. */
export const MEMORY_KIND = 'memory';

/** What a strategy extracts; undefined for a self-managed one, which extracts outside. */
export type ExtractionKind = 'semantic' | 'userPreference' | 'summary' | 'episodic';

const KINDS: Record<control.MemoryStrategyType, ExtractionKind | undefined> = {
  SEMANTIC: 'semantic',
  USER_PREFERENCE: 'userPreference',
  SUMMARIZATION: 'summary',
  EPISODIC: 'episodic',
  CUSTOM: undefined,
};
const OVERRIDES: Record<control.OverrideType, ExtractionKind | undefined> = {
  SEMANTIC_OVERRIDE: 'semantic',
  USER_PREFERENCE_OVERRIDE: 'userPreference',
  SUMMARY_OVERRIDE: 'summary',
  EPISODIC_OVERRIDE: 'episodic',
  SELF_MANAGED: undefined,
};

export function extractionKind(strategy: Strategy): ExtractionKind | undefined {
  const override = strategy.configuration?.type;
  return override === undefined ? KINDS[strategy.type] : OVERRIDES[override];
}

/** Whether something becomes of a strategy's events: inside by extraction, or outside by whoever manages it. */
export function isFed(strategy: Strategy): boolean {
  return extractionKind(strategy) !== undefined || selfManaged(strategy) !== undefined;
}

/** How a self-managed strategy is delivered; undefined for every other one. */
export function selfManaged(strategy: Strategy): control.SelfManagedConfiguration | undefined {
  return strategy.configuration?.selfManagedConfiguration;
}

/** The topic that batches of a strategy go to; undefined where nobody outside manages it, or it is gone. */
export function topicOf(memory: Memory | undefined, strategyId: string): string | undefined {
  const strategy = memory?.data.strategies.find(({ id }) => id === strategyId);
  return strategy && selfManaged(strategy)?.invocationConfiguration.topicArn;
}

export function createMemoryStore(executor: Executor, clock: Clock): ResourceStore<MemoryData> {
  return new ResourceStore({ executor, clock, kind: MEMORY_KIND, ...STORED });
}
