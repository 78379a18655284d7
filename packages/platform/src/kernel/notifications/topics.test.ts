import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../clock.ts';
import { createOutbound } from '../outbound/index.ts';
import { createTopics, signatureOf } from './topics.ts';

const ARN = 'arn:aws:sns:us-east-1:123456789012:memory';
const heard: { headers: NodeJS.Dict<string | string[]>; body: string }[] = [];
let status = 200;
const server = createServer((req, res) => {
  let body = '';
  req.setEncoding('utf8').on('data', (part: string) => {
    body += part;
  });
  req.on('end', () => {
    heard.push({ headers: req.headers, body });
    res.writeHead(status, { location: '/elsewhere' }).end();
  });
});
let url = '';

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

function topicsTo(address: string, key?: string) {
  const outbound = createOutbound({ anywhere: true, clock: systemClock });
  const deps = { webhooks: new Map([[ARN, address]]), outbound, clock: systemClock, newId: () => 'id-1' };
  return createTopics({ ...deps, ...(key === undefined ? {} : { key }) });
}

describe('a notification', () => {
  it('reaches the webhook of its topic in the envelope of SNS, signed with the key', async () => {
    await topicsTo(url, 'secret').publish(ARN, { jobId: 'j' });
    const [{ headers, body } = { headers: {}, body: '' }] = heard.splice(0);
    const { Message, ...rest } = JSON.parse(body);
    expect(JSON.parse(Message)).toEqual({ jobId: 'j' });
    expect(rest).toMatchObject({ Type: 'Notification', MessageId: 'id-1', TopicArn: ARN });
    expect(headers['x-amz-sns-message-type']).toBe('Notification');
    expect(headers['x-agentplatform-signature']).toBe(signatureOf(body, 'secret'));
  });

  it.each([500, 302])('fails when the receiver answers %i, and follows no redirect', async (answer) => {
    status = answer;
    await expect(topicsTo(url).publish(ARN, {})).rejects.toThrow(`answered ${answer}`);
    expect(heard.splice(0)).toHaveLength(1);
    status = 200;
  });

  it('fails for a topic that nobody listens to', async () => {
    const topics = topicsTo(url);
    expect(topics.arns).toEqual([ARN]);
    await expect(topics.publish(`${ARN}2`, {})).rejects.toThrow('no webhook');
  });
});
