/**
 * Everything sent through Redis is sealed with the fleet's key, so that the owner of Redis, or of its password alone,
 * can neither read nor forge it. Runners also sign their messages, because every host has the fleet's key.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createPrivateKey,
  createPublicKey,
  sign as cryptoSign,
  verify as cryptoVerify,
  generateKeyPairSync,
  generateKeySync,
  type KeyObject,
} from 'node:crypto';
import type { Random } from '../system/world.ts';

const cipher = 'aes-256-gcm';
const format = 1;
const nonceBytes = 12;
const tagBytes = 16;
/** The additional length of sealed data. */
export const sealBytes = 1 + nonceBytes + tagBytes;
const signatureBytes = 64;

export interface FleetKeys {
  readonly sealingKey: string;
  /** Base64 of PKCS #8 and SPKI, DER. */
  readonly signingKey: string;
  readonly publicKey: string;
}

export function newFleetKeys(): FleetKeys {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  return {
    sealingKey: generateKeySync('aes', { length: 256 }).export().toString('base64'),
    signingKey: privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64'),
    publicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
  };
}

/** `place`: where the bytes are stored in Redis; elsewhere they cannot be opened. */
export class Seal {
  readonly #key: Buffer;
  readonly #random: Random;

  constructor(sealingKey: string, random: Random) {
    this.#key = Buffer.from(sealingKey, 'base64');
    if (this.#key.length !== 32) throw new Error('The sealing key of a fleet has 32 bytes');
    this.#random = random;
  }

  seal(place: string, plain: Uint8Array): Buffer {
    // 122 random bits, spread evenly by the hash.
    const nonce = createHash('sha256').update(this.#random.uuid()).digest().subarray(0, nonceBytes);
    const made = createCipheriv(cipher, this.#key, nonce).setAAD(Buffer.from(place));
    const sealed = [made.update(plain), made.final()];
    return Buffer.concat([Buffer.from([format]), nonce, made.getAuthTag(), ...sealed]);
  }

  /** Null when it was not sealed with this key for this place, or was changed since. */
  open(place: string, sealed: Uint8Array): Buffer | null {
    if (sealed.length < sealBytes || sealed[0] !== format) return null;
    const nonce = sealed.subarray(1, 1 + nonceBytes);
    const opened = createDecipheriv(cipher, this.#key, nonce, { authTagLength: tagBytes })
      .setAAD(Buffer.from(place))
      .setAuthTag(sealed.subarray(1 + nonceBytes, sealBytes));
    try {
      return Buffer.concat([opened.update(sealed.subarray(sealBytes)), opened.final()]);
    } catch {
      return null;
    }
  }
}

export class Signer {
  readonly #key: KeyObject;

  constructor(signingKey: string) {
    this.#key = createPrivateKey({ key: Buffer.from(signingKey, 'base64'), format: 'der', type: 'pkcs8' });
  }

  /** The text with a signature in front that is valid for this place only. */
  sign(place: string, text: string): Buffer {
    return Buffer.concat([cryptoSign(null, signed(place, Buffer.from(text)), this.#key), Buffer.from(text)]);
  }
}

export class Verifier {
  readonly #keys: readonly KeyObject[];

  constructor(publicKeys: readonly string[]) {
    this.#keys = publicKeys.map((key) =>
      createPublicKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'spki' }),
    );
  }

  /** The text; null unless one of the keys has signed it for this place. */
  verify(place: string, bytes: Uint8Array): string | null {
    if (bytes.length < signatureBytes) return null;
    const [signature, text] = [bytes.subarray(0, signatureBytes), Buffer.from(bytes.subarray(signatureBytes))];
    const isKnown = this.#keys.some((key) => cryptoVerify(null, signed(place, text), key, signature));
    return isKnown ? text.toString() : null;
  }
}

function signed(place: string, text: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${place}\0`), text]);
}
