import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildRequest } from '../../packages/platform/src/services/gateway/http-tools/index.ts';
import { compileSmithy } from '../../packages/platform/src/services/gateway/smithy/index.ts';
import { compileArguments } from '../../packages/platform/src/services/gateway/tools/index.ts';
import { mavenFiles } from '../support/maven-files.ts';

/** Of the models that AWS publishes at Maven Central, in the JSON AST, the one that the registries here bring. */
const FILE = 'META-INF/smithy/2012-11-05/sqs-2012-11-05.json';
const folder = await mavenFiles(['software.amazon.api.models', 'sqs', '1.0.6'], FILE);

describe.skipIf(folder === undefined)('a published Smithy model behind a gateway (Amazon SQS)', () => {
  const text = (): string => readFileSync(join(folder ?? '', FILE), 'utf8');
  const compiled = () => compileSmithy({ text: text() }, { target: 'queues', region: 'eu-west-1' });

  it('becomes a tool for each of its operations, and nothing is wrong with it', () => {
    const shapes = Object.entries<{ type: string }>(JSON.parse(text()).shapes);
    const names = shapes.flatMap(([id, { type }]) => (type === 'operation' ? [id.slice(id.indexOf('#') + 1)] : []));
    expect(names).toHaveLength(23);
    const { tools, problems, leftOut } = compiled();
    expect({ problems, leftOut }).toEqual({ problems: [], leftOut: [] });
    expect(tools.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
    for (const { http, description } of tools) {
      expect([http.server, http.service]).toEqual(['https://sqs.eu-west-1.amazonaws.com', 'sqs']);
      expect(description).not.toMatch(/<\/?\w+>/);
    }
  });

  it('says what a call must have, and sends it as the protocol has it (awsJson1_0)', () => {
    const send = compiled().tools.find(({ name }) => name === 'SendMessage');
    if (!send) throw new Error('there is no SendMessage');
    const check = compileArguments(send.inputSchema);
    const QueueUrl = 'https://sqs.eu-west-1.amazonaws.com/111122223333/q';
    expect(check({ QueueUrl }).length).toBeGreaterThan(0);
    const MessageAttributes = { kind: { DataType: 'Binary', BinaryValue: Buffer.from('a').toString('base64') } };
    const args = { QueueUrl, MessageBody: 'tea', DelaySeconds: 3, MessageAttributes };
    expect(check(args)).toEqual([]);
    const { method, url, headers, body } = buildRequest(send.http, args);
    expect([method, String(url)]).toEqual(['POST', 'https://sqs.eu-west-1.amazonaws.com/']);
    expect(headers).toMatchObject({
      'content-type': 'application/x-amz-json-1.0',
      'x-amz-target': 'AmazonSQS.SendMessage',
      // It was a service of awsQuery once.
      'x-amzn-query-mode': 'true',
    });
    expect(JSON.parse(Buffer.from(body ?? []).toString())).toEqual(args);
  });
});
