import type { IncomingMessage } from 'node:http';
import { errors, type ServiceError } from '@agentplatform/contract';

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
  ['logs', 'Amazon CloudWatch Logs'],
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
export function unservedService({ headers }: Pick<IncomingMessage, 'headers'>): ServiceError | undefined {
  const { authorization } = headers;
  const end = authorization?.indexOf(END) ?? -1;
  if (authorization === undefined || end <= 0) return undefined;
  const begin = authorization.lastIndexOf('/', end - 1) + 1;
  const service = begin === 0 ? '' : authorization.slice(begin, end);
  const product = UNSERVED.get(service);
  if (product === undefined) return undefined;
  return errors.unknownOperation(`${product} (${service}) is not served by this platform.`, {
    // Clients of the JSON protocols look for the code in the body.
    members: { __type: 'UnknownOperationException' },
    remedy: `To reach the original, give the client for ${service} its own endpoint and credentials of AWS: AWS_ENDPOINT_URL names this platform.`,
  });
}
