import { commandGroup } from '../command.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { createMemoryCommand } from './memory-create.ts';
import { memoryEventsCommand, memoryRecordsCommand, memorySearchCommand } from './memory-read.ts';
import { exportMemoryCommand, importMemoryCommand } from './memory-transfer.ts';

/** Memories: make one, look into it, carry it elsewhere. */
export function memoryCommand(terminal: Terminal) {
  const members = [
    createMemoryCommand(terminal),
    memoryEventsCommand(terminal),
    memoryRecordsCommand(terminal),
    memorySearchCommand(terminal),
    exportMemoryCommand(terminal),
    importMemoryCommand(terminal),
  ];
  return commandGroup('memory', 'Make memories, look into them, export and import them.', members);
}
