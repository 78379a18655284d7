import type { control } from '@agentplatform/contract';
import type { Outbound } from '../../../kernel/outbound/index.ts';
import type { CredentialPlace } from '../http-tools/index.ts';
import { type CompileJob, compileInWorker } from '../openapi/index.ts';
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
}

type DocumentKind = 'openApiSchema' | 'smithyModel';

/** Of one further file. */
const MAX_FILE_BYTES = 8 * 1024 * 1024;
const FILE_TIMEOUT_MS = 20_000;

/** The kinds of targets whose tools are the operations of a document. */
export function documentKinds({ calls, outbound, region }: DocumentKindsDeps): Record<DocumentKind, TargetKind> {
  const resolve = async (url: string, signal: AbortSignal): Promise<string> => {
    const answer = await outbound.apart().fetch(url, { signal, maxBytes: MAX_FILE_BYTES, timeoutMs: FILE_TIMEOUT_MS });
    if (answer.status === 200) return answer.text();
    answer.body.destroy();
    throw new Error(`${url} answered ${answer.status}`);
  };
  const kind = (
    name: DocumentKind,
    type: control.TargetType,
    jobOf: (text: string, source: ToolSource) => CompileJob,
  ): TargetKind => {
    const schemaOf = ({ targetConfiguration }: TargetDefinition): control.ApiSchemaConfiguration | undefined =>
      targetConfiguration.mcp?.[name];
    return {
      type,
      document: schemaOf,
      async makeTools(source) {
        const text = source.document ?? schemaOf(source.definition)?.inlinePayload ?? '';
        return storable(await compileInWorker(jobOf(text, source), {}, source.signal));
      },
      call: (call) => calls.call(call),
    };
  };
  return {
    openApiSchema: kind('openApiSchema', 'OPEN_API_SCHEMA', (text, { target, definition, signal }) => ({
      kind: 'openapi',
      input: { text },
      options: {
        ...{ target: target.name, credentials: placesOf(definition) },
        resolve: (url) => resolve(url, signal),
      },
    })),
    smithyModel: kind('smithyModel', 'SMITHY_MODEL', (text, { target }) => ({
      ...{ kind: 'smithy', input: { text } },
      options: { target: target.name, region },
    })),
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

/** Where the target's credential goes: no argument may be sent there. */
function placesOf({ credentialProviderConfigurations: [configuration] }: TargetDefinition): CredentialPlace[] {
  const key = configuration?.credentialProvider?.apiKeyCredentialProvider;
  if (!configuration) return [];
  if (key?.credentialLocation === 'QUERY_PARAMETER')
    return [{ in: 'query', name: key.credentialParameterName ?? 'api_key' }];
  return [{ in: 'header', name: (key?.credentialParameterName ?? 'authorization').toLowerCase() }];
}
