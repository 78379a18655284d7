import { type control, errors } from '@agentplatform/contract';
import type { Strategy } from './memory.ts';

/** What a custom strategy's configuration becomes, and how its records are scoped by default. */
export interface CustomConfiguration {
  configuration: control.StrategyConfiguration;
  sessionScoped: boolean;
  reflection?: { namespaces?: string[]; namespaceTemplates?: string[] };
}

const DEFAULT_TRIGGERS: control.TriggerCondition[] = [
  { messageBasedTrigger: { messageCount: 6 } },
  { tokenBasedTrigger: { tokenCount: 1000 } },
  { timeBasedTrigger: { idleSessionTimeout: 300 } },
];
const DEFAULT_HISTORY = 4;

/** The kept form of `customMemoryStrategy.configuration`; without one it works as a semantic override that changes nothing. */
export function customConfiguration(input: control.CustomConfigurationInput | undefined): CustomConfiguration {
  if (input === undefined) return { configuration: { type: 'SEMANTIC_OVERRIDE' }, sessionScoped: false };
  if (input.semanticOverride) {
    const { extraction, consolidation } = input.semanticOverride;
    return {
      sessionScoped: false,
      configuration: {
        type: 'SEMANTIC_OVERRIDE',
        ...(extraction && {
          extraction: { customExtractionConfiguration: { semanticExtractionOverride: extraction } },
        }),
        ...(consolidation && {
          consolidation: { customConsolidationConfiguration: { semanticConsolidationOverride: consolidation } },
        }),
      },
    };
  }
  if (input.userPreferenceOverride) {
    const { extraction, consolidation } = input.userPreferenceOverride;
    return {
      sessionScoped: false,
      configuration: {
        type: 'USER_PREFERENCE_OVERRIDE',
        ...(extraction && {
          extraction: { customExtractionConfiguration: { userPreferenceExtractionOverride: extraction } },
        }),
        ...(consolidation && {
          consolidation: { customConsolidationConfiguration: { userPreferenceConsolidationOverride: consolidation } },
        }),
      },
    };
  }
  if (input.summaryOverride) {
    const { consolidation } = input.summaryOverride;
    return {
      sessionScoped: true,
      configuration: {
        type: 'SUMMARY_OVERRIDE',
        ...(consolidation && {
          consolidation: { customConsolidationConfiguration: { summaryConsolidationOverride: consolidation } },
        }),
      },
    };
  }
  if (input.episodicOverride) {
    const { extraction, consolidation, reflection } = input.episodicOverride;
    return {
      sessionScoped: true,
      ...(reflection && { reflection }),
      configuration: {
        type: 'EPISODIC_OVERRIDE',
        ...(extraction && {
          extraction: { customExtractionConfiguration: { episodicExtractionOverride: extraction } },
        }),
        ...(consolidation && {
          consolidation: { customConsolidationConfiguration: { episodicConsolidationOverride: consolidation } },
        }),
        ...(reflection && {
          reflection: { customReflectionConfiguration: { episodicReflectionOverride: reflection } },
        }),
      },
    };
  }
  const { triggerConditions, invocationConfiguration, historicalContextWindowSize } = input.selfManagedConfiguration;
  return {
    sessionScoped: false,
    configuration: {
      type: 'SELF_MANAGED',
      selfManagedConfiguration: {
        invocationConfiguration,
        triggerConditions: withDefaults(triggerConditions),
        historicalContextWindowSize: historicalContextWindowSize ?? DEFAULT_HISTORY,
      },
    },
  };
}

function withDefaults(given: control.TriggerConditionInput[] | undefined): control.TriggerCondition[] {
  if (given === undefined) return DEFAULT_TRIGGERS;
  return given.map((condition): control.TriggerCondition => {
    if (condition.messageBasedTrigger)
      return { messageBasedTrigger: { messageCount: 6, ...condition.messageBasedTrigger } };
    if (condition.tokenBasedTrigger) return { tokenBasedTrigger: { tokenCount: 1000, ...condition.tokenBasedTrigger } };
    return { timeBasedTrigger: { idleSessionTimeout: 300, ...condition.timeBasedTrigger } };
  });
}

/** The configuration after `modifyMemoryStrategies[].configuration`; a part that this kind of strategy lacks is refused. */
export function modifiedConfiguration(
  before: Strategy,
  change: control.ModifyStrategyConfiguration,
  field: string,
): control.StrategyConfiguration {
  const current = before.configuration ?? {};
  const { extraction, consolidation, reflection, selfManagedConfiguration } = change;
  if (before.type !== 'CUSTOM' && (extraction || consolidation || selfManagedConfiguration)) {
    throw errors.invalidField(field, 'can be given for custom strategies only', {
      remedy: 'Add a customMemoryStrategy with the override that you want.',
    });
  }
  const selfManaged = current.selfManagedConfiguration;
  if (selfManagedConfiguration && !selfManaged) {
    throw errors.invalidField(`${field}.selfManagedConfiguration`, 'can be given for self-managed strategies only');
  }
  return {
    ...current,
    ...(extraction && { extraction }),
    ...(consolidation && { consolidation }),
    ...(reflection && { reflection }),
    ...(selfManaged &&
      selfManagedConfiguration && {
        selfManagedConfiguration: {
          invocationConfiguration: {
            ...selfManaged.invocationConfiguration,
            ...selfManagedConfiguration.invocationConfiguration,
          },
          triggerConditions: selfManagedConfiguration.triggerConditions
            ? withDefaults(selfManagedConfiguration.triggerConditions)
            : selfManaged.triggerConditions,
          historicalContextWindowSize:
            selfManagedConfiguration.historicalContextWindowSize ?? selfManaged.historicalContextWindowSize,
        },
      }),
  };
}
