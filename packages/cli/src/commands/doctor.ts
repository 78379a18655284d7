import { Option } from '@commander-js/extra-typings';
import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { installGvisor } from '../doctor/install-gvisor.ts';
import { findBuilders, probeLocally, thisMachine } from '../doctor/local-probe.ts';
import { askPlatform, type DoctorReport, type PolicyAnalysis } from '../doctor/report.ts';
import { explain } from '../explain.ts';
import { type ConnectionFlags, findConnection } from '../platform/connection.ts';
import { harmless, note, print, printJson, styled, type Terminal, typed } from '../terminal/terminal.ts';

export function doctorCommand(terminal: Terminal) {
  return platformCommand('doctor', {
    summary: 'Show what isolation this machine offers, what is missing, and the command that installs it.',
    details:
      'Asks the platform, if one answers and allows it. Otherwise it checks this machine itself. Exit status 1: sessions cannot be isolated.',
    examples: [
      { does: 'check this machine', line: 'agentcore doctor' },
      { does: 'get the stronger isolation of gVisor', line: 'agentcore doctor --install gvisor' },
    ],
  })
    .addOption(
      new Option('--install <what>', 'install a runtime first, as root; building gVisor with Go takes minutes').choices(
        ['gvisor'],
      ),
    )
    .action(async (options) => {
      if (options.install === 'gvisor') await install(terminal);
      const report = await examine(terminal, options);
      const isolated = report.providers.some(({ provider, usable }) => usable && provider !== 'process');
      if (options.json) printJson(terminal, { ...report, isolated });
      else show(terminal, report);
      if (isolated) return;
      throw new CliError(
        'failure',
        'Sessions cannot be isolated on this machine yet.',
        'Install what is missing for one of the providers above.',
      );
    });
}

async function install(terminal: Terminal): Promise<void> {
  const say = (text: string): void => note(terminal, `  ${text}`);
  const path = await installGvisor({ folder: '/usr/local/bin', say, signal: terminal.signal });
  note(terminal, `Installed ${path}. Sandboxes run on it with: --sandbox-oci-runtime runsc\n`);
}

async function examine(terminal: Terminal, flags: ConnectionFlags): Promise<DoctorReport> {
  const place = thisMachine(terminal.env);
  const machine = { node: place.nodeVersion, builders: await findBuilders(place) };
  let endpoint: string | undefined;
  try {
    const connection = await findConnection(terminal, flags);
    endpoint = connection.endpoint;
    return { ...machine, note: undefined, ...(await askPlatform(connection)) };
  } catch (error) {
    const why = explain(error, endpoint);
    if (why.reason !== 'unreachable' && why.reason !== 'denied') throw why;
    const providers = await probeLocally(place);
    return {
      ...machine,
      note: typed(terminal, [why.message, why.remedy].join('\n').trim()),
      platform: undefined,
      model: undefined,
      providers,
      codeRuntimes: undefined,
      sharedPlaces: undefined,
      disk: undefined,
      database: undefined,
      publicAddress: undefined,
      policyAnalysis: await lookForSolver(),
      restarts: undefined,
    };
  }
}

function show(terminal: Terminal, report: DoctorReport): void {
  const yes = styled(terminal, 'stdout', 'green', 'yes');
  const no = styled(terminal, 'stdout', 'red', 'no ');
  print(terminal, `Node ${report.node}`);
  print(terminal, report.platform ? `Platform at ${report.platform}` : harmless(`${report.note}`));
  if (report.model) {
    const { version, operations, served } = report.model;
    print(terminal, `  It speaks the API of ${version}: ${served} of its ${operations} operations are served.`);
  }
  if (report.restarts)
    print(
      terminal,
      `  The server crashed and was restarted ${report.restarts === 1 ? 'once' : `${report.restarts} times`} since its first start; its log says why.`,
    );
  print(terminal, '\nIsolation of sessions');
  for (const { provider, usable, isolation, missing, shared = [] } of report.providers) {
    // Without isolation it always works; a "yes" would say too much.
    const mark = !usable ? no : provider === 'process' ? ' – ' : yes;
    print(terminal, `  ${mark}  ${provider.padEnd(8)}  ${isolation}`);
    for (const { what, remedy } of missing) print(terminal, `       missing: ${what}  →  ${remedy}`);
    if (usable) for (const what of shared) print(terminal, `       shared by all sandboxes: ${what}`);
  }
  if (report.codeRuntimes) {
    print(terminal, `\nLanguage runtimes: ${report.codeRuntimes.length > 0 ? report.codeRuntimes.join(', ') : 'none'}`);
  }
  if (report.sharedPlaces && report.sharedPlaces.length > 0) {
    print(terminal, '\nPlaces that sandboxes share');
    for (const { id, kind, missing } of report.sharedPlaces) {
      print(terminal, `  ${missing.length === 0 ? yes : no}  ${id}  ${kind}`);
      for (const { what, remedy } of missing) print(terminal, `       missing: ${what}  →  ${remedy}`);
    }
  }
  if (report.disk) {
    print(terminal, '\nDisk');
    for (const { of, free, reserve, low, own = true } of [
      { of: 'the server', ...report.disk },
      ...(report.disk.others ?? []),
    ]) {
      const then = own ? 'nothing new is written' : 'agents that write there run out of space';
      const what = low ? `less than the reserve of ${gib(reserve)} GiB: ${then}` : `the reserve is ${gib(reserve)} GiB`;
      print(terminal, `  ${low ? no : yes}  ${gib(free)} GiB free of the disk of ${of}; ${what}`);
    }
  }
  if (report.database) {
    const { kind, missing } = report.database;
    const name = kind === 'postgres' ? 'PostgreSQL' : 'embedded (PGlite)';
    print(terminal, `\nDatabase\n  ${missing.length === 0 ? yes : no}  ${name}`);
    for (const { what, remedy } of missing) print(terminal, `       missing: ${what}  →  ${remedy}`);
  }
  if (report.publicAddress) {
    const { address, problem } = report.publicAddress;
    print(terminal, `\nAddress for browsers\n  ${problem ? no : yes}  ${address}${problem ? `; ${problem}` : ''}`);
  }
  if (report.policyAnalysis) {
    const { solver, missing } = report.policyAnalysis;
    print(
      terminal,
      `\nAnalysis of policies\n  ${solver ? yes : ' – '}  ${solver ?? 'not analysed, only type-checked'}`,
    );
    for (const { what, remedy } of missing) print(terminal, `       missing: ${what}  →  ${remedy}`);
  }
  print(terminal, '\nBuilding images from a Containerfile (needed for RUN; TypeScript and Python agents have none)');
  for (const found of report.builders) {
    const name = found.builder.padEnd(8);
    print(terminal, found.usable ? `  ${yes}  ${name}` : `   –   ${name}  →  ${found.remedy}`);
  }
}

/** On this machine, where no platform says it. */
async function lookForSolver(): Promise<PolicyAnalysis> {
  const { findSolver, solverInstall } = await import('@agentplatform/policy-engine');
  const found = await findSolver();
  return found ? { solver: found.name, missing: [] } : { missing: [{ what: 'a solver', remedy: solverInstall }] };
}

function gib(bytes: number): string {
  return (bytes / 2 ** 30).toFixed(1);
}
