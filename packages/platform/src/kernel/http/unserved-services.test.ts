import { expect, it } from 'vitest';
import { actionOf } from './action-of.ts';
import { answerUnserved, unservedService } from './unserved-services.ts';

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

it.each([
  ['ec2', 'text/xml', /^<Response><Errors><Error><Code>UnknownOperationException<\/Code><Message>Amazon EC2 /],
  ['sns', 'text/xml', /^<ErrorResponse><Error><Code>UnknownOperationException<\/Code><Message>Amazon SNS /],
  // What is said of a path is a client's own text, and never XML.
  ['bedrock', 'application/json', /and not POST \/<a>\./],
  ['', 'application/json', /There is no operation at POST \/<a>\./],
])('answers a form that is signed for "%s" with %s', (service, type, said) => {
  const { authorization } = signedFor(service).headers;
  const headers = { authorization, 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' };
  const answer = answerUnserved({ method: 'POST', url: '/<a>?b', headers }, 'id');
  expect(answer.headers['content-type']).toBe(type);
  expect(answer.body).toMatch(said);
});

it('answers JSON with JSON', () => {
  const { authorization } = signedFor('ec2').headers;
  const answer = answerUnserved({ method: 'POST', url: '/', headers: { authorization } }, 'id');
  expect(answer.headers['content-type']).toBe('application/json');
});

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
