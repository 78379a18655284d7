import pino from 'pino';
import { systemClock } from '../../../clock.ts';
import { openDirectoryStore } from '../../../objects/index.ts';
import { runCommand } from '../../../processes/index.ts';
import { ObjectMounts } from '../object-mounts.ts';

// A platform that can be killed: mounts `some/where` of `bucket` for the access point that is named, says where, and stays.
const [id = '', objects = '', dataDir = '', runBase = ''] = process.argv.slice(2);
const mounts = await ObjectMounts.open({
  places: new Map([[id, { bucket: 'bucket', prefix: 'some/where' }]]),
  store: await openDirectoryStore({ directory: objects, clock: systemClock }),
  dataDir,
  run: runCommand,
  runBase,
  log: pino({ level: 'silent' }),
});
process.stdout.write(`${await mounts.source(id)}\n`);
