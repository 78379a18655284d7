import type { CoverageReport } from '@agentplatform/contract';
import { table } from './table.ts';

/** What readers call the pieces of the contract that are built, and what they are. */
const PIECES: Record<string, { name: string; what: string }> = {
  runtimes: {
    name: '[Runtime](docs/guides/your-agent.md)',
    what: 'runs agents from code or containers: sessions, versions, streaming, WebSockets, shells, [MCP and A2A](docs/guides/mcp-and-a2a.md)',
  },
  'code-interpreters': {
    name: '[Code Interpreter](docs/guides/code-interpreter.md)',
    what: 'runs Python, JavaScript and TypeScript in sandboxes',
  },
  browsers: {
    name: '[Browser](docs/guides/browser.md)',
    what: 'runs Chromium in a sandbox; Playwright, Puppeteer and other CDP clients control it; people watch it and take control',
  },
  'browser-profiles': {
    name: '[Browser profiles](docs/guides/browser.md#profiles-stay-signed-in)',
    what: 'keep cookies and local storage for later browser sessions',
  },
  harnesses: {
    name: '[Harness](docs/guides/harness.md)',
    what: 'runs an agent from configuration alone: a model, a system prompt and tools; you write no code',
  },
  memories: {
    name: '[Memory](docs/guides/memory.md)',
    what: 'stores conversations and the facts learned from them; searches by meaning',
  },
  identities: {
    name: '[Identity](docs/guides/identity.md)',
    what: 'gives agents API keys, OAuth tokens and payment credentials from a vault, for themselves or for a user who consented',
  },
  gateways: {
    name: '[Gateway](docs/guides/gateway.md)',
    what: 'makes APIs, MCP servers and [functions](docs/guides/gateway.md#functions) the tools of one MCP endpoint; agents never see the keys of these APIs',
  },
  'policy-engines': {
    name: '[Policy](docs/guides/policy.md)',
    what: 'decides who may call which tool of a gateway, by rules in the policy language Cedar, or in Dogwood, which adds conditions on earlier calls',
  },
  resourcepolicy: {
    name: 'Resource policies',
    what: 'say who may use one resource, such as a runtime, a memory, a gateway or a function',
  },
  tags: { name: 'Tags', what: 'label resources' },
};

/** The pieces of the contract for `README.md`: how much of each that is begun is built, and the names of the others. */
export function piecesTable({ pieces, built, total }: Pick<CoverageReport, 'pieces' | 'built' | 'total'>): string {
  const begun = Object.entries(pieces).filter(([, piece]) => piece.built > 0);
  const rows = begun
    .toSorted(([, one], [, other]) => other.built - one.built)
    .map(([id, piece]) => {
      const { name, what } = PIECES[id] ?? { name: id, what: '' };
      return [name, what, `${piece.built} of ${piece.total}`];
    });
  const others = Object.keys(pieces).filter((id) => pieces[id]?.built === 0);
  return `${table(['service', 'what it does', 'operations built'], rows)}

${built} of the ${total} operations of AgentCore's API are built. Nothing of these parts is built yet: ${others.join(', ')}. Identity stores credentials for payments, but the platform makes no payments.`;
}
