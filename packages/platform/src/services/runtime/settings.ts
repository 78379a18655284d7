import { bytes, seconds } from '../../config/setting.ts';

export const invocation = {
  maxPayloadBytes: bytes({
    about: 'Largest request body of an invocation.',
    default: 100_000_000,
    min: 1024,
    max: 2 ** 40,
  }),
  timeoutSeconds: seconds({
    about: 'How long the first byte of an answer may take.',
    default: 900,
    min: 0.1,
    max: 28_800,
  }),
  maxEventBytes: bytes({
    about:
      'Largest event of an answer that streams events (text/event-stream); the answer breaks off where one is larger.',
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
    about: 'How long a streamed answer may go on.',
    default: 3600,
    min: 0.1,
    max: 28_800,
  }),
};
