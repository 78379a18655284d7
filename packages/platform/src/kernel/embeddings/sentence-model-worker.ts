/** The process that runs a sentence model: the server's share of its memory ends with it. */
import { loadSentenceModel } from './sentence-model.ts';
import type { ModelReply, ModelRequest } from './sentence-model-process.ts';

const [directory = '', threads = '1'] = process.argv.slice(2);
const loading = loadSentenceModel(directory, Number(threads));
// Told to whoever asks.
loading.catch(() => undefined);

process.on('message', async ({ texts }: ModelRequest) => {
  let loaded = false;
  try {
    const model = await loading;
    loaded = true;
    reply({ vectors: await model.embed(texts) });
  } catch (error) {
    const failure = error instanceof Error ? error.message : String(error);
    // A model that could not be loaded is loaded anew for the next request, by the next process.
    reply({ failure }, loaded ? undefined : () => process.exit(1));
  }
});
// The server is gone, however it went.
process.on('disconnect', () => process.exit());

function reply(message: ModelReply, sent?: () => void): void {
  process.send?.(message, undefined, undefined, sent);
}
