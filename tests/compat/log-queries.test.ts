import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attribute, request, span } from '../../packages/platform/src/services/observability/testing/protobuf.ts';
import { type BotoAnswer, python } from '../support/boto3.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const script = join(import.meta.dirname, '../support/boto3_calls.py');
let platform: TestPlatform;

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--sandbox', 'process'] });
});
afterAll(() => platform?.dispose());

const logs = async (...calls: [operation: string, input: object][]): Promise<BotoAnswer[]> =>
  (await python?.run(
    script,
    calls.map(([operation, input]) => ({ service: 'logs', operation, input })),
    platform.env,
  )) as BotoAnswer[];

describe.skipIf(!python)('boto3 asks for spans as CloudWatch Logs Insights', () => {
  it('and gets each as a document, with the query of the vendor’s evaluation client', async () => {
    const { accessKeyId, secretAccessKey } = platform.credentials;
    const now = BigInt(Date.now()) * 1_000_000n;
    const attributes = [attribute('session.id', 'evaluated'), attribute('gen_ai.operation.name', 'chat')];
    const body = request([span({ start: now, end: now + 1_000_000n, name: 'chat m', attributes })]);
    const sent = await fetch(`${platform.ready.endpoint}/v1/traces`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`${accessKeyId}:${secretAccessKey}`).toString('base64')}`,
        'content-type': 'application/x-protobuf',
      },
      body: new Uint8Array(body),
    });
    expect(sent.status).toBe(200);
    const seconds = Math.floor(Date.now() / 1000);
    const query = {
      ...{ logGroupName: 'aws/spans', startTime: seconds - 600, endTime: seconds + 60 },
      queryString:
        'fields @timestamp, @message\n| filter attributes.session.id = "evaluated"\n| filter ispresent(scope.name)\n| filter ispresent(traceId)\n| filter ispresent(spanId)\n| sort @timestamp asc',
    };
    const found = async () => {
      const [started] = await logs(['StartQuery', query]);
      const [results] = await logs(['GetQueryResults', { queryId: started?.output.queryId }]);
      return results?.output;
    };
    await expect.poll(found).toMatchObject({ status: 'Complete', statistics: { recordsMatched: 1 } });
    const [row] = (await found()).results;
    const message = row.find(({ field }: { field: string }) => field === '@message').value;
    expect(JSON.parse(message)).toMatchObject({
      ...{ name: 'chat m', scope: { name: 'test' }, traceId: 'a'.repeat(32) },
      attributes: { 'session.id': 'evaluated' },
    });
    const [empty, missing, malformed, unknown] = await logs(
      ['StartQuery', { ...query, logGroupName: '/aws/bedrock-agentcore/runtimes/a-DEFAULT' }],
      ['StartQuery', { ...query, logGroupName: '/other' }],
      ['StartQuery', { ...query, queryString: 'stats count(*)' }],
      ['GetQueryResults', { queryId: 'none' }],
    );
    expect(empty?.output.queryId).toBeTruthy();
    expect(missing?.error?.code).toBe('ResourceNotFoundException');
    expect(malformed?.error?.code).toBe('MalformedQueryException');
    expect(unknown?.error?.code).toBe('ResourceNotFoundException');
  });
});
