import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { coverageReport, relaxations } from '@agentplatform/contract';
import { commandsPage } from '../../packages/cli/src/docs/commands-page.ts';
import { configurationDocs } from '../../packages/platform/src/config/describe.ts';
import { settings } from '../../packages/platform/src/config.ts';
import { notImplemented } from '../../packages/platform/src/not-implemented.ts';
import { errorsOf } from '../../packages/platform/src/service-module.ts';
import {
  GATEWAY_FIELDS,
  RATE_LIMIT_FIELDS,
  RULE_FIELDS,
  TARGET_FIELDS,
} from '../../packages/platform/src/services/gateway/index.ts';
import { ENGINE_FIELDS, GENERATION_FIELDS, POLICY_FIELDS } from '../../packages/platform/src/services/policy/index.ts';
import { services } from '../../packages/platform/src/services.ts';
import { errorsPage } from './errors-page.ts';
import { fieldsTable } from './fields-table.ts';
import { piecesTable } from './pieces-table.ts';
import { relaxationList } from './relaxation-list.ts';

const root = new URL('../../', import.meta.url);

const unserved = new Set(await notImplemented());

/** Path of a page of the docs in this checkout. */
export const pagePath = (page: string): string => fileURLToPath(new URL(page, root));

/** Every page that is made from code, as it should be now. `npm run docs:update` writes them, a test compares. */
export function generatedPages(): Record<string, string> {
  return {
    'docs/cli.md': commandsPage(),
    'docs/configuration.md': configurationDocs(settings),
    'docs/errors.md': errorsPage(errorsOf(services)),
    'docs/deviations.md': withSection(
      readFileSync(pagePath('docs/deviations.md'), 'utf8'),
      'relaxations',
      relaxationList(relaxations),
    ),
    'docs/guides/gateway.md': withSection(
      readFileSync(pagePath('docs/guides/gateway.md'), 'utf8'),
      'gateway-fields',
      fieldsTable([
        { operations: 'CreateGateway and UpdateGateway', fields: GATEWAY_FIELDS },
        { operations: 'The operations that write rate limits', fields: RATE_LIMIT_FIELDS },
        { operations: 'CreateGatewayRule and UpdateGatewayRule', fields: RULE_FIELDS },
        { operations: 'CreateGatewayTarget and UpdateGatewayTarget', fields: TARGET_FIELDS },
      ]),
    ),
    'docs/guides/policy.md': withSection(
      readFileSync(pagePath('docs/guides/policy.md'), 'utf8'),
      'policy-fields',
      fieldsTable([
        { operations: 'CreatePolicyEngine and UpdatePolicyEngine', fields: ENGINE_FIELDS },
        { operations: 'CreatePolicy and UpdatePolicy', fields: POLICY_FIELDS },
        { operations: 'StartPolicyGeneration', fields: GENERATION_FIELDS },
      ]),
    ),
    'README.md': withSection(
      readFileSync(pagePath('README.md'), 'utf8'),
      'pieces',
      piecesTable(coverageReport(new Set(), unserved)),
    ),
  };
}

/** `page` with what stands between its `<!-- name: begin -->` and `<!-- name: end -->` replaced by `text`. */
export function withSection(page: string, name: string, text: string): string {
  const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`];
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from < 0 || to < from) throw new Error(`the page has no section ${begin} … ${end}`);
  return `${page.slice(0, from + begin.length)}\n${text}\n${page.slice(to)}`;
}
