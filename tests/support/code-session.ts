import {
  type CodeInterpreterResult,
  InvokeCodeInterpreterCommand,
  StartCodeInterpreterSessionCommand,
  StopCodeInterpreterSessionCommand,
  ThrottlingException,
  type ToolArguments,
  type ToolName,
} from '@aws-sdk/client-bedrock-agentcore';
import type { Clients } from './clients.ts';

/** What a call gave: its last event, all events with when they came (ms since the call), and the text of its content. */
export interface Seen extends CodeInterpreterResult {
  text: string;
  events: { at: number; result: CodeInterpreterResult }[];
}

/** A live session, driven by the AWS SDK. */
export interface CodeSession {
  id: string;
  call(name: ToolName, args?: ToolArguments, abortSignal?: AbortSignal): Promise<Seen>;
  python(code: string): Promise<Seen>;
  stop(): Promise<void>;
}

/** Starts a session, waiting for its image where it is being made, or goes on with the one of that id. */
export async function startCodeSession(
  clients: Clients,
  codeInterpreterIdentifier = 'aws.codeinterpreter.v1',
  known?: string,
): Promise<CodeSession> {
  const { data } = clients;
  const sessionId = known ?? (await newSession(clients, codeInterpreterIdentifier));
  const call: CodeSession['call'] = async (name, args, abortSignal) => {
    const began = performance.now();
    const command = new InvokeCodeInterpreterCommand({ codeInterpreterIdentifier, sessionId, name, arguments: args });
    const { stream } = await data.send(command, { abortSignal });
    const events: Seen['events'] = [];
    for await (const { result } of stream ?? []) if (result) events.push({ at: performance.now() - began, result });
    const last = events.at(-1)?.result;
    if (!last) throw new Error(`${name} gave no event`);
    const text = (last.content ?? []).map((block) => block.text ?? block.resource?.text ?? '').join('\n');
    return { ...last, text, events };
  };
  return {
    id: sessionId,
    call,
    python: (code) => call('executeCode', { language: 'python', code }),
    stop: async () => {
      await data.send(new StopCodeInterpreterSessionCommand({ codeInterpreterIdentifier, sessionId }));
    },
  };
}

async function newSession({ data }: Clients, codeInterpreterIdentifier: string): Promise<string> {
  for (const until = performance.now() + 600_000; ; ) {
    try {
      const { sessionId } = await data.send(new StartCodeInterpreterSessionCommand({ codeInterpreterIdentifier }));
      if (sessionId === undefined) throw new Error('no session id');
      return sessionId;
    } catch (error) {
      const early = error instanceof ThrottlingException && error.message.includes('is being made');
      if (!early || performance.now() > until) throw error;
    }
  }
}
