import { join } from 'node:path';
import { SaxesParser } from 'saxes';
import { describe, expect, it } from 'vitest';
import {
  buildRequest,
  type HttpRequest,
  readAnswer,
} from '../../packages/platform/src/services/gateway/http-tools/index.ts';
import { compileSmithy } from '../../packages/platform/src/services/gateway/smithy/index.ts';
import { compileArguments } from '../../packages/platform/src/services/gateway/tools/index.ts';
import { mavenFiles } from '../support/maven-files.ts';
import {
  CaseArguments,
  type ProtocolService,
  protocolServices,
  type RequestCase,
} from '../support/smithy-protocol-cases.ts';

/**
 * Smithy's own tests of clients: models of each protocol, and of parts of Glacier, API Gateway, S3 and Machine Learning, with what a request or an
 * answer must be. A tool is called with the parameters of each case.
 */
const folder = await mavenFiles(['software.amazon.smithy', 'smithy-aws-protocol-tests', '1.74.1'], 'META-INF/smithy/*');
const services = folder === undefined ? [] : protocolServices(join(folder, 'META-INF/smithy'));

/** The cases that a tool does not meet, and why. Each of them must fail, so that the list stays true. */
const NOT_MET: readonly (readonly [ids: RegExp, why: string])[] = [
  [/NaN|Infinity/, 'Arguments are JSON, which has no such number.'],
  [/IdempotencyTokenAutoFill$/, 'An argument that is left out is not made up.'],
  [/ContentEncoding|Gzip/, 'Bodies are sent as they are; a service takes both.'],
  [/ClientPopulates/, 'Defaults are filled in by the service.'],
  [/^S3(?!Path).*Address|^S3Escape/, 'Buckets are named in the path, and not in the host.'],
  [/^S3Preserves.*DotSegment/, 'No argument leads to another path.'],
  [
    /^Glacier|^ApiGatewayAccept$|^MachinelearningPredictEndpoint$/,
    'What SDKs do for one service, its model does not say.',
  ],
  [/^RestJsonTestPayloadBlob$/, 'No argument sets Content-Type.'],
];
const whyNot = (id: string): string | undefined => NOT_MET.find(([ids]) => ids.test(id))?.[1];

/** What becomes of operations that are no tools. */
const NO_TOOLS = /streams events|would choose a part of the host/;

describe.skipIf(folder === undefined).each(services.map((service) => ({ name: service.id, service })))(
  '$name',
  ({ service }) => {
    const known = new Map<string | undefined, ReturnType<typeof compileSmithy>>();
    const compiled = (endpoint?: string) => {
      const options = { target: 'lab', region: 'us-west-2', ...(endpoint !== undefined && { endpoint }) };
      const found = known.get(endpoint) ?? compileSmithy({ text: service.text }, options);
      known.set(endpoint, found);
      return found;
    };

    it('becomes a tool for each operation that is one request and one answer', () => {
      const { leftOut, problems } = compiled();
      expect(leftOut.filter(({ why }) => !NO_TOOLS.test(why))).toEqual([]);
      expect(problems).toHaveLength(leftOut.length);
    });

    it('is called as its protocol says', () => {
      const args = new CaseArguments(service);
      const failed = service.requests.flatMap((one) => {
        const [tool, problem] = callOf(one);
        const why = problem ?? (tool && misfit(one, tool));
        return why === undefined ? [] : [`${one.id}: ${why}`];
      });
      expect(failed.filter((one) => whyNot(one.slice(0, one.indexOf(':'))) === undefined)).toEqual([]);
      const met = service.requests.filter(({ id }) => !failed.some((one) => one.startsWith(`${id}:`)));
      expect(met.filter(({ id }) => whyNot(id) !== undefined).map(({ id }) => id)).toEqual([]);

      /** The request of the case, or why there is none. */
      function callOf(one: RequestCase): [HttpRequest | undefined, string?] {
        const { tools } = compiled(one.host === undefined ? undefined : `https://${one.host}`);
        const tool = tools.find(({ name }) => one.operation.endsWith(`#${name}`));
        // Said by the test above.
        if (!tool) return [undefined];
        const given = args.of(one.operation, one.params ?? {});
        const [problem] = compileArguments(tool.inputSchema)(given);
        if (problem) return [undefined, `${problem.path} ${problem.message}`];
        try {
          return [buildRequest(tool.http, given)];
        } catch (error) {
          return [undefined, String(error)];
        }
      }
    });

    // JSON is handed on as it comes.
    if (!isXml(service)) return;
    it('is understood as its protocol says', async () => {
      const args = new CaseArguments(service);
      const { tools } = compiled();
      const failed: string[] = [];
      for (const one of service.responses) {
        const tool = tools.find(({ name }) => one.operation.endsWith(`#${name}`));
        if (!tool?.http.answer.shape || !one.body || whyNot(one.id)) continue;
        const headers = { 'content-type': 'application/xml' };
        const body = (async function* () {
          yield Buffer.from(one.body ?? '');
        })();
        const answer = await readAnswer(tool, { status: one.code, headers, body }, { maxBytes: 1_000_000, mask: [] });
        const wanted = args.answered(one.operation, one.params ?? {});
        if (!expectable(inUtc(answer.structuredContent), wanted))
          failed.push(`${one.id}: ${JSON.stringify(answer)} instead of ${JSON.stringify(wanted)}`);
      }
      expect(failed).toEqual([]);
    });
  },
);

const isXml = ({ protocol }: ProtocolService): boolean => protocol === 'restXml' || protocol === 'awsQuery';

/** Times with an offset are the same times without. */
function inUtc(value: unknown): unknown {
  const text = JSON.stringify(value ?? null);
  return JSON.parse(
    text.replace(/(?<=")\d{4}-\d\d-\d\dT[\d:]+[+-]\d\d:\d\d(?=")/g, (time) =>
      new Date(time).toISOString().replace('.000Z', 'Z'),
    ),
  );
}

function expectable(found: unknown, wanted: unknown): boolean {
  try {
    expect(found).toEqual(wanted);
    return true;
  } catch {
    return false;
  }
}

/** What is wrong with a request; undefined for one that is as the case has it. */
function misfit(one: RequestCase, { method, url, headers, body }: HttpRequest): string | undefined {
  const query = url.search.slice(1).split('&').filter(Boolean);
  const names = query.map((pair) => pair.split('=', 1)[0]);
  const same = (pair: string): boolean => query.some((got) => got === pair || got === `${pair}=`);
  const text = Buffer.from(body ?? []).toString();
  const type = one.bodyMediaType ?? '';
  return [
    method === one.method ? undefined : `the method is ${method}`,
    one.uri === url.pathname || one.uri === `${url.pathname}${url.search}` ? undefined : `the path is ${url.pathname}`,
    ...(one.queryParams ?? []).map((pair) => (same(pair) ? undefined : `the query ${query} has no ${pair}`)),
    ...(one.forbidQueryParams ?? []).map((name) => (names.includes(name) ? `the query has ${name}` : undefined)),
    ...(one.requireQueryParams ?? []).map((name) => (names.includes(name) ? undefined : `the query has no ${name}`)),
    ...Object.entries(one.headers ?? {}).map(([name, value]) => {
      const found = headers[name.toLowerCase()];
      return found === value ? undefined : `the header ${name} is ${found} instead of ${value}`;
    }),
    ...(one.forbidHeaders ?? []).map((name) =>
      headers[name.toLowerCase()] === undefined ? undefined : `there is a header ${name}`,
    ),
    one.resolvedHost === undefined || url.host === one.resolvedHost ? undefined : `the host is ${url.host}`,
    one.body === undefined || sameBody(text, one.body, type) ? undefined : `the body is ${text} instead of ${one.body}`,
  ].find((wrong) => wrong !== undefined);
}

/** Whether two bodies say the same: JSON whatever the order of its members, forms of their fields, and XML of its elements. */
function sameBody(found: string, wanted: string, mediaType: string): boolean {
  if (found === wanted) return true;
  if (found === '' || wanted === '') return false;
  if (mediaType.endsWith('json')) return expectable(JSON.parse(found), JSON.parse(wanted));
  if (mediaType.endsWith('urlencoded')) return expectable(fields(found), fields(wanted));
  return mediaType.endsWith('xml') && elements(found) === elements(wanted);
}

const fields = (text: string): string[] =>
  text
    .split('&')
    .map((field) => field.trim())
    .sort();

/** XML without blanks between elements, those of each sorted. */
function elements(text: string): string {
  const open: { name: string; attributes: string; text: string; inner: string[] }[] = [
    { name: '', attributes: '', text: '', inner: [] },
  ];
  const parser = new SaxesParser();
  parser.on('opentag', ({ name, attributes }) => {
    open.push({ name, attributes: JSON.stringify(Object.entries(attributes).sort()), text: '', inner: [] });
  });
  parser.on('text', (part) => {
    const at = open.at(-1);
    if (at) at.text += part;
  });
  parser.on('closetag', () => {
    const { name, attributes, text: said, inner } = open.pop() ?? { name: '', attributes: '', text: '', inner: [] };
    open.at(-1)?.inner.push(`${name}${attributes}(${inner.length > 0 ? said.trim() : said}${inner.sort().join('')})`);
  });
  parser.write(text).close();
  return open[0]?.inner.join('') ?? '';
}
