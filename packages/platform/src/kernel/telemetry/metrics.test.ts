import { describe, expect, it } from 'vitest';
import { createMetrics } from './metrics.ts';

const lines = async (metrics: ReturnType<typeof createMetrics>): Promise<string[]> =>
  (await metrics.render()).body.split('\n');

describe('createMetrics', () => {
  it('counts requests by operation and status, and those in flight', async () => {
    const metrics = createMetrics({ process: false });
    const invoke = metrics.request('InvokeAgentRuntime');
    for (const [status, seconds] of [
      [200, 0.0004],
      [200, 0.2],
      [424, 3],
    ] as const) {
      invoke.began();
      invoke.ended(status, seconds);
    }
    invoke.began();
    expect(metrics.request('InvokeAgentRuntime')).toBe(invoke);
    const all = await lines(metrics);
    expect(all).toContain(
      'agentplatform_request_duration_seconds_count{operation="InvokeAgentRuntime",status="200"} 2',
    );
    expect(all).toContain(
      'agentplatform_request_duration_seconds_bucket{le="0.0005",operation="InvokeAgentRuntime",status="200"} 1',
    );
    expect(all).toContain(
      'agentplatform_request_duration_seconds_count{operation="InvokeAgentRuntime",status="424"} 1',
    );
    expect(all).toContain('agentplatform_requests_in_flight{operation="InvokeAgentRuntime"} 1');
  });

  it('reads watched values when asked, and forgets labels that are gone', async () => {
    const metrics = createMetrics({ process: false });
    let states: Record<string, number> = { active: 2, starting: 1 };
    metrics.watch({ name: 'journal_lag_bytes', help: 'Lag.', read: () => 7 });
    metrics.watch({ name: 'sessions', help: 'Sessions.', read: () => states, label: 'state' });
    expect(await lines(metrics)).toEqual(
      expect.arrayContaining(['agentplatform_journal_lag_bytes 7', 'agentplatform_sessions{state="starting"} 1']),
    );
    states = { active: 3 };
    const later = await lines(metrics);
    expect(later).toContain('agentplatform_sessions{state="active"} 3');
    expect(later.join()).not.toContain('starting');
    metrics.watch({ name: 'journal_lag_bytes', help: 'Lag.', read: () => 8 });
    expect(await lines(metrics)).toContain('agentplatform_journal_lag_bytes 8');
  });

  it('times sandbox starts', async () => {
    const metrics = createMetrics({ process: false });
    metrics.sandboxStart('oci', 'ready').observe(0.17);
    expect(await lines(metrics)).toContain(
      'agentplatform_sandbox_start_seconds_bucket{le="0.2",provider="oci",outcome="ready"} 1',
    );
  });

  it('keeps platforms in one process apart', async () => {
    const one = createMetrics();
    const other = createMetrics();
    one.watch({ name: 'x', help: 'X.', read: () => 1 });
    expect((await lines(one)).join('\n')).toContain('agentplatform_x 1');
    expect((await lines(other)).join('\n')).not.toContain('agentplatform_x');
    expect((await lines(one)).join('\n')).toMatch(/process_resident_memory_bytes \d+/);
  });
});
