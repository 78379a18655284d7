import { writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type OwnedChild, startChild } from './child.ts';

/** nginx as a reverse proxy of one process that keeps its connections to the backend, without a log, in `dir`. */
export async function startNginx(dir: string, backend: string): Promise<OwnedChild & { port: number }> {
  const port = await freePort();
  const config = join(dir, 'nginx.conf');
  await writeFile(
    config,
    `worker_processes 1; daemon off; pid ${dir}/nginx.pid; error_log stderr error;
events { worker_connections 8192; }
http {
  access_log off; keepalive_requests 100000000; client_body_buffer_size 64k; client_body_temp_path ${dir}/body;
  proxy_temp_path ${dir}/proxy; fastcgi_temp_path ${dir}/fastcgi; uwsgi_temp_path ${dir}/uwsgi; scgi_temp_path ${dir}/scgi;
  upstream agent { server ${backend}; keepalive 64; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://agent; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering on; proxy_read_timeout 900s;
    }
  }
}
`,
  );
  const child = await startChild('nginx', ['-c', config, '-e', 'stderr']);
  for (let attempt = 0; !(await accepts(port)); attempt += 1) {
    if (attempt === 100) throw new Error('nginx does not listen after two seconds');
    await sleep(20);
  }
  return { ...child, port };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
      .once('connect', () => {
        socket.destroy();
        resolve(true);
      })
      .once('error', () => resolve(false));
  });
}
