import { setTimeout as sleep } from 'node:timers/promises';
import {
  ListMemoryExtractionJobsCommand,
  ListMemoryRecordsCommand,
  RetrieveMemoryRecordsCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import { type Model, ModelError } from '../../packages/platform/src/kernel/models/index.ts';
import type { Clients } from '../../tests/support/clients.ts';
import { newMemory, sayIn, type Turn } from '../../tests/support/memory.ts';
import { median, percentile } from '../support/statistics.ts';
import type { Conversation, Said } from './dataset.ts';
import { ANSWER_TASK, answerPrompt, JUDGE_TASK, judgePrompt } from './prompts.ts';

export interface EndToEndOptions {
  clients: Clients;
  conversations: readonly Conversation[];
  topK: number;
  /** Answers, and the model that judges the answers. */
  answering: Model;
  judge: Model;
  /** Records must not change for so long before extraction counts as ended, in milliseconds. */
  quietMs: number;
  /** How many records a conversation gives, where that is known: before they are there, extraction has not ended. */
  expected?: (conversation: Conversation) => number;
}

export interface EndToEndResults {
  questions: number;
  /** Share of answers that the judge called correct; of all questions and of each category. */
  score: number;
  byCategory: Record<string, { questions: number; score: number }>;
  records: number;
  /** Extraction jobs that were given up. */
  failedJobs: number;
  topK: number;
  /** Of the answering model, input and output together. */
  tokensPerQuestion: number;
  retrieveP50: number;
  retrieveP99: number;
  answerP50: number;
}

const MESSAGES_PER_EVENT = 10;
const EXTRACTION_WAIT_MS = 3_600_000;

/** Ingests every conversation into a memory of its own, lets it be extracted, and asks, answers and judges every question. */
export async function runEndToEnd(options: EndToEndOptions): Promise<EndToEndResults> {
  const { clients, conversations, topK, answering, judge } = options;
  const retrieveTimes: number[] = [];
  const answerTimes: number[] = [];
  const verdicts: { category: string; right: boolean }[] = [];
  let tokens = 0;
  let records = 0;
  let failedJobs = 0;
  for (const conversation of conversations) {
    const { id: memoryId } = await newMemory(clients, {
      memoryStrategies: [{ semanticMemoryStrategy: { name: 'facts', namespaceTemplates: ['/facts/{actorId}'] } }],
    });
    await ingest(clients, memoryId, conversation);
    records += await untilExtracted(clients, memoryId, options.quietMs, options.expected?.(conversation) ?? 1);
    failedJobs += (await clients.data.send(new ListMemoryExtractionJobsCommand({ memoryId }))).jobs?.length ?? 0;
    for (const { question, answer, category } of conversation.questions) {
      let started = performance.now();
      const searchCriteria = { searchQuery: question, topK };
      const found = await clients.data.send(
        new RetrieveMemoryRecordsCommand({ memoryId, namespacePath: '/facts', searchCriteria }),
      );
      retrieveTimes.push(performance.now() - started);
      const notes = (found.memoryRecordSummaries ?? []).map(({ content, createdAt: at }) => {
        return { text: content?.text ?? '', at };
      });
      started = performance.now();
      const user = answerPrompt(question, notes);
      const given = await ask(answering, { system: ANSWER_TASK, user, maxTokens: 200 });
      answerTimes.push(performance.now() - started);
      tokens += given.tokens;
      const verdict = await ask(judge, {
        system: JUDGE_TASK,
        user: judgePrompt(question, answer, given.text),
        maxTokens: 10,
      });
      verdicts.push({ category, right: /^\W*correct/i.test(verdict.text) });
    }
  }
  const shareOf = (some: readonly { right: boolean }[]): number =>
    some.filter(({ right }) => right).length / Math.max(1, some.length);
  const categories = [...new Set(verdicts.map(({ category }) => category))].sort();
  return {
    questions: verdicts.length,
    score: shareOf(verdicts),
    byCategory: Object.fromEntries(
      categories.map((category) => {
        const some = verdicts.filter((verdict) => verdict.category === category);
        return [category, { questions: some.length, score: shareOf(some) }];
      }),
    ),
    records,
    failedJobs,
    topK,
    tokensPerQuestion: Math.round(tokens / Math.max(1, verdicts.length)),
    retrieveP50: median(retrieveTimes),
    retrieveP99: percentile(retrieveTimes, 0.99),
    answerP50: median(answerTimes),
  };
}

async function ingest(clients: Clients, memoryId: string, { sessions }: Conversation): Promise<void> {
  for (const [number, session] of sessions.entries()) {
    const place = { memoryId, actorId: 'speakers', sessionId: `session-${number}` };
    for (let start = 0; start < session.length; start += MESSAGES_PER_EVENT) {
      const part = session.slice(start, start + MESSAGES_PER_EVENT);
      await sayIn(clients, place, part.map(turnOf), { eventTimestamp: part[0]?.at ?? new Date() });
    }
  }
}

/** Between two people both are worth remembering; who is named `assistant` is one. */
function turnOf({ speaker, text }: Said): Turn {
  if (speaker === 'user') return [text, 'USER'];
  return speaker === 'assistant' ? [text, 'ASSISTANT'] : [`${speaker}: ${text}`, 'USER'];
}

/** How many records there are once none has come for a while. */
async function untilExtracted({ data }: Clients, memoryId: string, quietMs: number, expected: number): Promise<number> {
  let last = '';
  let count = 0;
  const deadline = Date.now() + EXTRACTION_WAIT_MS;
  for (let quietSince = Date.now(); Date.now() - quietSince < quietMs && Date.now() < deadline; await sleep(200)) {
    const ids: string[] = [];
    let nextToken: string | undefined;
    do {
      const page = await data.send(
        new ListMemoryRecordsCommand({ memoryId, namespacePath: '/facts', maxResults: 100, nextToken }),
      );
      ids.push(...(page.memoryRecordSummaries ?? []).map(({ memoryRecordId }) => memoryRecordId ?? ''));
      nextToken = page.nextToken;
    } while (nextToken);
    if (ids.join() === last && ids.length >= expected) continue;
    last = ids.join();
    count = ids.length;
    quietSince = Date.now();
    if (ids.length === 0 && Date.now() > deadline - EXTRACTION_WAIT_MS + 60_000 + quietMs) return 0;
  }
  return count;
}

async function ask(
  model: Model,
  { system, user, maxTokens }: { system: string; user: string; maxTokens: number },
): Promise<{ text: string; tokens: number }> {
  const messages = [{ role: 'user' as const, content: [{ type: 'text' as const, text: user }] }];
  const { content, usage } = await model.generate({ system, messages, maxTokens, temperature: 0 });
  const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('');
  if (text === '') throw new ModelError('the model gave no text');
  return { text, tokens: usage.input + usage.output };
}
