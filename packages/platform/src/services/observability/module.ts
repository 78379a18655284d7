import { forgetRows } from '../../kernel/storage/index.ts';
import { redactText } from '../../kernel/telemetry/index.ts';
import type { Kernel } from '../../open-kernel.ts';
import type { ServiceModule } from '../../service-module.ts';
import { logRoutes } from './log-routes.ts';
import { otlpRoutes, sandboxOtlpRoutes } from './otlp-routes.ts';
import { queryRoutes } from './query-routes.ts';
import { contentRules } from './settings.ts';
import { SPANS, SpanIntake } from './span-intake.ts';
import type { Sender } from './span-row.ts';
import { spanRetention, spanSink } from './span-sink.ts';
import { observabilityMigrations } from './tables.ts';

const DAY_MS = 86_400_000;

/** Spans of agents: taken in by OTLP, kept for a while, and asked for. */
export const module: ServiceModule<'observability', never> = {
  migrations: observabilityMigrations,
  sinks: { [SPANS]: spanSink },
  create(kernel) {
    const { config, database } = kernel;
    const { content, keepDays, spansPerSecond } = config.observability;
    const intake = new SpanIntake({ ...kernel, content: contentRules(content), spansPerSecond, redact: redactText });
    return {
      operations: {},
      port: undefined,
      routes: [
        sandboxOtlpRoutes({ intake, atAddress: (address) => senderAt(kernel, address) }),
        otlpRoutes({ intake }),
        queryRoutes(kernel),
        logRoutes({ ...kernel, newId: kernel.identifiers.request }),
      ],
      retention: [
        spanRetention(database, keepDays * DAY_MS),
        { name: 'queries of logs', keepMs: 3_600_000, forget: forgetRows(database, 'log_queries', 'at') },
      ],
      metrics: [
        {
          name: 'shed_spans',
          help: 'Spans that were refused because their agent sent too many.',
          read: () => intake.counts.shed,
        },
        {
          name: 'unreadable_span_requests',
          help: 'Requests with spans that could not be read.',
          read: () => intake.counts.refused,
        },
      ],
    };
  },
};

/** Whose sandbox has that address; of the machine's own, which sandboxes without isolation share, it cannot be told. */
function senderAt({ sessions }: Pick<Kernel, 'sessions'>, address: string | undefined): Sender | undefined {
  if (address === undefined || address.startsWith('127.') || address === '::1') return undefined;
  const session = sessions.all().find(({ sandbox }) => sandbox?.address(80).host === address);
  if (!session) return undefined;
  const { accountId, resourceArn, sessionId } = session.row;
  return { accountId, agent: resourceArn, sessionId };
}
