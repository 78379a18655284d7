import { createHmac } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type CallToolResult,
  type GetPromptResult,
  type InputRequiredResult,
  inputRequired,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { ANSWERS, PROMPTS, promptOf, RESOURCES, resourceOf, TEMPLATES, toolsWith } from './stock.ts';

type Asked = ServerContext['mcpReq'];
type Answer = CallToolResult | InputRequiredResult;
type Run = (asked: Asked) => Answer | Promise<Answer>;

const PROMPT = 'test_input_required_result_prompt';
const PAUSE_MS = 50;
const KEY = 'of the server';
const string = { type: 'string' as const };

const said = (words: string): CallToolResult => ({ content: [{ type: 'text', text: words }] });
const capabilitiesOf = ({ envelope }: Asked): Record<string, unknown> =>
  (envelope as Record<string, Record<string, unknown>> | undefined)?.['io.modelcontextprotocol/clientCapabilities'] ??
  {};

const elicit = (message: string, properties: Record<string, typeof string | { type: 'boolean' }>) =>
  inputRequired.elicit({ message, requestedSchema: { type: 'object', properties } });
const sample = (words: string) =>
  inputRequired.createMessage({
    messages: [{ role: 'user', content: { type: 'text', text: words } }],
    maxTokens: 50,
  });
const signed = (state: string): string => `${state}.${createHmac('sha256', KEY).update(state).digest('base64url')}`;

/** What the client said to a question of that name, where it is an object. */
function answerTo({ inputResponses }: Asked, name: string): object | undefined {
  const given: unknown = inputResponses?.[name];
  return typeof given === 'object' && given !== null ? given : undefined;
}

/** Asks one thing, and answers with what was said. */
function asks(name: string, request: ReturnType<typeof inputRequired.elicit | typeof sample>): Run {
  return (asked) => {
    const answer = answerTo(asked, name);
    return answer ? said(JSON.stringify(answer)) : inputRequired({ inputRequests: { [name]: request } });
  };
}

const RUNS: Readonly<Record<string, Run>> = {
  async test_tool_with_progress({ _meta, notify }) {
    const progressToken = _meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined)
        await notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
      await delay(PAUSE_MS);
    }
    return said('done');
  },
  test_missing_capability(asked) {
    if ('sampling' in capabilitiesOf(asked)) return said('It can be asked.');
    throw new ProtocolError(-32021, 'This tool needs sampling.', { requiredCapabilities: { sampling: {} } });
  },
  test_streaming_elicitation: asks('who', elicit('Who?', { name: string })),
  test_input_required_result_elicitation: asks('user_name', elicit('What is your name?', { name: string })),
  test_input_required_result_sampling: asks('capital_question', sample('What is the capital of France?')),
  test_input_required_result_list_roots: asks('client_roots', inputRequired.listRoots()),
  test_input_required_result_request_state(asked) {
    if (answerTo(asked, 'confirm') && asked.requestState() === 'round-1') return said('state-ok');
    return inputRequired({
      inputRequests: { confirm: elicit('Please confirm', { ok: { type: 'boolean' } }) },
      requestState: 'round-1',
    });
  },
  test_input_required_result_multiple_inputs(asked) {
    const names = ['user_name', 'greeting', 'client_roots'];
    if (names.every((name) => answerTo(asked, name))) return said('all said');
    return inputRequired({
      inputRequests: {
        user_name: elicit('What is your name?', { name: string }),
        greeting: sample('Generate a greeting'),
        client_roots: inputRequired.listRoots(),
      },
      requestState: 'asked',
    });
  },
  test_input_required_result_multi_round(asked) {
    if (answerTo(asked, 'step2') && asked.requestState() === 'round-2') return said('done');
    if (answerTo(asked, 'step1') && asked.requestState() === 'round-1')
      return inputRequired({
        inputRequests: { step2: elicit('Step 2: What is your favorite color?', { color: string }) },
        requestState: 'round-2',
      });
    return inputRequired({
      inputRequests: { step1: elicit('Step 1: What is your name?', { name: string }) },
      requestState: 'round-1',
    });
  },
  test_input_required_result_tampered_state(asked) {
    const state = asked.requestState<string>();
    if (state === undefined)
      return inputRequired({
        inputRequests: { confirm: elicit('Please confirm', { ok: { type: 'boolean' } }) },
        requestState: signed('first'),
      });
    if (state !== signed('first'))
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'The state is none of mine.');
    return said('done');
  },
  test_input_required_result_capabilities(asked) {
    const { elicitation, sampling } = capabilitiesOf(asked);
    return inputRequired({
      inputRequests: {
        ...(elicitation !== undefined && { who: elicit('Who?', { name: string }) }),
        ...(sampling !== undefined && { what: sample('What?') }),
      },
    });
  },
};

/** A server of 2026-07-28 that has all that the conformance suite asks for. */
export function newerServer(): Server {
  const capabilities = { tools: {}, prompts: {}, resources: {}, completions: {} };
  const server = new Server({ name: 'newer', version: '1.0.0' }, { capabilities });
  const tools = toolsWith(Object.keys(RUNS).filter((name) => name !== 'test_tool_with_progress'));
  // What a server sends need not be what its types say.
  server.setRequestHandler('tools/list', () => ({ tools }) as never);
  server.setRequestHandler('tools/call', ({ params: { name } }, { mcpReq }) => {
    const known = ANSWERS[name] ?? said('nothing');
    return RUNS[name]?.(mcpReq) ?? (known as CallToolResult);
  });
  const context = inputRequired({ inputRequests: { user_context: elicit('What context?', { context: string }) } });
  server.setRequestHandler('prompts/list', () => ({ prompts: [...PROMPTS, { name: PROMPT, description: 'Asks.' }] }));
  server.setRequestHandler('prompts/get', ({ params }, { mcpReq }) => {
    if (params.name === PROMPT && !answerTo(mcpReq, 'user_context')) return context;
    return promptOf(params.name, params.arguments) as GetPromptResult;
  });
  server.setRequestHandler('resources/list', () => ({ resources: RESOURCES }));
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: TEMPLATES }));
  server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    const found = resourceOf(uri);
    if (!found) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no such resource.', { uri });
    return found as ReadResourceResult;
  });
  server.setRequestHandler('completion/complete', () => ({ completion: { values: ['paris', 'park'], total: 2 } }));
  return server;
}
