import type { OciProviderOptions } from './oci-engine.ts';
import { OciProvider } from './oci-provider.ts';
import { ProcessProvider } from './process-provider.ts';
import { type ProbeReport, SandboxError, type SandboxProvider } from './sandbox.ts';

export interface ChooseProviderOptions extends OciProviderOptions {
  /** `auto` takes the best isolation that works here, and never none. */
  provider: 'auto' | 'oci' | 'process';
}

export interface ChosenProvider {
  provider: SandboxProvider;
  report: ProbeReport;
}

const INSTALL = 'apt-get install -y runc containernetworking-plugins nftables iproute2';

/**
 * The provider for this machine. Rejects with SandboxError `unavailable` when what was asked for does not work here; its message
 * is one paragraph with causes and remedies, for `npm start` and `agentcore doctor` to print.
 */
export async function createSandboxProvider(options: ChooseProviderOptions): Promise<ChosenProvider> {
  if (options.provider === 'process') {
    options.log.warn(
      'agents run WITHOUT ISOLATION (sandbox provider "process"): each can read and change whatever this server can',
    );
    const provider = new ProcessProvider({ ...options, acceptNoIsolation: true });
    return { provider, report: await provider.probe() };
  }
  const provider = new OciProvider(options);
  const report = await provider.probe();
  if (!report.usable) {
    await provider.close();
    throw new SandboxError('unavailable', explainProbes([report]));
  }
  return { provider, report };
}

/** What every provider says of itself on this machine, best isolation first; changes nothing. */
export async function probeProviders(options: OciProviderOptions): Promise<ProbeReport[]> {
  const providers: SandboxProvider[] = [
    new OciProvider(options),
    new ProcessProvider({ ...options, acceptNoIsolation: true }),
  ];
  return Promise.all(providers.map((provider) => provider.probe()));
}

/** One paragraph on why there is no isolation here and what to do, the most useful command first. */
export function explainProbes(reports: ProbeReport[]): string {
  const isolating = reports.filter((report) => report.isolation !== 'none');
  const causes = isolating.map(({ provider, missing }) => {
    const list = missing.map(({ what, remedy }) => `${what} (${remedy})`).join('; ');
    return `The provider "${provider}" lacks: ${list}.`;
  });
  return [
    'Agents cannot be isolated on this machine yet.',
    ...causes,
    `On Debian or Ubuntu, as root, this installs all it needs: ${INSTALL}.`,
    'To debug an agent without any isolation, ask for it by name: --sandbox process.',
  ].join(' ');
}
