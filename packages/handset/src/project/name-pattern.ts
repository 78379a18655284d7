/** Whether a project name is `pattern`: `*` stands for part of a name, `**` for folders as well, `?` for one sign. */
export function matchesName(pattern: string, name: string): boolean {
  if (!/[*?]/.test(pattern)) return pattern === name;
  const source = pattern.replace(/\*\*\/|\*\*|\*|\?|[^*?]/g, (sign) => {
    if (sign === '**/') return '(?:[^/]+/)*';
    if (sign === '**') return '.*';
    if (sign === '*') return '[^/]*';
    return sign === '?' ? '[^/]' : sign.replace(/[\\^$.|+()[\]{}]/, '\\$&');
  });
  return new RegExp(`^${source}$`).test(name);
}
