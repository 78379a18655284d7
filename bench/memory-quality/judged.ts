import { basename } from 'node:path';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { createModels } from '../../packages/platform/src/kernel/models/index.ts';
import { createOutbound } from '../../packages/platform/src/kernel/outbound/index.ts';
import { clientsOf } from '../../tests/support/clients.ts';
import { startTestPlatform } from '../../tests/support/platform-process.ts';
import { type ModelServer, startModelServer } from '../memory/model-server.ts';
import { rounded } from '../support/statistics.ts';
import { type EndToEndOptions, type EndToEndResults, runEndToEnd } from './end-to-end.ts';
import { scriptedModel } from './scripted-model.ts';

export interface JudgedOptions extends Pick<EndToEndOptions, 'conversations' | 'topK' | 'quietMs' | 'expected'> {
  /** An OpenAI-compatible service for extraction, answers and judgement; a scripted one when absent. */
  modelUrl: string | undefined;
  model: string;
  judgeUrl: string | undefined;
  judge: string;
  /** From the environment: MEMORY_QUALITY_KEY. */
  key: string | undefined;
  /** Directory of a local embedding model; search is by words alone without. */
  embeddings: string | undefined;
}

export type Judged = EndToEndResults & { model: string; judge: string; embeddings: string };

/** Runs the whole harness against a platform of its own. */
export async function runJudged(options: JudgedOptions): Promise<Judged> {
  const { conversations, topK, modelUrl, key, embeddings, quietMs, expected } = options;
  const scripted = modelUrl === undefined ? await startModelServer(undefined, scriptedModel) : undefined;
  const url = modelUrl ?? scripted?.url ?? '';
  const names = modelUrl === undefined ? { model: 'scripted', judge: 'scripted' } : options;
  const outbound = createOutbound({ anywhere: true, clock: systemClock });
  const models = createModels(
    [
      { name: 'answering', model: names.model, url },
      { name: 'judge', model: names.judge, url: options.judgeUrl ?? url },
    ].map((one) => ({ ...one, provider: 'openai', answersFor: [], ...(key === undefined ? {} : { key }) })),
    undefined,
    { outbound, timeoutMs: 60_000 },
  );
  const platform = await startTestPlatform({
    args: ['--sandbox', 'process', '--log-level', 'error', '--memory-extraction-delay-seconds', '0.2'].concat(
      ['--models-url', url, '--models-name', names.model],
      embeddings === undefined ? [] : ['--embeddings-directory', embeddings],
    ),
    ...(key === undefined ? {} : { env: { AGENTPLATFORM_MODELS_KEY: key } }),
  });
  const clients = clientsOf(platform);
  try {
    const answering = models.find('answering');
    const judge = models.find('judge');
    if (!answering || !judge) throw new Error('the models were made above');
    const results = await runEndToEnd({ clients, conversations, topK, answering, judge, quietMs, expected });
    const embedding = embeddings === undefined ? 'none (by words)' : basename(embeddings);
    return { ...results, model: names.model, judge: names.judge, embeddings: embedding };
  } finally {
    clients.close();
    await platform.dispose();
    await outbound.close();
    await close(scripted);
  }
}

async function close(server: ModelServer | undefined): Promise<void> {
  await server?.close();
}

/** What a score means nothing without, in one table. */
export function judgedTable(name: string, results: Judged): string {
  const { model, judge, embeddings, topK, score, questions, tokensPerQuestion, retrieveP50, retrieveP99, answerP50 } =
    results;
  const percent = (share: number): string => `${rounded(share * 100, 1)} %`;
  return [
    `${name}: ${questions} questions, ${results.records} records, ${results.failedJobs} extraction jobs given up`,
    '| model | judge | embeddings | top-k | score | tokens a question | retrieval p50 / p99 | answer p50 |',
    '|---|---|---|---|---|---|---|---|',
    `| ${model} | ${judge} | ${embeddings} | ${topK} | ${percent(score)} | ${tokensPerQuestion} | ${rounded(retrieveP50, 1)} / ${rounded(retrieveP99, 1)} ms | ${rounded(answerP50, 1)} ms |`,
    '',
    '| category | questions | score |',
    '|---|---|---|',
    ...Object.entries(results.byCategory).map(
      ([category, one]) => `| ${category} | ${one.questions} | ${percent(one.score)} |`,
    ),
  ].join('\n');
}
