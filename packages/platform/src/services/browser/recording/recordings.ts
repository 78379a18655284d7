import { type control, errors } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Clock } from '../../../kernel/clock.ts';
import type { ObjectWriter } from '../../../kernel/objects/index.ts';
import type { RequestContext } from '../../../kernel/service.ts';
import type { Lease } from '../../../kernel/sessions/index.ts';
import type { SessionRecord } from '../session-records.ts';
import { actionOf } from './recorded-entry.ts';
import { Recorder } from './recorder.ts';

export interface RecordingsDeps {
  objects: ObjectWriter;
  clock: Clock;
  log: Logger;
}

/** Where the sessions of a browser are recorded. */
export interface RecordingPlace {
  bucket: string;
  /** Of the keys; without a slash at its ends. */
  prefix: string;
}

/** A place as the wire has it, checked for whoever makes the browser; undefined for none. Rejects with ValidationException or AccessDeniedException. */
export async function recordingPlace(
  recording: control.RecordingConfig | undefined,
  ctx: Pick<RequestContext, 'accountId' | 'require'>,
  objects: Pick<ObjectWriter, 'hasBucket'>,
): Promise<RecordingPlace | undefined> {
  if (!recording?.enabled) return undefined;
  const { s3Location } = recording;
  if (!s3Location)
    throw errors.invalidField('recording.s3Location', 'is required where recording is enabled', {
      remedy: 'Name a bucket and a prefix.',
    });
  const { bucket, versionId } = s3Location;
  if (versionId !== undefined)
    throw errors.invalidField('recording.s3Location.versionId', 'is not used: recordings are written, not read');
  const prefix = s3Location.prefix.replace(/^\/+|\/+$/g, '');
  await ctx.require('s3:PutObject', `arn:aws:s3:::${bucket}/${prefix === '' ? '' : `${prefix}/`}*`);
  if (!(await objects.hasBucket(ctx.accountId, bucket)))
    throw errors.invalidField('recording.s3Location.bucket', 'is no bucket of this account', {
      remedy: 'Make it first.',
    });
  return { bucket, prefix };
}

/** The address of a session's recording, as GetBrowserSession says it. */
export function recordingUri({ bucket, prefix }: RecordingPlace, sessionId: string): string {
  return `s3://${bucket}/${prefix === '' ? '' : `${prefix}/`}${sessionId}/`;
}

/** The sessions on this server that are being recorded. */
export class Recordings {
  readonly #deps: RecordingsDeps;
  readonly #running = new Map<string, { recorder: Recorder; done: Promise<void> }>();

  constructor(deps: RecordingsDeps) {
    this.#deps = deps;
  }

  /** Records a session from now on, and holds its lease until it is over. */
  begin(record: SessionRecord, place: RecordingPlace, lease: Lease): void {
    const { objects, clock, log } = this.#deps;
    const { sessionId, accountId, createdAt, asked } = record;
    if (this.#running.has(sessionId)) {
      lease.release();
      return;
    }
    const folder = `${place.prefix === '' ? '' : `${place.prefix}/`}${sessionId}`;
    const { bucket } = place;
    const put = async (key: string, value: object): Promise<void> => {
      if (!(await objects.putJson(accountId, { bucket, key: `${folder}/${key}.json` }, value)))
        throw new Error(`the bucket ${bucket} of a recording is gone`);
    };
    const recorder = new Recorder({
      ...{ lease, clock, log },
      store: (name, entries) => put(`segments/${name}`, { version: 1, entries }),
    });
    const about = { version: 1, sessionId, browserArn: record.browserArn, startedAt: createdAt, ...asked };
    put('session', about).catch((error: unknown) => log.warn({ err: error, sessionId }, 'a recording has no head'));
    const done = recorder.run().finally(() => {
      this.#running.delete(sessionId);
      lease.release();
    });
    this.#running.set(sessionId, { recorder, done });
  }

  /** Who hears what a program says to the browser of that session; undefined where nothing is recorded. */
  listener(sessionId: string): ((message: string) => void) | undefined {
    const running = this.#running.get(sessionId);
    return (
      running &&
      ((message) => {
        const action = actionOf(message, this.#deps.clock.now());
        if (action) running.recorder.add(action);
      })
    );
  }

  /** Ends all of them here, what was recorded stored; the sessions go on. */
  async close(): Promise<void> {
    const running = [...this.#running.values()];
    for (const { recorder } of running) recorder.stop();
    await Promise.all(running.map(({ done }) => done));
  }
}
