/** Promises: data in Redis can only be read and written with the keys, and is valid only at its place. */
import { expect, test } from 'bun:test';
import { newFleetKeys, Seal, Signer, Verifier } from '../../../src/fleet/seal.ts';

const random = { uuid: () => crypto.randomUUID(), fraction: () => 0.5 };
const { sealingKey, signingKey, publicKey } = newFleetKeys();
const seal = new Seal(sealingKey, random);
const secret = Buffer.from('a secret prompt');

test('sealed data opens with the same key at the same place, and reveals nothing', () => {
  const sealed = seal.seal('cca:h:one', secret);
  expect(seal.open('cca:h:one', sealed)?.toString()).toBe(secret.toString());
  expect(sealed.includes('prompt')).toBe(false);
  expect(seal.seal('cca:h:one', secret).equals(sealed)).toBe(false);
  expect(seal.open('cca:h:one', seal.seal('cca:h:one', Buffer.alloc(0)))?.length).toBe(0);
});

test('sealed data does not open at another place, with another key or after a change', () => {
  const sealed = seal.seal('cca:h:one', secret);
  expect(seal.open('cca:h:two', sealed)).toBeNull();
  expect(new Seal(newFleetKeys().sealingKey, random).open('cca:h:one', sealed)).toBeNull();
  for (let at = 0; at < sealed.length; at += 1) {
    const changed = Buffer.from(sealed);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(seal.open('cca:h:one', changed)).toBeNull();
  }
  for (const length of [0, 1, 28, sealed.length - 1]) {
    expect(seal.open('cca:h:one', sealed.subarray(0, length))).toBeNull();
  }
});

test('a key of another length is refused', () => {
  expect(() => new Seal(Buffer.alloc(16).toString('base64'), random)).toThrow('32 bytes');
});

test('data signed by a runner is verified by its public key, at its place only', () => {
  const other = newFleetKeys();
  const signed = new Signer(signingKey).sign('cca:h:one', '{"kind":"hello"}');
  expect(new Verifier([other.publicKey, publicKey]).verify('cca:h:one', signed)).toBe('{"kind":"hello"}');
  expect(new Verifier([publicKey]).verify('cca:h:two', signed)).toBeNull();
  expect(new Verifier([other.publicKey]).verify('cca:h:one', signed)).toBeNull();
  expect(new Verifier([publicKey]).verify('cca:h:one', Buffer.from('{"kind":"hello"}'))).toBeNull();
  for (const at of [0, 63, 64, signed.length - 1]) {
    const changed = Buffer.from(signed);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(new Verifier([publicKey]).verify('cca:h:one', changed)).toBeNull();
  }
});
