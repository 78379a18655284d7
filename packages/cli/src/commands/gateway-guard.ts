import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { adminJson, segment } from '../platform/admin.ts';
import { controlClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { findGateway } from '../platform/gateways.ts';
import { columns, harmless, print, printJson, type Terminal } from '../terminal/terminal.ts';
import { gatewayOption } from './reach-gateway.ts';

interface Budget {
  per: string;
  of: string;
  tokens: number;
  period: string;
}

interface GuardRails {
  budgets: Budget[];
  cacheSeconds: number;
  log: boolean;
  redact: string[];
  redactRequests: boolean;
}

/** `agentcore gateway guard`: what no flag names stays as it is. */
export function guardCommand(terminal: Terminal) {
  return gatewayOption(
    platformCommand('guard', {
      summary: 'Show or change budgets, the cache of answers, and the log of the models behind a gateway.',
      details: 'What you leave out stays as it is. Everything is off by default.',
      examples: [
        { does: 'what holds now', line: 'agentcore gateway guard' },
        { does: 'a budget for each caller', line: 'agentcore gateway guard --budget caller=200000/day' },
        {
          does: 'another one for one key',
          line: 'agentcore gateway guard --budget key:AKIAIOSFODNN7EXAMPLE=5000000/month',
        },
        { does: 'remove a budget', line: 'agentcore gateway guard --remove-budget caller/day' },
        { does: 'the same answer for ten minutes', line: 'agentcore gateway guard --cache 600' },
        { does: 'requests and answers in the log', line: 'agentcore gateway guard --log' },
      ],
    }),
  )
    .option('--budget <budgets...>', 'tokens for each caller or key, or for one: caller=N/day, key:ID=N/month')
    .option('--remove-budget <budgets...>', 'such as caller/day or key:ID/month')
    .option('--cache <seconds>', 'how long an answer is given again to the same caller; 0: never')
    .option('--log', 'write requests and answers to the platform’s log')
    .option('--no-log', 'write none')
    .option('--redact <kinds...>', 'what is taken out of the log: email, card, phone, secret; none')
    .option('--redact-requests', 'take it out of requests, too, before models see them')
    .option('--no-redact-requests', 'send requests as they are')
    .action(
      async ({ gateway: wanted, budget = [], removeBudget = [], cache, log, redact, redactRequests, ...options }) => {
        const connection = await findConnection(terminal, options);
        const { gatewayId = '', name = '' } = await findGateway(await controlClient(connection), wanted);
        const path = `/gateways/${segment(gatewayId)}/guard-rails`;
        const { signal } = terminal;
        const before = (await adminJson(connection, { path, signal })) as GuardRails;
        const wishes = { cache, log, redact, redactRequests };
        const changes =
          budget.length + removeBudget.length > 0 || Object.values(wishes).some((one) => one !== undefined);
        const body: GuardRails = {
          budgets: budgetsOf(before.budgets, budget.map(budgetIn), removeBudget.map(nameIn)),
          cacheSeconds: cache === undefined ? before.cacheSeconds : countOf(cache),
          log: log ?? before.log,
          redact: redact === undefined ? before.redact : redact.filter((kind) => kind !== 'none'),
          redactRequests: redactRequests ?? before.redactRequests,
        };
        const now = changes
          ? ((await adminJson(connection, { method: 'PUT', path, body, signal })) as GuardRails)
          : before;
        if (options.json) return printJson(terminal, now);
        const rows = now.budgets.map(({ per, of, tokens, period }) => [
          `budget of ${of === '*' ? `each ${per}` : `the ${per} ${of}`}`,
          `${tokens} tokens a ${period}`,
        ]);
        rows.push(['answers given again', now.cacheSeconds === 0 ? 'never' : `for ${now.cacheSeconds} s`]);
        rows.push(['requests and answers in the log', now.log ? 'yes' : 'no']);
        rows.push(['taken out of the log', now.redact.join(', ') || 'nothing']);
        rows.push(['taken out of requests, too', now.redactRequests ? 'yes' : 'no']);
        print(terminal, harmless(name));
        for (const line of columns(rows.map((row) => row.map(harmless)))) print(terminal, line);
      },
    );
}

type Name = Pick<Budget, 'per' | 'of' | 'period'>;

function same(a: Name, b: Name): boolean {
  return a.per === b.per && a.of === b.of && a.period === b.period;
}

function budgetsOf(before: readonly Budget[], given: readonly Budget[], removed: readonly Name[]): Budget[] {
  for (const one of removed)
    if (!before.some((budget) => same(budget, one)))
      throw new CliError('notFound', `There is no budget of ${one.per} ${one.of} for a ${one.period}.`);
  const kept = before.filter((budget) => ![...given, ...removed].some((one) => same(budget, one)));
  return [...kept, ...given];
}

function budgetIn(text: string): Budget {
  const at = text.lastIndexOf('=');
  const [, tokens = '', period = ''] = /^(\d+)\/(day|month)$/.exec(text.slice(at + 1)) ?? [];
  if (at < 0 || period === '')
    throw new CliError('usage', `"${text}" is not a budget.`, 'Write for example caller=200000/day.');
  return { ...dimensionIn(text.slice(0, at)), tokens: Number(tokens), period };
}

function nameIn(text: string): Name {
  const [, dimension = '', period = ''] = /^(.+)\/(day|month)$/.exec(text) ?? [];
  if (period === '') throw new CliError('usage', `"${text}" names no budget.`, 'Write for example caller/day.');
  return { ...dimensionIn(dimension), period };
}

function dimensionIn(text: string): Pick<Budget, 'per' | 'of'> {
  const [, per = '', of = '*'] = /^(caller|key)(?::(.+))?$/.exec(text) ?? [];
  if (per === '') throw new CliError('usage', `"${text}" is neither a caller nor a key.`);
  return { per, of };
}

function countOf(text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  throw new CliError('usage', `"${text}" is not a number of seconds.`);
}
