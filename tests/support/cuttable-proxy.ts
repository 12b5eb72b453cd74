/**
 * A connection to a server that can be cut like a network: nothing passes in either or in one direction, without an
 * error. Connections stay open and sent data waits. After healing everything continues.
 */
import { connect, createServer, type Socket } from 'node:net';

/** `up`: to the server. */
export type CutWay = 'both' | 'up' | 'down';

export interface CuttableProxy {
  readonly port: number;
  cut(way?: CutWay): void;
  heal(): void;
  close(): void;
}

interface Way {
  readonly socket: Socket;
  readonly way: 'up' | 'down';
}

/** `address`: of this machine, on which it listens. */
export async function startProxy(targetPort: number, address = '127.0.0.1'): Promise<CuttableProxy> {
  const ways = new Set<Way>();
  let isCut: Way['way'][] = [];
  const keep = (socket: Socket, other: Socket, way: Way['way']): void => {
    const one = { socket, way };
    ways.add(one);
    socket.on('data', (bytes) => other.write(bytes));
    socket.on('error', () => {});
    socket.on('close', () => {
      ways.delete(one);
      // The cut-off side is not informed.
      if (isCut.length === 0) other.destroy();
    });
    if (isCut.includes(way)) socket.pause();
  };
  const server = createServer((near) => {
    const far = connect(targetPort, '127.0.0.1');
    keep(near, far, 'up');
    keep(far, near, 'down');
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const { port } = server.address() as { port: number };
  return {
    port,
    cut: (way = 'both') => {
      isCut = way === 'both' ? ['up', 'down'] : [way];
      for (const one of ways) if (isCut.includes(one.way)) one.socket.pause();
    },
    heal: () => {
      isCut = [];
      for (const { socket } of ways) socket.resume();
    },
    close: () => {
      server.close();
      for (const { socket } of ways) socket.destroy();
    },
  };
}
