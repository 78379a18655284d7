import { choice, optionalUrl, optionalWord, word } from '../../config/setting.ts';

export const policy = {
  model: optionalWord({
    about:
      'Name of the model that writes policies from sentences (agentcore add policy --generate): default = that of models.url, or one of models.named. That of models.default when not set.',
    pattern: /^\S+$/,
    expected: 'the name of a model',
  }),
  guardrails: choice(['built-in', 'moderation', 'bedrock'], {
    about:
      'Who scores content for guardrails in policies: built-in = patterns and checksums for sensitive data, and nothing else; moderation = an OpenAI-compatible POST /moderations at policy.guardrailsUrl, with the built-in for sensitive data; bedrock = InvokeGuardrailChecks of Amazon Bedrock at policy.guardrailsUrl, with a Bedrock API key.',
    default: 'built-in',
  }),
  guardrailsUrl: optionalUrl({
    about: 'Base URL of the service that scores content, for policy.guardrails = moderation or bedrock.',
    expected: 'a URL such as https://api.openai.com/v1',
  }),
  guardrailsModel: word({
    about: 'Name of the model at policy.guardrailsUrl, where policy.guardrails = moderation.',
    default: 'omni-moderation-latest',
    pattern: /^\S+$/,
    expected: 'the name of a model',
  }),
  guardrailsKey: optionalWord({
    about: 'API key for policy.guardrailsUrl.',
    secret: true,
    pattern: /^\S+$/,
    expected: 'a key without spaces',
  }),
};
