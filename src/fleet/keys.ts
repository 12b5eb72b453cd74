/** Names in Redis: all begin with `cca:`, which is all that the users of a fleet may touch there. */

/** Of the queues of wishes (leases.ts). */
export const queuePrefix = 'cca';
/** Told whenever there is a new wish. */
export const wishChannel = 'cca:wish';
/** Set of the label sets for which there ever was a wish, as `labelSetOf` writes them. */
export const labelSetsKey = 'cca:label-sets';
/** Hash: the name of a machine → what it says of itself, sealed. */
export const hostsKey = 'cca:hosts';
/** Set of the machines that are to take nothing new. */
export const drainedKey = 'cca:drained';
/** Hash: the name of a machine → its login that was refused, sealed. */
export const refusedLoginsKey = 'cca:refused-logins';

/** What runners say to a machine. */
export const toHostStream = (host: string): string => `cca:h:${host}`;
/** What machines say to the runner of a group. */
export const toGroupStream = (groupId: string): string => `cca:g:${groupId}`;
export const pieceKey = (blob: string, piece: number): string => `cca:b:${blob}:${piece}`;

/** The implicit label of every machine. */
export const hostLabel = (name: string): string => `host=${name}`;

const any = 'any';

export function labelSetOf(labels: readonly string[]): string {
  return labels.length === 0 ? any : [...new Set(labels)].toSorted().join('+');
}

export function labelsOf(labelSet: string): string[] {
  return labelSet === any ? [] : labelSet.split('+');
}

export const queueName = (labelSet: string): string => `slots-${labelSet}`;
