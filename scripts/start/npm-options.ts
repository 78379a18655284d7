/**
 * Why options that stand before `--` on the command line of npm do nothing: npm takes them for its own, and tells a script only by its
 * environment. Undefined where `env` names none of `flags` (`--port`).
 */
export function keptByNpm(flags: readonly string[], env: NodeJS.ProcessEnv): string | undefined {
  // Of its own cache npm always tells.
  const kept = flags.filter(
    (flag) => flag !== '--cache' && env[`npm_config_${flag.slice(2).replaceAll('-', '_')}`] !== undefined,
  );
  if (kept.length === 0) return undefined;
  const example = kept.map((flag) => `${flag} …`).join(' ');
  return `npm kept ${kept.join(' and ')} for itself. Write options of the platform after "--":\n  npm ${env.npm_lifecycle_event ?? 'start'} -- ${example}`;
}
