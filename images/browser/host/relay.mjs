// A WebSocket of the platform, joined with one of Chromium's: bytes pass both ways as they are, each side at the pace of the other.
import { connect } from 'node:net';

/** Of the handshake; what else the platform's request carries is none of Chromium's business. */
const HANDSHAKE = ['upgrade', 'connection', 'sec-websocket-key', 'sec-websocket-version'];

export function relay({ headers }, socket, head, { port, path }) {
  const upstream = connect({ host: '127.0.0.1', port, noDelay: true });
  upstream.on('error', () => socket.destroy());
  socket.on('error', () => upstream.destroy());
  const lines = HANDSHAKE.map((name) => `${name}: ${headers[name]}`);
  upstream.write([`GET ${path} HTTP/1.1`, `Host: 127.0.0.1:${port}`, ...lines, '', ''].join('\r\n'));
  if (head.length > 0) upstream.write(head);
  socket.setNoDelay(true);
  socket.setTimeout(0);
  join(socket, upstream);
  join(upstream, socket);
}

function join(from, to) {
  from.pipe(to);
  from.on('close', () => to.destroySoon());
}
