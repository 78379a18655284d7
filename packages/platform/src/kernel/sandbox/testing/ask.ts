import { connect } from 'node:net';

/** What a server says that speaks first, or undefined when nobody answers. */
export function ask({ host, port }: { host: string; port: number }): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.setTimeout(2000, () => socket.destroy());
    let answer = '';
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    socket.on('error', () => resolve(undefined));
    socket.on('close', () => resolve(answer === '' ? undefined : answer));
  });
}
