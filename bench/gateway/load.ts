import { once } from 'node:events';
import { connect } from 'node:net';
import { Connection } from '../support/connection.ts';
import { rotation } from '../support/signed-requests.ts';
import { SAID } from './orders-api.ts';

/** Requests to one server, sent again and again. */
export interface Lane {
  port: number;
  requests: Buffer[];
}

/** Bytes of the body of a right answer, which is looked at once: by them the load tells whether each of its answers is right. */
export async function rightAnswer(name: string, { port, requests }: Lane): Promise<number> {
  const [request = Buffer.alloc(0)] = requests;
  const socket = connect(port, '127.0.0.1').setTimeout(30_000, () => socket.destroy(new Error('no answer in 30 s')));
  let text = '';
  try {
    await once(socket, 'connect');
    socket.write(request);
    for await (const part of socket) {
      text += part;
      if (text.includes(SAID)) break;
    }
  } finally {
    socket.destroy();
  }
  if (!text.includes(SAID)) throw new Error(`${name} answers ${text.slice(0, 400)}`);
  const connection = await Connection.open('127.0.0.1', port);
  try {
    return (await connection.send(request)).bytes;
  } finally {
    connection.close();
  }
}

export interface Load {
  /** Of one server, or of several that share the load. */
  lanes: Lane[];
  /** Of all lanes together. */
  connections: number;
  ms: number;
  /** Of each right answer. */
  bytes: number;
}

/** What came of it: milliseconds of each request, and how many there were a second until the last answer. */
export interface Loaded {
  times: number[];
  perSecond: number;
}

/** Sends requests for that time and waits for the answers. Rejects when an answer is wrong, or does not come. */
export async function load({ lanes, connections, ms, bytes }: Load): Promise<Loaded> {
  const times: number[] = [];
  const start = performance.now();
  const until = start + ms;
  let last = start;
  const one = async (port: number, next: () => Buffer): Promise<void> => {
    let connection = await Connection.open('127.0.0.1', port);
    try {
      for (let begun = performance.now(); begun < until; begun = performance.now()) {
        // Some servers close after an answer; opening anew is their time.
        if (!connection.open) connection = await Connection.open('127.0.0.1', port);
        const answer = await connection.send(next());
        if (answer.bytes !== bytes) throw new Error(`an answer has ${answer.bytes} bytes instead of ${bytes}`);
        times.push(answer.endAt - begun);
        last = Math.max(last, answer.endAt);
      }
    } finally {
      connection.close();
    }
  };
  const each = lanes.map(({ port, requests }) => ({ port, next: rotation(requests) }));
  const all = Array.from({ length: connections }, (_, at) => each[at % each.length]);
  await Promise.all(all.map((lane) => lane && one(lane.port, lane.next)));
  return { times, perSecond: (times.length * 1000) / (last - start) };
}
