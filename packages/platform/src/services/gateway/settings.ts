import { optionalWord, word } from '../../config/setting.ts';

export const gateway = {
  roleCredentials: optionalWord({
    about:
      'File of access keys with which gateways sign requests to other services. It has the format of an AWS credentials file: a section for each role ARN, where hosts = lists the hosts that may get such requests.',
    unit: 'path',
    pattern: /^\S.*$/,
    expected: 'the path of a file',
  }),
  restApis: word({
    about:
      'Where the exported documents of REST APIs are that targets (apiGateway) name: below it {restApiId}/{stage}.json, in OpenAPI 3 with the extensions of API Gateway.',
    unit: 's3://…',
    default: 's3://agentplatform-rest-apis',
    pattern: /^s3:\/\/[^\s/]+(?:\/[^\s/]+)*$/,
    expected: 'a location such as s3://bucket/prefix',
  }),
};
