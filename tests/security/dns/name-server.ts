import { createSocket } from 'node:dgram';
import { isIPv4 } from 'node:net';

const TYPE = { a: 1, cname: 5, aaaa: 28 } as const;
export type Answer = { type: keyof typeof TYPE; value: string }[] | 'silence' | 'unknown';

/** Says what a name is, each time it is asked anew; `times` counts from one for each name and type. */
export type Zone = (name: string, type: 'a' | 'aaaa', times: number) => Answer;

/** A name server for whoever asks 127.0.0.1:53; nothing that it says may be kept. */
export async function openNameServer(zone: Zone): Promise<{ close(): void }> {
  const asked = new Map<string, number>();
  const socket = createSocket('udp4');
  socket.on('message', (question, from) => {
    const { name, type, end } = readQuestion(question);
    const kind = type === TYPE.a ? 'a' : type === TYPE.aaaa ? 'aaaa' : undefined;
    const key = `${kind} ${name}`;
    asked.set(key, (asked.get(key) ?? 0) + 1);
    const answer = kind === undefined ? [] : zone(name, kind, asked.get(key) ?? 0);
    if (answer === 'silence') return;
    const records = answer === 'unknown' ? [] : answer;
    const header = Buffer.alloc(12);
    question.copy(header, 0, 0, 2);
    header.writeUInt16BE(answer === 'unknown' ? 0x8583 : 0x8580, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(records.length, 6);
    // Each record is of what the last one led to.
    let owner = name;
    const parts = records.map((record) => {
      const part = encoded(owner, record);
      if (record.type === 'cname') owner = record.value;
      return part;
    });
    socket.send(Buffer.concat([header, question.subarray(12, end), ...parts]), from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(53, '127.0.0.1', resolve));
  return { close: () => socket.close() };
}

function readQuestion(message: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 };
}

function nameBytes(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  return Buffer.concat([...labels, Buffer.from([0])]);
}

function encoded(owner: string, { type, value }: { type: keyof typeof TYPE; value: string }): Buffer {
  const data = type === 'cname' ? nameBytes(value) : isIPv4(value) ? bytesOf4(value) : bytesOf6(value);
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(TYPE[type], 0);
  fixed.writeUInt16BE(1, 2);
  // Four bytes of zero: for how long it may be kept.
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([nameBytes(owner), fixed, data]);
}

function bytesOf4(address: string): Buffer {
  return Buffer.from(address.split('.').map(Number));
}

/** As a URL writes it, without dots. */
function bytesOf6(address: string): Buffer {
  const plain = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = '', tail] = plain.split('::');
  const groups = (text: string | undefined): string[] => (text ? text.split(':') : []);
  const [first, last] = [groups(head), groups(tail)];
  const all = [...first, ...Array.from({ length: 8 - first.length - last.length }, () => '0'), ...last];
  return Buffer.concat(all.map((group) => Buffer.from(group.padStart(4, '0'), 'hex')));
}
