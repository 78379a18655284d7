import { expect, it } from 'vitest';
import { actionOf } from './action-of.ts';
import { unservedService } from './unserved-services.ts';

const signedFor = (service: string) => ({
  headers: {
    authorization: `AWS4-HMAC-SHA256 Credential=AKIA/20261121/us-east-1/${service}/aws4_request, SignedHeaders=host, Signature=0`,
  },
});

it('names a service of AWS that is not here', () => {
  expect(unservedService(signedFor('dynamodb'))).toMatchObject({
    status: 404,
    message: 'Amazon DynamoDB (dynamodb) is not served by this platform.',
  });
});

it.each(['bedrock', 'bedrock-agentcore', 's3', 'sts', 'iam', '', 'constructor', 'dynamodb/x'])(
  'leaves what is signed for "%s" to the others',
  (service) => expect(unservedService(signedFor(service))).toBeUndefined(),
);

it.each(['Bearer dynamodb', '/aws4_request', 'dynamodb/aws4_request', ''])('and the header "%s"', (authorization) =>
  expect(unservedService({ headers: { authorization } })).toBeUndefined(),
);

it('calls operations in policies as the original does', () => {
  expect(
    (['InvokeAgentRuntime', 'InvokeModel', 'Converse', 'ConverseStream'] as const).map((name) => actionOf(name)),
  ).toEqual([
    'bedrock-agentcore:InvokeAgentRuntime',
    'bedrock:InvokeModel',
    'bedrock:InvokeModel',
    'bedrock:InvokeModelWithResponseStream',
  ]);
});
