import { join } from 'node:path';
import { answering, freePort } from '../gateway/orders-api.ts';
import { startChild } from '../support/child.ts';

/** The scripted provider behind all that is measured, in a process of its own. */
export interface Provider {
  url: string;
  port: number;
  end(): Promise<void>;
}

export const PATH = '/v1/chat/completions';
/** The model, as every contestant calls it. */
export const MODEL = 'bench';

export async function startProvider(): Promise<Provider> {
  const port = await freePort();
  const { end } = await startChild(process.execPath, [join(import.meta.dirname, 'provider-child.ts'), String(port)]);
  await answering(port);
  return { url: `http://127.0.0.1:${port}`, port, end };
}

/** A question to it. */
export const question = (stream: boolean): string =>
  JSON.stringify({ model: MODEL, stream, messages: [{ role: 'user', content: 'What of my order?' }] });
