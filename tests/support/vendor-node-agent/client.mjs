// Drives the vendor's own TypeScript clients, unmodified; arguments in ARN and SESSION, answers as JSON on stdout.
import { once } from 'node:events';
import { RuntimeClient, ShellChannel } from 'bedrock-agentcore/runtime';
import WebSocket from 'ws';

const { ARN: runtimeArn = '', SESSION: sessionId = '', AWS_REGION: region = '' } = process.env;
const runtime = new RuntimeClient({ region });
const seen = {};

async function talk(url, headers) {
  const socket = new WebSocket(url, { headers });
  const messages = [];
  socket.on('message', (data) => messages.push(String(data)));
  await once(socket, 'open');
  socket.send('hello');
  while (messages.length < 2) await once(socket, 'message');
  socket.close();
  return [JSON.parse(messages[0]), messages[1]];
}

const { url, headers } = await runtime.generateWsConnection({ runtimeArn, sessionId });
seen.signed = await talk(url, headers);
seen.presigned = await talk(await runtime.generatePresignedUrl({ runtimeArn, sessionId }));

const shell = await runtime.openShell({ runtimeArn, sessionId });
await shell.send('echo from-$((40+2)); exit 7\n');
let output = '';
for await (const frame of shell) if (frame.channel === ShellChannel.STDOUT) output += frame.text;
await shell.close();
seen.shell = { output: output.includes('from-42'), exit: shell.exitCode };

process.stdout.write(JSON.stringify(seen));
