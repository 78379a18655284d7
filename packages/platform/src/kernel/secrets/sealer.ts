import type { Sealer } from '../auth/index.ts';
import { open, seal } from './envelope.ts';
import { SecretIntegrityError } from './errors.ts';
import type { MasterKeys } from './master-keys.ts';

/** Seals short texts under the master key itself; for what its owner stores among its own rows. */
export function createSealer(keys: MasterKeys): Sealer {
  return {
    async seal(plain, context) {
      const { id, bytes } = keys.current();
      return `${id}:${seal(bytes, Buffer.from(plain), context).toString('base64')}`;
    },
    async open(sealed, context) {
      const [id = '', text = ''] = sealed.split(':');
      const key = keys.byId(id);
      if (!key) throw new SecretIntegrityError(`the master key ${id} is not known: restore the file of master keys`);
      return open(key.bytes, Buffer.from(text, 'base64'), context).toString('utf8');
    },
  };
}
