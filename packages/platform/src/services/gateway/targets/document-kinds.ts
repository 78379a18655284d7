import { type control, errors } from '@agentplatform/contract';
import type { Outbound } from '../../../kernel/outbound/index.ts';
import type { CredentialPlace, HttpTool } from '../http-tools/index.ts';
import { type CompileJob, compileInWorker, type ToolSelection } from '../openapi/index.ts';
import type { BackendSigning } from '../outbound/backend-signing.ts';
import { type CredentialRules, USUAL_CREDENTIALS } from '../outbound/credential-rules.ts';
import type { Problem } from '../tools/index.ts';
import { isPlain } from '../tools/plain-value.ts';
import type { HttpCalls } from './http-calls.ts';
import type { TargetDefinition } from './target.ts';
import type { MadeTools, TargetKind, ToolSource } from './target-kind.ts';

export interface DocumentKindsDeps {
  calls: HttpCalls;
  /** For further files that a document names. */
  outbound: Outbound;
  region: string;
  signing: Pick<BackendSigning, 'refusalOf'>;
  /** Where exported documents of REST APIs are, such as `s3://bucket/prefix`. */
  restApis: string;
}

type DocumentKind = 'openApiSchema' | 'smithyModel' | 'apiGateway';

/** Limit of one further file. */
const MAX_FILE_BYTES = 8 * 1024 * 1024;
const FILE_TIMEOUT_MS = 20_000;

/** The kinds of targets whose tools are the operations of a document. */
export function documentKinds({
  calls,
  outbound,
  region,
  signing,
  restApis,
}: DocumentKindsDeps): Record<DocumentKind, TargetKind> {
  const resolve = async (url: string, ca: string | undefined, signal: AbortSignal): Promise<string> => {
    const answer = await outbound
      .apart()
      .fetch(url, { ca, signal, maxBytes: MAX_FILE_BYTES, timeoutMs: FILE_TIMEOUT_MS });
    if (answer.status === 200) return answer.text();
    answer.body.destroy();
    throw new Error(`${url} answered ${answer.status}`);
  };
  const kind = (
    { type, credentials, schemaOf, service }: DocumentRules,
    jobOf: (text: string, source: ToolSource) => CompileJob,
  ): TargetKind => ({
    ...{ type, credentials, document: schemaOf },
    async makeTools(source) {
      const text = source.document ?? schemaOf(source.definition)?.inlinePayload ?? '';
      const compiled = await compileInWorker(jobOf(text, source), {}, source.signal);
      const tools = service === undefined ? compiled.tools : compiled.tools.map((tool) => forService(tool, service));
      return storable({ tools, problems: [...compiled.problems, ...(await unsigned(tools, source, signing))] });
    },
    call: (call) => calls.call(call),
  });
  const openApi = (
    text: string,
    { target, definition, signal }: ToolSource,
    selection: ToolSelection | undefined,
  ): CompileJob => ({
    ...{ kind: 'openapi', input: { text } },
    options: {
      ...{ target: target.name, credentials: placesOf(definition), ...(selection && { selection }) },
      resolve: (url) => resolve(url, definition.certificateAuthority, signal),
    },
  });
  return {
    openApiSchema: kind(
      {
        type: 'OPEN_API_SCHEMA',
        credentials: { ...USUAL_CREDENTIALS, service: 'named' },
        schemaOf: ({ targetConfiguration: { mcp } }) => mcp?.openApiSchema,
      },
      (text, source) => openApi(text, source, undefined),
    ),
    smithyModel: kind(
      {
        type: 'SMITHY_MODEL',
        credentials: USUAL_CREDENTIALS,
        schemaOf: ({ targetConfiguration: { mcp } }) => mcp?.smithyModel,
      },
      (text, { target }) => ({ kind: 'smithy', input: { text }, options: { target: target.name, region } }),
    ),
    apiGateway: {
      ...kind(
        {
          type: 'API_GATEWAY',
          credentials: { types: ['API_KEY', 'GATEWAY_IAM_ROLE'], service: 'known' },
          schemaOf: (definition) => {
            const { restApiId, stage } = restApiOf(definition);
            return { s3: { uri: `${restApis}/${restApiId}/${stage}.json` } };
          },
          service: 'execute-api',
        },
        (text, source) => openApi(text, source, restApiOf(source.definition).apiGatewayToolConfiguration),
      ),
      check(definition) {
        const { restApiId, stage } = restApiOf(definition);
        for (const [name, value] of Object.entries({ restApiId, stage }))
          if (!/^[\w-]{1,128}$/.test(value))
            throw errors.invalidField(
              `targetConfiguration.mcp.apiGateway.${name}`,
              'has letters, digits, - and _ only',
            );
      },
    },
  };
}

/** Without the tools that hold text which no database takes, in an enum, a default or a pattern: the others are not lost to them. */
function storable({ tools, problems, ...others }: MadeTools): MadeTools {
  const refused = tools.filter((tool) => !isPlain(tool, Number.POSITIVE_INFINITY));
  const left = refused.map(
    ({ name }): Problem => ({
      ...{ severity: 'error', where: name },
      message: 'It is left out: its schema has U+0000 or half of a character, which cannot be stored.',
    }),
  );
  return { ...others, tools: tools.filter((tool) => !refused.includes(tool)), problems: [...problems, ...left] };
}

/** What tells one kind of documents from another. */
interface DocumentRules {
  type: control.TargetType;
  credentials: CredentialRules;
  schemaOf(definition: TargetDefinition): control.ApiSchemaConfiguration | undefined;
  /** That requests are signed for, where it is none that the document says. */
  service?: string;
}

function forService(tool: HttpTool, service: string): HttpTool {
  return { ...tool, http: { ...tool.http, service } };
}

function restApiOf({ targetConfiguration }: TargetDefinition): control.ApiGatewayTargetConfiguration {
  const configuration = targetConfiguration.mcp?.apiGateway;
  if (!configuration) throw new Error('a target that is not a REST API');
  return configuration;
}

/** The hosts of a document to which nothing would be signed, where the gateway's role is the credential. */
async function unsigned(
  tools: readonly HttpTool[],
  { gateway, definition: { credentialProviderConfigurations: given } }: ToolSource,
  signing: Pick<BackendSigning, 'refusalOf'>,
): Promise<Problem[]> {
  if (given[0]?.credentialProviderType !== 'GATEWAY_IAM_ROLE') return [];
  const servers = new Map(tools.map(({ http: { server } }) => [new URL(server).host, server]));
  const refusals = await Promise.all([...servers.values()].map((server) => signing.refusalOf(gateway, `${server}/`)));
  return refusals.flatMap((message): Problem[] => (message === undefined ? [] : [{ severity: 'error', message }]));
}

/** The places of the target's credential: no argument may be sent there. */
function placesOf({ credentialProviderConfigurations: [configuration] }: TargetDefinition): CredentialPlace[] {
  const key = configuration?.credentialProvider?.apiKeyCredentialProvider;
  if (!configuration) return [];
  if (key?.credentialLocation === 'QUERY_PARAMETER')
    return [{ in: 'query', name: key.credentialParameterName ?? 'api_key' }];
  return [{ in: 'header', name: (key?.credentialParameterName ?? 'authorization').toLowerCase() }];
}
