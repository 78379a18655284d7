import type { control } from '@agentplatform/contract';
import type { Outbound } from '../../../kernel/outbound/index.ts';
import type { CredentialPlace, HttpTool } from '../http-tools/index.ts';
import { type CompileJob, compileInWorker } from '../openapi/index.ts';
import type { BackendSigning } from '../outbound/backend-signing.ts';
import { type CredentialRules, USUAL_CREDENTIALS } from '../outbound/credential-rules.ts';
import type { Problem } from '../tools/index.ts';
import type { HttpCalls } from './http-calls.ts';
import type { TargetDefinition } from './target.ts';
import type { TargetKind, ToolSource } from './target-kind.ts';

export interface DocumentKindsDeps {
  calls: HttpCalls;
  /** For further files that a document names. */
  outbound: Outbound;
  region: string;
  signing: Pick<BackendSigning, 'refusalOf'>;
}

type DocumentKind = 'openApiSchema' | 'smithyModel';

/** Of one further file. */
const MAX_FILE_BYTES = 8 * 1024 * 1024;
const FILE_TIMEOUT_MS = 20_000;

/** The kinds of targets whose tools are the operations of a document. */
export function documentKinds({
  calls,
  outbound,
  region,
  signing,
}: DocumentKindsDeps): Record<DocumentKind, TargetKind> {
  const resolve = async (url: string, signal: AbortSignal): Promise<string> => {
    const answer = await outbound.apart().fetch(url, { signal, maxBytes: MAX_FILE_BYTES, timeoutMs: FILE_TIMEOUT_MS });
    if (answer.status === 200) return answer.text();
    answer.body.destroy();
    throw new Error(`${url} answered ${answer.status}`);
  };
  const kind = (
    name: DocumentKind,
    { type, service }: { type: control.TargetType; service: CredentialRules['service'] },
    jobOf: (text: string, source: ToolSource) => CompileJob,
  ): TargetKind => {
    const schemaOf = ({ targetConfiguration }: TargetDefinition): control.ApiSchemaConfiguration | undefined =>
      targetConfiguration.mcp?.[name];
    return {
      type,
      document: schemaOf,
      credentials: { ...USUAL_CREDENTIALS, service },
      async makeTools(source) {
        const text = source.document ?? schemaOf(source.definition)?.inlinePayload ?? '';
        const compiled = await compileInWorker(jobOf(text, source), {}, source.signal);
        return { ...compiled, problems: [...compiled.problems, ...(await unsigned(compiled.tools, source, signing))] };
      },
      call: (call) => calls.call(call),
    };
  };
  return {
    openApiSchema: kind(
      'openApiSchema',
      { type: 'OPEN_API_SCHEMA', service: 'named' },
      (text, { target, definition, signal }) => ({
        kind: 'openapi',
        input: { text },
        options: {
          ...{ target: target.name, credentials: placesOf(definition) },
          resolve: (url) => resolve(url, signal),
        },
      }),
    ),
    smithyModel: kind('smithyModel', { type: 'SMITHY_MODEL', service: 'known' }, (text, { target }) => ({
      ...{ kind: 'smithy', input: { text } },
      options: { target: target.name, region },
    })),
  };
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

/** Where the target's credential goes: no argument may be sent there. */
function placesOf({ credentialProviderConfigurations: [configuration] }: TargetDefinition): CredentialPlace[] {
  const key = configuration?.credentialProvider?.apiKeyCredentialProvider;
  if (!configuration) return [];
  if (key?.credentialLocation === 'QUERY_PARAMETER')
    return [{ in: 'query', name: key.credentialParameterName ?? 'api_key' }];
  return [{ in: 'header', name: (key?.credentialParameterName ?? 'authorization').toLowerCase() }];
}
