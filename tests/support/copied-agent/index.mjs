// An agent for tests of snapshots: it uses every generator while it warms up, and tells what each gives to a session.
import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { onCopy, reseedIfCopied } from '../../../packages/sdk/src/copies.ts';

const { random: early } = Math;
let copied = 0;
onCopy(() => {
  copied += 1;
});

const key = () => generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' }).x;
const numbers = () => ({
  'Math.random': Math.random(),
  randomUUID: randomUUID(),
  'crypto.randomUUID': crypto.randomUUID(),
  randomBytes: randomBytes(8).toString('hex'),
  getRandomValues: crypto.getRandomValues(new Uint32Array(2)).join(),
  key: key(),
});
const again = () => ({ 'Math.random that was kept': early() });

const server = createServer(async (request, response) => {
  reseedIfCopied();
  request.resume();
  const said =
    request.url === '/ping'
      ? { status: 'Healthy' }
      : { copied, numbers: numbers(), same: again(), warm: request.url === '/warm' };
  response.setHeader('content-type', 'application/json').end(JSON.stringify(said));
});
server.listen(8080, '0.0.0.0');
