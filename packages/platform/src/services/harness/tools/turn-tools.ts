import type { JsonSchema } from '../../../kernel/models/index.ts';
import type { ToolOrigin } from '../turns/client-events.ts';
import type { LoopTool, LoopToolCall } from '../turns/loop-link.ts';
import { allows, BUILT_IN } from './allowed-tools.ts';
import type { HarnessTool } from './check-tools.ts';
import { failure, type Given, type ServedTool, type ToolServer } from './tool-server.ts';

/** Tools that the sandbox itself has (developer guide). */
const BUILT_INS = ['shell', 'file_operations'];
/** Of a tool as models and the wire take it. */
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
/** Of the text of one result; the rest is left out, and said to be. */
const MOST_RESULT_CHARS = 250_000;

/** The tools of one turn: what the loop is told of them, and what is called by their names. */
export interface TurnTools {
  builtIns: string[];
  tools: LoopTool[];
  originOf(tool: string): ToolOrigin;
  /** Never rejects: what goes wrong is a result that says so. */
  call(call: LoopToolCall, signal: AbortSignal): Promise<Given>;
}

interface Shown {
  server: ToolServer;
  tool: ServedTool;
}

/** What a harness or an invocation has, as far as `allowedTools` lets it. Tools of servers keep their names, unless another has it already. */
export function turnTools(
  tools: readonly HarnessTool[],
  servers: readonly ToolServer[],
  allowed: readonly string[] | undefined,
): TurnTools {
  const inline = tools
    .flatMap((tool) => inlineFunction(tool))
    .filter(({ name }) => allows(allowed, { server: undefined, name }));
  const builtIns = BUILT_INS.filter((name) => allows(allowed, { server: BUILT_IN, name }));
  const shown = new Map<string, Shown>();
  const taken = new Set([...builtIns, ...inline.map(({ name }) => name)]);
  for (const server of servers)
    for (const tool of server.tools) {
      if (!allows(allowed, { server: server.name, name: tool.name })) continue;
      const name = freeName(server.name, tool.name, taken);
      taken.add(name);
      shown.set(name, { server, tool });
    }
  return {
    builtIns,
    tools: [...inline, ...[...shown].map(([name, { tool }]) => loopTool(name, tool))],
    originOf(name) {
      const found = shown.get(name);
      if (found) return { type: found.server.type, serverName: found.server.name };
      return { type: builtIns.includes(name) ? 'server_tool_use' : 'tool_use' };
    },
    async call({ name, input }, signal) {
      const found = shown.get(name);
      // The loop is told of allowed tools alone, and shares its sandbox with what the model runs: it is not believed.
      if (!found) return failure(`There is no tool ${name}.`);
      try {
        return cut(await found.tool.run(input, signal));
      } catch (error) {
        return failure(error instanceof Error ? error.message : String(error));
      }
    },
  };
}

function loopTool(name: string, { description, inputSchema }: ServedTool): LoopTool {
  return { name, description, inputSchema };
}

function freeName(server: string, tool: string, taken: ReadonlySet<string>): string {
  const plain = tool.replaceAll(/[^a-zA-Z0-9_-]/g, '_');
  if (NAME.test(plain) && !taken.has(plain)) return plain;
  const full = `${server}___${plain}`.slice(0, 64);
  if (!taken.has(full)) return full;
  for (let number = 2; ; number++) {
    const numbered = `${full.slice(0, 58)}_${number}`;
    if (!taken.has(numbered)) return numbered;
  }
}

/** A result of 10 MB is no use to any model, and would stay in the conversation. */
function cut({ status, content }: Given): Given {
  let left = MOST_RESULT_CHARS;
  return {
    status,
    content: content.map((one) => {
      const text = 'text' in one ? one.text : JSON.stringify(one.json);
      const kept = text.slice(0, Math.max(0, left));
      left -= kept.length;
      if (kept.length === text.length) return one;
      return { text: `${kept}\n[${text.length - kept.length} more characters are left out]` };
    }),
  };
}

function inlineFunction({ name, config }: HarnessTool): LoopTool[] {
  if (!config?.inlineFunction || name === undefined) return [];
  const { description, inputSchema } = config.inlineFunction;
  // It is an object: `checkTools` has seen to it, and its provider judges the rest.
  return [{ name, description, inputSchema: inputSchema as JsonSchema, inline: true }];
}
