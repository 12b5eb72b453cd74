/**
 * A way to a server that can be cut as a network is: nothing comes through, in either direction, and nobody is told so;
 * what is connected stays connected, and what was sent waits. Healed, all of it goes on.
 */
import { connect, createServer, type Socket } from 'node:net';

export interface CuttableProxy {
  readonly port: number;
  cut(): void;
  heal(): void;
  close(): void;
}

export async function startProxy(targetPort: number): Promise<CuttableProxy> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const keep = (socket: Socket, other: Socket): void => {
    sockets.add(socket);
    socket.on('data', (bytes) => other.write(bytes));
    socket.on('error', () => {});
    socket.on('close', () => {
      sockets.delete(socket);
      // Whoever is cut off does not hear of it.
      if (!isCut) other.destroy();
    });
    if (isCut) socket.pause();
  };
  const server = createServer((near) => {
    const far = connect(targetPort, '127.0.0.1');
    keep(near, far);
    keep(far, near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  return {
    port,
    cut: () => {
      isCut = true;
      for (const socket of sockets) socket.pause();
    },
    heal: () => {
      isCut = false;
      for (const socket of sockets) socket.resume();
    },
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
