import type { IncomingMessage } from 'node:http';
import { encodeError, errors, type ServiceError, type WireResponse } from '@agentplatform/contract';

/** Services of AWS that agents are known to call and that are not here, by the name in the scope of a signature. A piece that brings one takes it off the list. */
const UNSERVED: ReadonlyMap<string, string> = new Map([
  ['aoss', 'Amazon OpenSearch Serverless'],
  ['appconfig', 'AWS AppConfig'],
  ['athena', 'Amazon Athena'],
  ['cloudformation', 'AWS CloudFormation'],
  ['cognito-identity', 'Amazon Cognito'],
  ['cognito-idp', 'Amazon Cognito'],
  ['comprehend', 'Amazon Comprehend'],
  ['dynamodb', 'Amazon DynamoDB'],
  ['ec2', 'Amazon EC2'],
  ['ecr', 'Amazon ECR'],
  ['ecs', 'Amazon ECS'],
  ['es', 'Amazon OpenSearch Service'],
  ['events', 'Amazon EventBridge'],
  ['execute-api', 'Amazon API Gateway'],
  ['firehose', 'Amazon Data Firehose'],
  ['glue', 'AWS Glue'],
  ['kendra', 'Amazon Kendra'],
  ['kinesis', 'Amazon Kinesis'],
  ['kms', 'AWS KMS'],
  ['monitoring', 'Amazon CloudWatch'],
  ['polly', 'Amazon Polly'],
  ['rds', 'Amazon RDS'],
  ['rds-data', 'Amazon RDS'],
  ['redshift-data', 'Amazon Redshift'],
  ['rekognition', 'Amazon Rekognition'],
  ['s3tables', 'Amazon S3 Tables'],
  ['s3vectors', 'Amazon S3 Vectors'],
  ['sagemaker', 'Amazon SageMaker'],
  ['secretsmanager', 'AWS Secrets Manager'],
  ['ses', 'Amazon SES'],
  ['sns', 'Amazon SNS'],
  ['sqs', 'Amazon SQS'],
  ['ssm', 'AWS Systems Manager'],
  ['states', 'AWS Step Functions'],
  ['textract', 'Amazon Textract'],
  ['transcribe', 'Amazon Transcribe'],
  ['translate', 'Amazon Translate'],
  ['xray', 'AWS X-Ray'],
]);

const END = '/aws4_request';

/** The error for a request that says that it is signed for a service of AWS that is not here; undefined for all others. Nothing of the signature is verified. */
export function unservedService(req: Pick<IncomingMessage, 'headers'>): ServiceError | undefined {
  const service = signedService(req);
  const product = UNSERVED.get(service);
  return product === undefined
    ? undefined
    : notHere(`${product} (${service}) is not served by this platform.`, `the client for ${service}`);
}

/** The answer to a request to a path that is no operation, and to one for a service that is not here. */
export function answerUnserved(
  req: Pick<IncomingMessage, 'headers' | 'method' | 'url'>,
  requestId: string,
): WireResponse {
  const unserved = unservedService(req);
  const answer = encodeError(unserved ?? unknownPath(req));
  const isQuery = req.headers['content-type']?.startsWith('application/x-www-form-urlencoded') ?? false;
  if (!unserved || !isQuery) return answer;
  // Clients of the Query protocols read XML alone (Smithy, "AWS Query protocol" and "AWS EC2 query protocol").
  const error = `<Error><Code>${unserved.code}</Code><Message>${unserved.wireMessage}</Message></Error>`;
  const body =
    signedService(req) === 'ec2'
      ? `<Response><Errors>${error}</Errors><RequestID>${requestId}</RequestID></Response>`
      : `<ErrorResponse>${error}<RequestId>${requestId}</RequestId></ErrorResponse>`;
  return { ...answer, headers: { ...answer.headers, 'content-type': 'text/xml' }, body };
}

function unknownPath(req: Pick<IncomingMessage, 'headers' | 'method' | 'url'>): ServiceError {
  const at = `${req.method} ${req.url?.split('?')[0]}`;
  // The name in the scope of a signature is one for Bedrock's models, knowledge bases, agents and the rest.
  if (signedService(req) === 'bedrock')
    return notHere(
      `Of Amazon Bedrock this platform serves Converse, ConverseStream, InvokeModel and InvokeModelWithResponseStream, and not ${at}.`,
      'this client',
    );
  return errors.unknownOperation(`There is no operation at ${at}.`, {
    remedy: 'Check the endpoint and the version of the SDK.',
  });
}

function notHere(what: string, client: string): ServiceError {
  return errors.unknownOperation(what, {
    // Clients of the JSON protocols look for the code in the body.
    members: { __type: 'UnknownOperationException' },
    remedy: `To reach the original, give ${client} its own endpoint and credentials of AWS: AWS_ENDPOINT_URL names this platform.`,
  });
}

/** The name in the scope of the request's signature; empty when the request has none. */
function signedService({ headers: { authorization } }: Pick<IncomingMessage, 'headers'>): string {
  const end = authorization?.indexOf(END) ?? -1;
  if (authorization === undefined || end <= 0) return '';
  const begin = authorization.lastIndexOf('/', end - 1) + 1;
  return begin === 0 ? '' : authorization.slice(begin, end);
}
