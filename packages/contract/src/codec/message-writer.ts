import { type MemberDef, shapeIn } from '../model.ts';
import type { StreamingBlob } from '../wire-types.ts';
import { encodeEvents, eventWriter } from './event-stream.ts';
import type { PlaneCodec } from './planes.ts';
import { headerText } from './text-values.ts';

type Members = Readonly<Record<string, unknown>>;

/** Puts the members that travel there into the headers, whose names are in lower case. */
export type HeaderWriter = (value: Members, headers: Record<string, string>) => void;

/** The body of a message. `onFailure` sees what an event stream threw after the message had begun. */
export type BodyWriter = (value: Members, onFailure?: (error: unknown) => void) => WireBody;

export interface WireBody {
  /** Text and bytes are whole; a stream is handed through part by part. */
  body: string | Uint8Array | StreamingBlob | undefined;
  contentType?: string;
}

/** Compiles the writers of an input's or an output's headers. */
export function headerWriters(codec: PlaneCodec, shape: string): HeaderWriter[] {
  const members = Object.entries(shapeIn(codec.model, shape).members ?? {});
  return members.flatMap(([name, member]) => headerWriter(codec, name, member));
}

function headerWriter(codec: PlaneCodec, name: string, member: MemberDef): HeaderWriter[] {
  const wire = (member.locationName ?? name).toLowerCase();
  const format = shapeIn(codec.model, member.shape).timestampFormat;
  switch (member.location) {
    case 'header':
      return [
        (value, headers) => {
          const one = value[name];
          if (one !== undefined && one !== null) headers[wire] = headerText(one, member, format);
        },
      ];
    case 'headers':
      return [
        (value, headers) => {
          for (const [key, text] of Object.entries(value[name] ?? {}))
            headers[`${wire}${key.toLowerCase()}`] = String(text);
        },
      ];
    default:
      return [];
  }
}

/** Compiles the writer of an input's or an output's body: its payload, or all members that travel nowhere else. */
export function bodyWriter(codec: PlaneCodec, name: string): BodyWriter {
  const { payload, members } = shapeIn(codec.model, name);
  if (payload === undefined) {
    const write = codec.writer(name);
    return (value) => ({ body: JSON.stringify(write(value)), contentType: 'application/json' });
  }
  const target = members?.[payload]?.shape ?? '';
  const kind = shapeIn(codec.model, target);
  if (kind.eventstream) {
    const write = eventWriter(codec, target);
    return (value, onFailure) => ({
      body: encodeEvents(write, value[payload] as AsyncIterable<Record<string, unknown>>, onFailure),
      contentType: 'application/vnd.amazon.eventstream',
    });
  }
  if (kind.type === 'blob') {
    return (value) => ({ body: value[payload] as WireBody['body'], contentType: 'application/octet-stream' });
  }
  if (kind.type === 'string') {
    return (value) => ({ body: value[payload] as string | undefined, contentType: 'text/plain; charset=utf-8' });
  }
  const write = codec.writer(target);
  return (value) => {
    const whole = value[payload];
    return whole === undefined
      ? { body: undefined }
      : { body: JSON.stringify(write(whole)), contentType: 'application/json' };
  };
}
