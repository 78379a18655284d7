import { optionalWord, word } from '../../config/setting.ts';

export const gateway = {
  roleCredentials: optionalWord({
    about:
      'File with access keys, by ARNs of roles, that gateways sign requests to other services with. It is written like a credentials file of AWS; hosts = names the hosts that get such requests.',
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
