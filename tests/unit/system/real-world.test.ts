/** Promises: the parts of the system module are connected and report the machine they run on. */
import { expect, test } from 'bun:test';
import { hostname } from 'node:os';
import { createRealWorld } from '../../../src/system/real-world.ts';

test('the real world reports this machine and this process', () => {
  const { machine, processes, random } = createRealWorld();
  expect(machine.self.pid).toBe(process.pid);
  expect(processes.isAlive(machine.self)).toBe(true);
  expect(machine.host).toBe(hostname());
  expect(machine.bootId).not.toBe('');
  expect(machine.cores).toBeGreaterThan(0);
  expect(createRealWorld().machine).toEqual(machine);
  expect(random.uuid()).not.toBe(random.uuid());
});
