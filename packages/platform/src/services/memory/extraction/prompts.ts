import type { Strategy } from '../memory.ts';

/** What the owner of a strategy adds to a step's prompt, and the model he wants for it. */
export interface Override {
  appendToPrompt?: string;
  modelId?: string;
}

export type Step = 'extraction' | 'consolidation' | 'reflection';

/** The override of one step of a custom strategy. */
export function overrideOf({ configuration }: Strategy, step: Step): Override {
  if (step === 'extraction') {
    const custom = configuration?.extraction?.customExtractionConfiguration;
    return (
      custom?.semanticExtractionOverride ??
      custom?.userPreferenceExtractionOverride ??
      custom?.episodicExtractionOverride ??
      {}
    );
  }
  if (step === 'consolidation') {
    const custom = configuration?.consolidation?.customConsolidationConfiguration;
    return (
      custom?.semanticConsolidationOverride ??
      custom?.summaryConsolidationOverride ??
      custom?.userPreferenceConsolidationOverride ??
      custom?.episodicConsolidationOverride ??
      {}
    );
  }
  return configuration?.reflection?.customReflectionConfiguration?.episodicReflectionOverride ?? {};
}

/** The task of each step. What people said follows as data, between marks, and is never an instruction. */
export const TASKS = {
  semantic:
    'Read the conversation and list the lasting facts that the user states about themselves, their people, things, work and plans. Each fact is one self-contained sentence that names its subject and is understood without the conversation. Write every relative time as a date; the date of each message stands before it. Leave out greetings, questions, what the assistant offers, and anything the user did not say. Answer with JSON only: {"facts": [{"fact": "…", "messages": [numbers of the messages it comes from]}]}; an empty list when there is none.',
  userPreference:
    'Read the conversation and list the lasting preferences of the user: likes, dislikes, habits, how they want to be served. Only what the user says or clearly shows, never a guess. Each is one self-contained sentence. Answer with JSON only: {"facts": [{"fact": "…", "messages": [numbers of the messages it comes from]}]}; an empty list when there is none.',
  summary:
    'Write the summary of a conversation anew: the summary so far, if any, brought up to date with the messages that follow. Keep names, numbers, decisions and open points; write relative times as dates; be brief. Answer with the summary as plain text only.',
  episodic:
    'Describe what happened in this conversation as one episode, brought up to date with the messages that follow: what was wanted, what was tried step by step, what came of it, what could be learnt. Answer with plain text in four short parts that begin with "Intent:", "Steps:", "Outcome:" and "Lesson:".',
  reflection:
    'Read these episodes of one person and say what holds across them: what works, what fails, what to do next time. A few self-contained sentences, only what at least two episodes support. Answer with plain text only.',
  decision:
    'Each item has a new statement and numbered statements that are already known. Decide for each item: "add" when the new one says something the known ones do not; "nothing" when a known one says it already; "supersede" when the new one makes a known one outdated or wrong; "update" when both belong in one statement, which you write in "text". A later date wins. Answer with JSON only: {"decisions": [{"item": number, "decision": "add|nothing|supersede|update", "known": number or null, "text": "… for update, or null"}]}.',
} as const;
