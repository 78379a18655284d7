import type { CoverageReport } from '@agentplatform/contract';
import { table } from './table.ts';

/** What readers call the pieces of the contract that are built, and what they are. */
const PIECES: Record<string, { name: string; what: string }> = {
  runtimes: {
    name: '[Runtime](docs/guides/your-agent.md)',
    what: 'agents as code or containers, sessions, versions, streaming, WebSockets, shells, [MCP and A2A](docs/guides/mcp-and-a2a.md)',
  },
  'code-interpreters': {
    name: '[Code Interpreter](docs/guides/code-interpreter.md)',
    what: 'Python, JavaScript and TypeScript in sandboxes',
  },
  browsers: {
    name: '[Browser](docs/guides/browser.md)',
    what: 'a Chromium in a sandbox of its own for each session, driven by Playwright, Puppeteer or any client of CDP',
  },
  memories: { name: '[Memory](docs/guides/memory.md)', what: 'events, long-term records, search by meaning' },
  identities: {
    name: '[Identity](docs/guides/identity.md)',
    what: 'workload identities; API keys and OAuth tokens from a vault, for the agent and for users who consent; credentials of payment services',
  },
  gateways: {
    name: '[Gateway](docs/guides/gateway.md)',
    what: 'APIs, MCP servers and [functions](docs/guides/gateway.md#functions) as tools behind one MCP endpoint; agents never see the credentials',
  },
  'policy-engines': {
    name: '[Policy](docs/guides/policy.md)',
    what: 'rules in Cedar and Dogwood: which tools may be called, by whom, with what, and after what',
  },
  resourcepolicy: { name: 'Resource policies', what: 'who may call one runtime, endpoint or memory' },
  tags: { name: 'Tags', what: 'tags on resources' },
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

${built} of ${total} operations are built. Nothing is built yet of: ${others.join(', ')}.`;
}
