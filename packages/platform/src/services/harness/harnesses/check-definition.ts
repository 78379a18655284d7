import { errors } from '@agentplatform/contract';
import { refuseUnserved } from '../../../kernel/served-fields.ts';
import { checkHooks } from '../hooks/hooks.ts';
import { checkTools } from '../tools/check-tools.ts';
import type { HarnessDefinition } from './harness.ts';
import { HARNESS_FIELDS } from './harness-fields.ts';

/** Idle time and longest life of a session, where a harness says nothing of it: as of runtimes. */
export const DEFAULT_LIFECYCLE = { idleSeconds: 900, maxLifetimeSeconds: 28_800 };

/** How long a harness's sessions live. */
export function lifecycleOf({ environment }: HarnessDefinition): { idleSeconds: number; maxLifetimeSeconds: number } {
  const { idleRuntimeSessionTimeout, maxLifetime } =
    environment?.agentCoreRuntimeEnvironment?.lifecycleConfiguration ?? {};
  const maxLifetimeSeconds = maxLifetime ?? DEFAULT_LIFECYCLE.maxLifetimeSeconds;
  const idleSeconds = idleRuntimeSessionTimeout ?? Math.min(DEFAULT_LIFECYCLE.idleSeconds, maxLifetimeSeconds);
  return { idleSeconds, maxLifetimeSeconds };
}

/** Throws ValidationException for what would be ignored, or could never work. */
export function checkDefinition(
  definition: HarnessDefinition,
  { sessionLifetimeSeconds, topics }: { sessionLifetimeSeconds: number; topics: readonly string[] },
): void {
  refuseUnserved(definition, HARNESS_FIELDS);
  const { idleSeconds, maxLifetimeSeconds } = lifecycleOf(definition);
  const lifecycle = 'environment.agentCoreRuntimeEnvironment.lifecycleConfiguration';
  if (idleSeconds > maxLifetimeSeconds)
    throw errors.invalidField(`${lifecycle}.idleRuntimeSessionTimeout`, 'must not be longer than maxLifetime');
  if (maxLifetimeSeconds > sessionLifetimeSeconds)
    throw errors.invalidField(`${lifecycle}.maxLifetime`, `must not be longer than ${sessionLifetimeSeconds} seconds`);
  checkLimits(definition);
  checkTools(definition.tools ?? []);
  checkHooks(definition.hooks ?? [], topics);
  checkTruncation(definition);
}

/** Of a harness or of one invocation. Throws ValidationException. */
export function checkLimits(limits: Pick<HarnessDefinition, 'maxIterations' | 'maxTokens' | 'timeoutSeconds'>): void {
  const { maxIterations, maxTokens, timeoutSeconds } = limits;
  for (const [field, value] of Object.entries({ maxIterations, maxTokens, timeoutSeconds }))
    if (value !== undefined && value < 1) throw errors.invalidField(field, 'must be at least 1');
}

function checkTruncation({ truncation }: HarnessDefinition): void {
  if (!truncation?.config) return;
  const { slidingWindow, summarization } = truncation.config;
  const fits = { sliding_window: !summarization, summarization: !slidingWindow, none: false }[truncation.strategy];
  if (!fits) throw errors.invalidField('truncation.config', `is not one of the strategy ${truncation.strategy}`);
  const { messagesCount = 1 } = slidingWindow ?? {};
  if (messagesCount < 1)
    throw errors.invalidField('truncation.config.slidingWindow.messagesCount', 'must be at least 1');
  const { summaryRatio = 0.3, preserveRecentMessages = 0 } = summarization ?? {};
  if (summaryRatio <= 0 || summaryRatio > 1)
    throw errors.invalidField('truncation.config.summarization.summaryRatio', 'must be more than 0 and at most 1');
  if (preserveRecentMessages < 0)
    throw errors.invalidField('truncation.config.summarization.preserveRecentMessages', 'must not be negative');
}
