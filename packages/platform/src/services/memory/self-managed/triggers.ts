import type { control } from '@agentplatform/contract';

/** What waits in one session for one self-managed strategy. */
export interface Held {
  messages: number;
  tokens: number;
}

/** The contract's own range of each trigger is checked by its validators. */
const DEFAULTS = { messages: 6, tokens: 1000, idleSeconds: 300 };

/** Whether what waits is enough for a delivery; any one condition will do. Idle time is told by `idleSecondsOf`. */
export function isEnough(conditions: readonly control.TriggerCondition[], held: Held): boolean {
  return conditions.some(({ messageBasedTrigger: messages, tokenBasedTrigger: tokens }) => {
    if (messages) return held.messages >= (messages.messageCount ?? DEFAULTS.messages);
    return tokens !== undefined && held.tokens >= (tokens.tokenCount ?? DEFAULTS.tokens);
  });
}

/** After how long without an event what waits is delivered all the same; undefined when no condition says so. */
export function idleSecondsOf(conditions: readonly control.TriggerCondition[]): number | undefined {
  const seconds = conditions.flatMap(({ timeBasedTrigger: time }) =>
    time ? [time.idleSessionTimeout ?? DEFAULTS.idleSeconds] : [],
  );
  return seconds.length === 0 ? undefined : Math.min(...seconds);
}

/** Tokens of a text, roughly: four characters each. No tokenizer is that of every model that a receiver may use. */
export function tokensOf(text: string): number {
  return Math.ceil(text.length / 4);
}
