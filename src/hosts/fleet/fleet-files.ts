/** What a machine keeps of the fleets it belongs to: as the one that asks, and as one that works. Private files. */
import { z } from 'zod';

const text = z.string();
/** Base64. */
const key = z.string().base64();

/** fleet.json, on the machine of whoever runs groups. */
export const fleetConfig = z.object({
  version: z.literal(1),
  /** With the user and password of the runner. */
  redis: text,
  /** 32 bytes with which all that goes through Redis is sealed. */
  sealingKey: key,
  /** Ed25519: PKCS #8 and SPKI, DER. */
  signingKey: key,
  publicKey: key,
  /** Milliseconds for which a machine may work without an answer of Redis. */
  leaseMs: z.number().int().min(2_000),
  /** PEM of the authority that signed the certificate of Redis; absent = those that the system trusts. */
  ca: text.optional(),
  /** Redis off loopback without TLS, by an option that says so. */
  insecure: z.boolean().optional(),
});
export type FleetConfig = z.infer<typeof fleetConfig>;

/** What a join line says to a machine. */
export const joinTicket = fleetConfig
  .pick({ version: true, sealingKey: true, leaseMs: true, ca: true, insecure: true })
  // Redis with the user and password of the machines.
  .extend({ redis: text, runnerKeys: z.array(key) });
export type JoinTicket = z.infer<typeof joinTicket>;

/** host.json, on a machine that works for others. */
export const hostConfig = joinTicket.extend({
  name: text,
  slots: z.number().int().min(1).max(1_000),
  labels: z.array(text),
  /** The login of orders that name none; absent = the environment of the agent. */
  login: text.optional(),
});
export type HostConfig = z.infer<typeof hostConfig>;
