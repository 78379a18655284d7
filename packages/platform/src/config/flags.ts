import type { NamedSetting } from './names.ts';
import { nearest } from './nearest.ts';

/** Values given as `--flag value`, `--flag=value`, `--switch` or `--no-switch`, by the key of the setting; adds what is wrong to `problems`. */
export function readFlags(
  argv: readonly string[],
  all: readonly NamedSetting[],
  problems: string[],
): Map<string, { value: unknown; from: string }> {
  const given = new Map<string, { value: unknown; from: string }>();
  const known = new Map(all.flatMap((one) => (one.flag === undefined ? [] : [[one.flag, one] as const])));
  const words = [...argv];
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    const match = /^--([^=]+)(?:=(.*))?$/s.exec(word);
    if (match?.[1] === undefined) {
      problems.push(`"${word}" is not an option; options look like --port 4100`);
      continue;
    }
    const name = match[1];
    let value: unknown = match[2];
    const negated = name.startsWith('no-') ? known.get(name.slice(3)) : undefined;
    const one = known.get(name) ?? (negated?.setting.switch ? negated : undefined);
    if (!one) {
      problems.push(unknownFlag(name, all));
      // Its value, if it has one, would only make a second message.
      if (value === undefined && words[0]?.startsWith('--') === false) words.shift();
      continue;
    }
    const from = `--${name}`;
    if (one.setting.switch) {
      if (value === undefined) value = one === known.get(name);
      else if (one !== known.get(name)) problems.push(`${from} takes no value`);
    } else if (value === undefined) {
      if (words[0] === undefined || words[0].startsWith('--')) {
        problems.push(`${from} needs a value (${one.setting.unit})`);
        continue;
      }
      value = words.shift();
    }
    if (given.has(one.key)) problems.push(`${from} is given twice`);
    given.set(one.key, { value, from });
  }
  return given;
}

function unknownFlag(name: string, all: readonly NamedSetting[]): string {
  const secret = all.find(
    (one) => one.flag === undefined && one.env.endsWith(`_${name.toUpperCase().replaceAll('-', '_')}`),
  );
  if (secret) return `--${name} is a secret and cannot be given on the command line; set ${secret.env}`;
  const meant = nearest(
    name,
    all.flatMap((one) => one.flag ?? []),
  );
  return `--${name} is not an option${meant ? `; did you mean --${meant}?` : '; --help lists them'}`;
}
