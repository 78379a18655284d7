// The tools that every session has: they act in this sandbox, and nowhere else.
import { makeFileEditor } from '@strands-agents/sdk/vended-tools/file-editor';
import { makeShell } from '@strands-agents/sdk/vended-tools/shell';

const MAKERS = {
  shell: () => makeShell({ name: 'shell' }),
  file_operations: () => makeFileEditor({ name: 'file_operations' }),
};

/** Those of these names. */
export function builtIns(names) {
  return names.map((name) => MAKERS[name]());
}
