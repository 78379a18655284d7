import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take half a minute or longer, the longest first: begun last, one of them would keep a whole run waiting. */
const LONG = [
  'tests/e2e/code-interpreter-full.test.ts',
  'tests/security/doors.test.ts',
  'tests/faults/low-disk.test.ts',
  'tests/faults/commands-left.test.ts',
  'tests/faults/rude-clients.test.ts',
  'tests/faults/changes.test.ts',
  'tests/faults/otlp-receiver-dead.test.ts',
  'tests/faults/thrown-errors.test.ts',
  'tests/faults/identity-killed.test.ts',
  'tests/e2e/file-systems-docker.test.ts',
  'tests/e2e/command-line.test.ts',
  'tests/faults/server-killed.test.ts',
  'tests/e2e/file-systems.test.ts',
  // Behind code-interpreter-full, which makes the image that it takes.
  'tests/e2e/first-day.test.ts',
  'tests/e2e/without-pgvector.test.ts',
  'tests/e2e/start.test.ts',
  'tests/e2e/secrets-elsewhere.test.ts',
  'tests/faults/code-interpreter-killed.test.ts',
  'tests/security/sandbox-endpoint.test.ts',
  'tests/security/sandbox-snapshots.test.ts',
  'tests/e2e/packages.test.ts',
  'tests/compat/identity-vault.test.ts',
  'tests/e2e/identity-cli.test.ts',
  'tests/e2e/identity-tokens.test.ts',
  'tests/compat/identity-vendor.test.ts',
  'tests/e2e/gateway-flows.test.ts',
  'tests/e2e/identity-examples.test.ts',
  'tests/e2e/browser.test.ts',
  'tests/e2e/identity-sandbox.test.ts',
  'tests/e2e/identity-vault-key.test.ts',
  'tests/security/sandbox-ptrace.test.ts',
  'tests/security/model-endpoints.test.ts',
  'tests/compat/memory-vendor.test.ts',
  'tests/compat/python-sdk.test.ts',
  'tests/faults/code-interpreter.test.ts',
  'packages/platform/src/kernel/jobs/jobs.test.ts',
  'tests/e2e/code-interpreter.test.ts',
  'tests/security/sandbox-network.test.ts',
  'packages/platform/src/kernel/storage/faults.test.ts',
  'tests/compat/code-interpreter.test.ts',
  'packages/handset/test/proxy.test.ts',
  'tests/e2e/sessions.test.ts',
  'packages/platform/src/kernel/journal/journal.test.ts',
  'packages/cli/test/cli.test.ts',
  'packages/handset/test/proxy-security.test.ts',
  'tests/e2e/troubleshooting.test.ts',
  'tests/e2e/execution-role.test.ts',
  'tests/e2e/memory-model.test.ts',
  'tests/compat/python-vendor-sdk.test.ts',
  'tests/faults/lease-lapse.test.ts',
  'tests/faults/half-open.test.ts',
  'tests/faults/agents.test.ts',
  'packages/handset/test/preview.test.ts',
  'packages/handset/test/packed.test.ts',
  'scripts/check.test.ts',
  'tests/e2e/plain-frameworks.test.ts',
  'tests/e2e/memory-quality.test.ts',
  'tests/e2e/backup.test.ts',
  'tests/e2e/code-interpreter-clients.test.ts',
];

/** The order in which files begin; on a fresh clone nothing else is known of how long each takes. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const at = LONG.indexOf(relative(this.ctx.config.root, moduleId));
      return at < 0 ? LONG.length : at;
    };
    return (await super.sort(files)).toSorted((one, other) => place(one) - place(other));
  }
}
