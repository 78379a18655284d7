import type { DockerProviderOptions } from './docker/docker-engine.ts';
import { DockerProvider } from './docker/docker-provider.ts';
import type { OciProviderOptions } from './oci/oci-engine.ts';
import { OciProvider } from './oci/oci-provider.ts';
import { ProcessProvider } from './process/process-provider.ts';
import { type ProbeReport, SandboxError, type SandboxProvider } from './sandbox.ts';

export type ProbeProvidersOptions = OciProviderOptions & DockerProviderOptions;

export type ChooseProviderOptions = ProbeProvidersOptions & {
  /** `auto` takes the best isolation that works here, and never none. */
  provider: 'auto' | 'oci' | 'docker' | 'process';
};

export interface ChosenProvider {
  provider: SandboxProvider;
  report: ProbeReport;
}

const INSTALL = 'apt-get install -y runc tini containernetworking-plugins nftables iproute2';

/**
 * The provider for this machine. Rejects with SandboxError `unavailable` when what was asked for does not work here; its message
 * is one paragraph with causes and remedies, for `npm start` and `agentcore doctor` to print.
 */
export async function createSandboxProvider(options: ChooseProviderOptions): Promise<ChosenProvider> {
  if (options.provider === 'process') {
    options.log.warn(
      'agents run WITHOUT ISOLATION (sandbox provider "process"): each can read and change everything that this server can',
    );
    const provider = new ProcessProvider({ ...options, acceptNoIsolation: true });
    return { provider, report: await provider.probe() };
  }
  const reports: ProbeReport[] = [];
  for (const provider of isolating(options)) {
    if (options.provider !== 'auto' && options.provider !== provider.name) continue;
    const report = await provider.probe();
    if (report.usable) {
      for (const shared of report.shared ?? [])
        options.log.warn({ provider: provider.name }, `shared by all sandboxes: ${shared}`);
      return { provider, report };
    }
    await provider.close();
    reports.push(report);
  }
  throw new SandboxError('unavailable', explainProbes(reports));
}

/** Best first: with an OCI runtime each sandbox has a user namespace of its own, and there is no daemon. */
function isolating(options: ProbeProvidersOptions): SandboxProvider[] {
  return [new OciProvider(options), new DockerProvider(options)];
}

/** What every provider says of itself on this machine, best isolation first; changes nothing. */
export async function probeProviders(options: ProbeProvidersOptions): Promise<ProbeReport[]> {
  const providers: SandboxProvider[] = [
    ...isolating(options),
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
