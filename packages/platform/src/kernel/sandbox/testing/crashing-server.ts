/** A server for crash tests: makes sandboxes in the data directory it is given, by Docker when it is given a socket, says so, and goes on making and stopping them. */
import pino from 'pino';
import { systemClock } from '../../clock.ts';
import { DockerProvider } from '../docker/docker-provider.ts';
import { OciProvider } from '../oci/oci-provider.ts';
import { busyboxImage } from './rootfs.ts';
import { smallSpec } from './small-spec.ts';
import { testStage } from './test-stage.ts';

const [dataDir = '', imageDir = '', dockerSocket = ''] = process.argv.slice(2);
const options = {
  dataDir,
  stage: testStage,
  clock: systemClock,
  log: pino({ level: 'silent' }),
  creates: { running: 3, waiting: 10 },
};
const provider =
  dockerSocket === '' ? new OciProvider(options) : new DockerProvider({ ...options, socketPath: dockerSocket });
const image = await busyboxImage(imageDir);
const network = { egress: 'restricted' as const, allowCidrs: ['10.1.0.0/16'], hostPorts: [4100] };
const make = (id: string) =>
  provider.create(smallSpec(image, id, { command: ['/bin/sh', '-c', 'while :; do echo x; sleep 0.1; done'], network }));

await Promise.all(['a1', 'a2', 'a3'].map(make));
process.stdout.write('ready\n');
for (let serial = 0; ; serial++) {
  const made = await Promise.all([`b${serial}`, `c${serial}`].map(make));
  await Promise.all(made.map((sandbox) => sandbox.stop()));
}
