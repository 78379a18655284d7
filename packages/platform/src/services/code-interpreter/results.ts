import type { data } from '@agentplatform/contract';
import type { HostBlock, HostDone, HostEvent } from './kernel-host.ts';

/** Shortest time between two events of one call, in ms: a program that prints letter by letter must not become a thousand frames. */
const COALESCE_MS = 100;

export interface ResultOptions {
  /** All in one event. */
  whole: boolean;
  /** Milliseconds of a clock that never goes backwards. */
  now(): number;
  /** What to say when Python found no such module; undefined for nothing. */
  whatIsMissing(): string | undefined;
}

const NO_MODULE = /^ModuleNotFoundError: No module named/m;

/**
 * The events of a call as the wire's. What is printed is passed on as it comes, in `structuredContent`; the last event is whole:
 * everything that was printed and shown, so that a client that looks at one event only (the last, or with `whole` the first)
 * sees all of it. Always ends with such an event, or by throwing.
 */
export async function* resultEvents(
  events: AsyncIterable<HostEvent>,
  options: ResultOptions,
): AsyncGenerator<data.CodeInterpreterStreamOutput> {
  const texts = { stdout: '', stderr: '' };
  const pending = { stdout: '', stderr: '' };
  const blocks: data.ContentBlock[] = [];
  let sentAt = Number.NEGATIVE_INFINITY;
  for await (const event of events) {
    if (event.event === 'done') {
      yield { result: lastResult(withHint(event, texts.stderr, options), texts, blocks) };
      return;
    }
    if (event.event === 'block') {
      blocks.push(...toContent(event.block));
      continue;
    }
    texts[event.stream] += event.text;
    pending[event.stream] += event.text;
    if (options.whole || options.now() - sentAt < COALESCE_MS) continue;
    sentAt = options.now();
    yield { result: { content: [], structuredContent: nonEmpty(pending), isError: false } };
    pending.stdout = pending.stderr = '';
  }
  throw new Error('the session closed the connection before the call was over');
}

/** A model that is told only that pandas is not there would never try it again. */
function withHint(done: HostDone, stderr: string, { whatIsMissing }: ResultOptions): HostDone {
  const hint = !done.ok && NO_MODULE.test(stderr) ? whatIsMissing() : undefined;
  return hint === undefined ? done : { ...done, note: [done.note, hint].filter(Boolean).join('\n') };
}

function nonEmpty({ stdout, stderr }: { stdout: string; stderr: string }): data.ToolResultStructuredContent {
  return { ...(stdout === '' ? {} : { stdout }), ...(stderr === '' ? {} : { stderr }) };
}

function lastResult(
  done: HostDone,
  { stdout, stderr }: { stdout: string; stderr: string },
  blocks: readonly data.ContentBlock[],
): data.CodeInterpreterResult {
  const notes = [...cutNotes(done.cut), ...(done.note ? [done.note] : [])];
  const texts = [stdout, stderr].filter((text) => text !== '').map(textBlock);
  const content = [...texts.slice(0, 1), ...blocks, ...texts.slice(1), ...notes.map(textBlock)];
  return {
    content: content.length > 0 ? content : [textBlock('')],
    structuredContent: {
      stdout,
      stderr: [stderr, ...(done.ok ? [] : notes)].filter((text) => text !== '').join('\n'),
      exitCode: done.exitCode,
      executionTime: done.seconds,
    },
    isError: !done.ok,
  };
}

/** Says how much is missing; silence would pass for a whole output. */
export function cutNotes(cut: { stdout: number; stderr: number; rich?: number }): string[] {
  return Object.entries(cut)
    .filter(([, bytes]) => bytes > 0)
    .map(([what, bytes]) => `[${what === 'rich' ? 'results' : what}: ${bytes} bytes were cut]`);
}

export function textBlock(text: string): data.ContentBlock {
  return { type: 'text', text };
}

function toContent(block: HostBlock): data.ContentBlock[] {
  switch (block.kind) {
    case 'image':
      return [{ type: 'image', mimeType: block.mimeType, data: Buffer.from(block.base64, 'base64') }];
    case 'svg':
      return [{ type: 'image', mimeType: block.mimeType, data: Buffer.from(block.text, 'utf8') }];
    case 'text':
      return [textBlock(block.text)];
    case 'resource':
      return [{ type: 'resource', resource: { type: 'text', mimeType: block.mimeType, text: block.text } }];
  }
}
