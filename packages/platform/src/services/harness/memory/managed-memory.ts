import { type control, errors } from '@agentplatform/contract';
import type { MemoryPort } from '../../memory/index.ts';
import type { HarnessDefinition } from '../harnesses/harness.ts';

/** What a managed memory keeps without a word of its harness: facts and summaries, and events for 30 days (developer guide). */
const USUAL: readonly control.HarnessManagedMemoryStrategyType[] = ['SEMANTIC', 'SUMMARIZATION'];
const USUAL_DAYS = 30;

/** All that is known of an actor is below one place, so that one search finds it. */
const OF_ACTOR = '/actors/{actorId}';

const STRATEGIES: Readonly<Record<control.HarnessManagedMemoryStrategyType, control.MemoryStrategyInput>> = {
  SEMANTIC: { semanticMemoryStrategy: { name: 'facts', namespaceTemplates: [`${OF_ACTOR}/facts`] } },
  SUMMARIZATION: {
    summaryMemoryStrategy: { name: 'summaries', namespaceTemplates: [`${OF_ACTOR}/summaries/{sessionId}`] },
  },
  USER_PREFERENCE: {
    userPreferenceMemoryStrategy: { name: 'preferences', namespaceTemplates: [`${OF_ACTOR}/preferences`] },
  },
  EPISODIC: {
    episodicMemoryStrategy: {
      ...{ name: 'episodes', namespaceTemplates: [`${OF_ACTOR}/episodes/{sessionId}`] },
      reflectionConfiguration: { namespaceTemplates: [`${OF_ACTOR}/episodes`] },
    },
  },
};

/** The place of all records of an actor in a managed memory. */
export const managedPlace = (actorId: string): string => `/actors/${actorId}/`;

/** Whether a harness is to have a memory of its own: it is, unless it says otherwise. */
export function wantsManaged({ memory }: HarnessDefinition): boolean {
  return memory === undefined || memory.managedMemoryConfiguration !== undefined;
}

/** Makes the memory of a harness, in the account's name: whoever may make a harness has it with it. Gives its ARN. */
export async function makeManagedMemory(
  memories: MemoryPort['memories'],
  { memory }: HarnessDefinition,
  { accountId, name }: { accountId: string; name: string },
): Promise<string> {
  const {
    arn,
    strategies = USUAL,
    eventExpiryDuration = USUAL_DAYS,
    encryptionKeyArn,
  } = memory?.managedMemoryConfiguration ?? {};
  if (arn !== undefined)
    throw errors.invalidField(
      'memory.managedMemoryConfiguration.arn',
      'is given by the platform; name a memory of your own as agentCoreMemoryConfiguration.arn',
    );
  if (new Set(strategies).size < strategies.length)
    throw errors.invalidField('memory.managedMemoryConfiguration.strategies', 'must not name a strategy twice');
  const made = await memories.create(
    {
      ...{ name, eventExpiryDuration, description: 'Memory of a harness' },
      memoryStrategies: strategies.map((strategy) => STRATEGIES[strategy]),
      ...(encryptionKeyArn === undefined ? {} : { encryptionKeyArn }),
    },
    accountId,
  );
  return made.arn;
}
