import type { AgentRuntimeArtifact, GetAgentRuntimeResponse } from '@aws-sdk/client-bedrock-agentcore-control';
import { Option } from '@commander-js/extra-typings';
import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { applyRuntime, currentRuntime, untilReady } from '../deploy/apply-runtime.ts';
import { desiredRuntime, isDeployed } from '../deploy/desired-runtime.ts';
import { uploadCode } from '../deploy/upload-code.ts';
import { megabytes, packageCode } from '../package/package-code.ts';
import { type Builder, builders, packageImage } from '../package/package-image.ts';
import { controlClient, objectClient } from '../platform/clients.ts';
import { type Connection, findConnection } from '../platform/connection.ts';
import { unsetSecrets } from '../platform/secrets.ts';
import { keepAdditions, withAdditions } from '../project/change-project.ts';
import { readRecord, writeRecord } from '../project/deploy-state.ts';
import { requireProject } from '../project/load-project.ts';
import type { Project } from '../project/project.ts';
import { runSteps } from '../terminal/progress.ts';
import { note, print, printJson, styled, type Terminal, typed } from '../terminal/terminal.ts';

export function deployCommand(terminal: Terminal) {
  return platformCommand('deploy', {
    summary: 'Deploy the agent in this folder.',
    details:
      'Packages the folder, uploads it, and creates the agent runtime or its next version. An unchanged agent is not deployed again. The runtime keeps every setting that agentcore.json does not name.',
    examples: [
      { does: 'deploy the agent in this folder', line: 'agentcore deploy' },
      {
        does: 'deploy, and pass the ARN to a script',
        line: 'agentcore deploy --json | jq -r .agentRuntimeArn',
      },
      {
        does: 'give the agent a secret as an environment variable (agentcore secret set)',
        line: 'agentcore deploy --secret OPENAI_API_KEY',
      },
      {
        does: 'let the agent reach Ollama on this machine, at http://host.docker.internal:11434',
        line: 'agentcore deploy --allow-egress localhost:11434',
      },
    ],
  })
    .option(
      '--role <arn>',
      'execution role of the agent (default: agentcore.json, else the runtime’s, else the platform’s own)',
    )
    .option('--secret <name>', 'give the agent that secret; kept in agentcore.json (repeatable)', append)
    .option(
      '--allow-egress <host:port>',
      'let the agent reach that service on this machine or in a private network; kept in agentcore.json (repeatable)',
      append,
    )
    .addOption(
      new Option(
        '--builder <name>',
        'what builds a Containerfile (default: docker or buildah if one works here, else none: no RUN, no second FROM)',
      ).choices(builders),
    )
    .action(async (options) => {
      const additions = { secrets: options.secret ?? [], egress: options.allowEgress ?? [] };
      const project = await withAdditions(await requireProject(terminal.cwd), additions);
      const connection = await findConnection(terminal, options);
      const { runtime, changed } = await deploy(terminal, project, connection, options);
      await keepAdditions(project, additions);
      const missingSecrets = await unsetSecrets(connection, runtime, project.file.secrets, terminal.signal);
      if (options.json) {
        const { agentRuntimeId, agentRuntimeArn, agentRuntimeVersion, status } = runtime;
        printJson(terminal, {
          name: project.file.name,
          agentRuntimeId,
          agentRuntimeArn,
          agentRuntimeVersion,
          status,
          changed,
          ...(missingSecrets.length > 0 && { missingSecrets }),
        });
        return;
      }
      const what = changed ? 'is deployed' : 'was already deployed; nothing has changed';
      print(
        terminal,
        `${styled(terminal, 'stdout', 'bold', project.file.name)} ${what} (version ${runtime.agentRuntimeVersion}).`,
      );
      print(terminal, `${runtime.agentRuntimeArn}`);
      for (const name of missingSecrets)
        note(
          terminal,
          typed(terminal, `\n${name} is not set, and no session starts without it:  agentcore secret set ${name}`),
        );
      const { agentRuntimeArn = '' } = runtime;
      note(terminal, typed(terminal, `\n${howToCall(project.file.protocol, connection.endpoint, agentRuntimeArn)}`));
    });
}

/** What comes next: `agentcore invoke` speaks to agents of HTTP, and clients of MCP and A2A need the address. */
function howToCall(protocol: Project['file']['protocol'], endpoint: string, arn: string): string {
  const address = `${endpoint}/runtimes/${encodeURIComponent(arn)}/invocations`;
  if (protocol === 'MCP') return `MCP clients call it at:  ${address}`;
  if (protocol === 'A2A') return `A2A clients call it at:  ${address}/`;
  return `Call it:  agentcore invoke '{"prompt":"hi"}'`;
}

/** For an option that may be given again. */
function append(value: string, before: string[] = []): string[] {
  return [...before, value];
}

async function deploy(
  terminal: Terminal,
  project: Project,
  connection: Connection,
  { role, builder }: { role?: string; builder?: Builder },
) {
  const { name, language } = project.file;
  const client = await controlClient(connection);
  const record = await readRecord(project.folder, connection);
  // Before anything is built: whether the platform answers, and lets us in.
  const live = await currentRuntime(client, record?.agentRuntimeId, name);
  let artifact: AgentRuntimeArtifact | undefined;
  let runtime: GetAgentRuntimeResponse | undefined;
  let changed = true;
  let remark: string | undefined;
  await runSteps(terminal, [
    {
      title: language === 'containerfile' ? 'Preparing the image' : 'Packaging and uploading',
      run: async (say) => {
        if (language === 'containerfile') {
          const image = project.file.image
            ? { containerUri: project.file.image, note: undefined }
            : await packageImage(project, connection, builder, say, terminal.signal);
          const { containerUri } = image;
          remark = image.note;
          artifact = { containerConfiguration: { containerUri } };
          return containerUri;
        }
        await using code = await packageCode(project, { signal: terminal.signal, say });
        say(`sends ${megabytes(code.zipBytes)}`);
        const sent = await uploadCode(await objectClient(connection), name, code, terminal.signal);
        artifact = sent.artifact;
        if (code.external.length > 0) remark = `Shipped as installed, not bundled: ${code.external.join(', ')}.`;
        return `${code.files} ${code.files === 1 ? 'file' : 'files'}, ${megabytes(code.zipBytes)}${sent.uploaded ? '' : ', already there'}`;
      },
    },
    {
      title: live ? 'Updating the agent runtime' : 'Creating the agent runtime',
      run: async (say) => {
        if (!artifact) throw new CliError('failure', 'Nothing was packaged.');
        const desired = desiredRuntime(project, artifact, connection, live, role);
        changed = !(live && isDeployed(live, desired));
        if (live && !changed) {
          runtime = live;
          return 'nothing has changed';
        }
        const id = await applyRuntime(client, live, name, desired, terminal.signal);
        runtime = await untilReady(client, id, say, terminal.signal);
        return `version ${runtime.agentRuntimeVersion} is ready`;
      },
    },
  ]);
  if (remark) note(terminal, remark);
  if (!runtime?.agentRuntimeId || !runtime.agentRuntimeArn)
    throw new CliError('failure', 'The platform answered without an ARN.');
  const { agentRuntimeId, agentRuntimeArn } = runtime;
  const same = record?.agentRuntimeId === agentRuntimeId ? record : {};
  await writeRecord(project.folder, connection, { ...same, agentRuntimeId, agentRuntimeArn });
  return { runtime, changed };
}
