import type { Setting, SettingTree } from './setting.ts';

/** A setting with its names in every source. */
export interface NamedSetting {
  setting: Setting<unknown>;
  /** `session.idleSeconds` in the file. */
  key: string;
  /** `session-idle-seconds`, undefined for secrets. */
  flag: string | undefined;
  /** `AGENTPLATFORM_SESSION_IDLE_SECONDS` */
  env: string;
}

export const envPrefix = 'AGENTPLATFORM_';

/** Every setting of a tree with its names, in the order of the tree. */
export function namedSettings(tree: SettingTree, prefix: readonly string[] = []): NamedSetting[] {
  return Object.entries(tree).flatMap(([name, node]) => {
    const path = [...prefix, name];
    if (!isSetting(node)) return namedSettings(node, path);
    const words = path.map((part) => part.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)).join('-');
    return [
      {
        setting: node,
        key: path.join('.'),
        flag: node.secret ? undefined : (node.flag ?? words),
        env: envPrefix + words.toUpperCase().replaceAll('-', '_'),
      },
    ];
  });
}

function isSetting(node: Setting<unknown> | SettingTree): node is Setting<unknown> {
  return node.kind === 'setting';
}
