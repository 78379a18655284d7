import { errors } from '@agentplatform/contract';
import type { SocketService } from '../../../kernel/http/index.ts';
import { GATEWAYS_PATH } from '../gateways/gateway.ts';

/** Refuses every WebSocket that is asked of a gateway, in words that say where there are some. */
export const noSockets: SocketService = {
  read({ url = '' }) {
    if (!url.startsWith(`${GATEWAYS_PATH}/`)) return undefined;
    throw errors.unknownOperation('Gateways do not pass on WebSockets.', {
      remedy:
        'Agents of this platform accept them at /runtimes/ARN/ws. Call other servers by HTTP, or without a gateway.',
    });
  },
};
