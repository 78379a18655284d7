import { mkdir, open, rename, stat } from 'node:fs/promises';
import type { Logger } from 'pino';
import { listSegments, readSegment, type Segment } from './segment.ts';

export interface Recovered {
  segments: Segment[];
  /** Bytes of intact records over all segments. */
  bytes: number;
  /** The highest sequence number found; 0 for none. */
  lastSeq: number;
}

/**
 * Makes a journal directory consistent after any end of its writer. A torn end of the last segment, which nobody was
 * promised, is cut off. Damage before that is not from a crash: the rest of that segment is set aside and reported.
 */
export async function recoverJournal(directory: string, log: Logger): Promise<Recovered> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const segments = await listSegments(directory);
  let bytes = 0;
  let lastSeq = 0;
  for (const [index, segment] of segments.entries()) {
    const { size } = await stat(segment.path);
    const file = await open(segment.path, 'r+');
    try {
      const frames = readSegment(file, 0, size);
      let next = await frames.next();
      for (; !next.done; next = await frames.next()) lastSeq = Math.max(lastSeq, next.value.frame.seq);
      const { offset, broken } = next.value;
      bytes += offset;
      lastSeq = Math.max(lastSeq, segment.firstSeq - 1);
      if (broken === undefined) continue;
      const cut = { segment: segment.path, offset, bytes: size - offset, broken };
      if (index < segments.length - 1) {
        const aside = `${segment.path}.damaged`;
        await copyTail(file, offset, size, aside);
        log.error(
          { ...cut, aside },
          'a journal segment is damaged: its intact records are used, the rest is set aside',
        );
      } else {
        log.warn(cut, 'the end of the journal was torn by a crash; what was not acknowledged is dropped');
      }
      await file.truncate(offset);
      await file.sync();
    } finally {
      await file.close();
    }
  }
  return { segments, bytes, lastSeq };
}

async function copyTail(
  file: Awaited<ReturnType<typeof open>>,
  offset: number,
  size: number,
  target: string,
): Promise<void> {
  const unfinished = `${target}.new`;
  const copy = await open(unfinished, 'w', 0o600);
  try {
    const source = file.createReadStream({ start: offset, end: size - 1, autoClose: false });
    for await (const chunk of source) await copy.write(chunk);
    await copy.sync();
  } finally {
    await copy.close();
  }
  await rename(unfinished, target);
}
