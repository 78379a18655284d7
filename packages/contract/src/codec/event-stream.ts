import { EventStreamCodec, type Message, type MessageHeaders } from '@smithy/eventstream-codec';
import { receivedError, ServiceError } from '../errors.ts';
import { shapeIn } from '../model.ts';
import type { StreamingBlob } from '../wire-types.ts';
import { frames } from './frames.ts';
import type { PlaneCodec } from './planes.ts';
import { newWalk } from './walk.ts';

const toUtf8 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
const fromUtf8 = (text: string): Uint8Array => Buffer.from(text, 'utf8');

/** Files in base64 make events of megabytes, nearly always of ASCII alone, which is copied rather than encoded. */
function bytesOf(json: string): Uint8Array {
  return Buffer.from(json, Buffer.byteLength(json) === json.length ? 'latin1' : 'utf8');
}

/** The vendor's framing of events: prelude, typed headers, payload and two checksums. */
function newFraming(): EventStreamCodec {
  return new EventStreamCodec(toUtf8, fromUtf8);
}

/** Makes the frames of one kind of event stream. */
export interface EventWriter {
  event(event: Record<string, unknown>): Uint8Array;
  failure(error: unknown): Uint8Array;
}

const text = (value: string): { type: 'string'; value: string } => ({ type: 'string', value });

/** What a client learns of a failure inside the platform; the cause belongs into the log. */
const hidden =
  'The platform failed while it was answering. Repeat the request; if it stays, look up the request id in the log.';

/** Compiles the writer for an event stream's union: its members are the events and the errors that may end it. */
export function eventWriter(codec: PlaneCodec, union: string): EventWriter {
  const framing = newFraming();
  const members = Object.entries(shapeIn(codec.model, union).members ?? {});
  const writers = new Map(members.map(([name, member]) => [name, codec.writer(member.shape)]));
  const exceptions = new Map(
    members.filter(([, m]) => shapeIn(codec.model, m.shape).exception).map(([name, m]) => [m.shape, name]),
  );

  const frame = (headers: MessageHeaders, body: unknown): Uint8Array =>
    framing.encode({
      headers: { ...headers, ':content-type': text('application/json') },
      body: bytesOf(JSON.stringify(body)),
    });

  const exception = (name: string, body: Record<string, unknown>): Uint8Array =>
    frame({ ':message-type': text('exception'), ':exception-type': text(name) }, body);

  return {
    event(event) {
      for (const [name, value] of Object.entries(event)) {
        const write = writers.get(name);
        if (value === undefined || write === undefined) continue;
        return frame({ ':message-type': text('event'), ':event-type': text(name) }, write(value));
      }
      throw new TypeError(`${union} has no event ${Object.keys(event).join(', ')}`);
    },
    failure(error) {
      if (error instanceof ServiceError) {
        const name = exceptions.get(error.code);
        if (name !== undefined) return exception(name, { message: error.wireMessage, ...error.members });
        return framing.encode({
          headers: {
            ':message-type': text('error'),
            ':error-code': text(error.code),
            ':error-message': text(error.wireMessage),
          },
          body: new Uint8Array(),
        });
      }
      return exception(exceptions.get('InternalServerException') ?? 'internalServerException', { message: hidden });
    },
  };
}

/**
 * The bytes of an event stream. An error thrown by `events` becomes the stream's last frame: a modelled one as its own
 * exception, another ServiceError as an unmodelled error with its code, anything else as InternalServerException.
 * `onFailure` sees what was thrown, for the log.
 */
export async function* encodeEvents(
  writer: EventWriter,
  events: AsyncIterable<Record<string, unknown>>,
  onFailure?: (error: unknown) => void,
): StreamingBlob {
  try {
    for await (const event of events) yield writer.event(event);
  } catch (error) {
    onFailure?.(error);
    yield writer.failure(error);
  }
}

const header = (message: Message, name: string): string => String(message.headers[name]?.value ?? '');

/**
 * The events of a byte stream that a server sent, e.g. to a client written on this package. Events that the union does
 * not know are skipped. Throws a ServiceError when the server sent one, and Error when the frames are broken.
 */
export async function* decodeEvents(
  codec: PlaneCodec,
  union: string,
  bytes: StreamingBlob,
): AsyncIterable<Record<string, unknown>> {
  const framing = newFraming();
  const members = shapeIn(codec.model, union).members ?? {};
  for await (const bytesOfOne of frames(bytes)) {
    const message = framing.decode(bytesOfOne);
    const body: unknown = message.body.length === 0 ? {} : JSON.parse(toUtf8(message.body));
    switch (header(message, ':message-type')) {
      case 'event': {
        const name = header(message, ':event-type');
        const member = Object.hasOwn(members, name) ? members[name] : undefined;
        if (member !== undefined) yield { [name]: codec.reader(member.shape)(body, newWalk()) };
        break;
      }
      case 'exception': {
        const name = header(message, ':exception-type');
        const code = Object.hasOwn(members, name) ? members[name]?.shape : undefined;
        throw receivedError(code ?? name, body);
      }
      default:
        throw receivedError(header(message, ':error-code'), { message: header(message, ':error-message') });
    }
  }
}
