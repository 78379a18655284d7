import { bytes, seconds } from '../../config/setting.ts';

export const invocation = {
  maxPayloadBytes: bytes({
    about: 'Largest request body of an invocation.',
    default: 100_000_000,
    min: 1024,
    max: 2 ** 40,
  }),
  timeoutSeconds: seconds({
    about: 'Time limit for the first byte of an answer.',
    default: 900,
    min: 0.1,
    max: 28_800,
  }),
  maxEventBytes: bytes({
    about: 'Largest event of an answer that streams events (text/event-stream). A larger event ends the answer.',
    defaultText: '10 MiB',
    default: 10 * 2 ** 20,
    min: 64 * 1024,
    max: 2 ** 40,
  }),
  maxMessageBytes: bytes({
    about: 'Largest message of a WebSocket, in either direction.',
    defaultText: '10 MiB',
    default: 10 * 2 ** 20,
    min: 1024,
    max: 2 ** 30,
  }),
  streamTimeoutSeconds: seconds({
    about: 'Time limit for a streamed answer.',
    default: 3600,
    min: 0.1,
    max: 28_800,
  }),
};
